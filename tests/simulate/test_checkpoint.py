"""Gradients of long rollouts: right, and in as much memory as was told."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdenoc as jd

STEPS, BATCH = 1000, 64


@pytest.fixture(scope="module")
def arm():
    return jd.robots.random_chain(jax.random.key(3), 2)


def end(model, q, qd, checkpoint, steps=STEPS, samples="ends"):
    motion = jd.rollout(
        *(model, q, qd, None, 1e-3), steps=steps, checkpoint=checkpoint, samples=samples
    )
    return motion.q[-1] @ motion.q[-1] + motion.qd[-1] @ motion.qd[-1]


@pytest.fixture(scope="module")
def gradients(arm):
    """Of a batch, by masses and starts, with what XLA says they need."""
    keys = jax.random.split(jax.random.key(0), BATCH)
    q, qd = jax.vmap(jd.random_state, (None, 0))(arm, keys)

    def made(checkpoint):
        def loss(model, q, qd):
            f = jax.vmap(lambda q, qd: end(model, q, qd, checkpoint))
            return jnp.sum(f(q, qd))

        program = jax.jit(jax.grad(loss, (0, 1, 2))).lower(arm, q, qd).compile()
        memory = program.memory_analysis().temp_size_in_bytes
        return program(arm, q, qd), memory

    return {checkpoint: made(checkpoint) for checkpoint in (None, "sqrt", 10)}


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", ["sqrt", 10])
def test_the_same_gradient_from_less_memory(gradients, checkpoint):
    whole, kept = (jax.tree.leaves(gradients[c][0]) for c in (None, checkpoint))
    for x, y in zip(whole, kept, strict=True):
        scale = np.abs(x).max(initial=0)
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-11 * scale)
    assert gradients[checkpoint][1] < 0.15 * gradients[None][1]


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", [None, "sqrt", 10])
def test_the_memory_is_what_was_told(arm, gradients, checkpoint):
    told = jd.rollout_memory(arm, STEPS, BATCH, checkpoint, samples="ends")
    assert abs(told / gradients[checkpoint][1] - 1) < 0.3


@pytest.mark.slow
def test_the_gradient_of_a_thousand_steps():
    """By masses and the start, against central differences, to 1e-5."""
    arm = jd.robots.planar_arm()
    arm = eqx.tree_at(lambda m: m.damping, arm, jnp.full(3, 0.05))  # not chaotic
    q, qd = jnp.array([0.3, -0.4, 0.5]), jnp.zeros(3)

    @jax.jit
    def loss(mass, q, qd):
        model = eqx.tree_at(lambda m: m.mass, arm, mass)
        return end(model, q, qd, "sqrt", 1000)

    at = arm.mass, q, qd
    found = jax.jit(jax.grad(loss, (0, 1, 2)))(*at)
    for k, x in enumerate(at):
        for i in range(3):
            step = jnp.zeros(3).at[i].set(1e-5)
            high, low = (loss(*at[:k], x + s * step, *at[k + 1 :]) for s in (1, -1))
            slope = (high - low) / 2e-5
            scale = jnp.abs(found[k]).max()
            np.testing.assert_allclose(found[k][i], slope, rtol=0, atol=1e-5 * scale)


def test_pieces_that_do_not_divide(arm):
    """7 steps in pieces of 3: values and samples as without pieces."""
    q, qd = jd.random_state(arm, jax.random.key(0))
    plain, pieces = (
        jd.rollout(arm, q, qd, None, 0.01, steps=7, checkpoint=c)
        for c in (None, "sqrt")
    )
    for x, y in zip(*map(jax.tree.leaves, (plain, pieces)), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-13)
    ends = jd.rollout(arm, q, qd, None, 0.01, steps=7, samples="ends")
    np.testing.assert_allclose(ends.q, plain.q[jnp.array([0, -1])], rtol=1e-13)
    np.testing.assert_allclose(ends.t, plain.t[jnp.array([0, -1])], rtol=1e-15)
