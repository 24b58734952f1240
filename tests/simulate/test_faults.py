"""Robots that go wrong: they stop, say why, and leave the others of a batch alone."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdenoc as jd

from ..support.robots import tree

H, STEPS, MANY = 0.01, 12, 300
BAD = np.arange(MANY) % 100 == 7  # one in a hundred


@pytest.fixture(scope="module")
def arm():
    """Joint 2 has limits, which some of the robots leave."""
    arm = jd.robots.random_chain(jax.random.key(3), 2, kinds=("revolute",))
    return eqx.tree_at(lambda m: m.q_upper, arm, jnp.array([jnp.inf, 3.2]))


@pytest.fixture(scope="module")
def runs(arm):
    """A batch, the same with diverging robots in it, and without those."""
    keys = jax.random.split(jax.random.key(0), MANY)
    q, qd = jax.vmap(jd.random_state, (None, 0))(arm, keys)
    wild = jnp.where(jnp.asarray(BAD)[:, None], 1e60, qd)

    def run(q, qd):
        return jd.rollout(arm, q, qd, None, H, steps=STEPS)

    many = jd.batched(run)
    return many(q, qd), many(q, wild), many(q[~BAD], qd[~BAD]), (q, wild)


def test_exactly_the_diverging_are_flagged(arm, runs):
    sound, with_bad, _, _ = runs
    lost = np.asarray(with_bad.status.reason) == 1
    np.testing.assert_array_equal(lost, BAD)
    assert not np.any(np.asarray(sound.status.reason) == 1)
    words = with_bad.status.describe(arm)[7]
    assert words == "left the finite numbers at step 0: joint 'joint1'"
    for x in (with_bad.q, with_bad.qd, with_bad.tau):
        assert np.isfinite(x).all()


def test_the_others_are_the_same_to_the_last_bit(runs):
    """As with sound robots in the place of the bad ones, and as without them."""
    sound, with_bad, without, _ = runs
    for x, y, z in zip(*map(jax.tree.leaves, (sound, with_bad, without)), strict=True):
        np.testing.assert_array_equal(x[~BAD], y[~BAD])
        np.testing.assert_array_equal(z, y[~BAD])


def test_robots_stop_where_they_leave_their_limits(arm, runs):
    """They keep the last sample within, and are those that would be beyond."""
    motion, _, _, (q, _) = runs
    free = jd.batched(
        lambda q, qd: jd.rollout(arm, q, qd, None, H, steps=STEPS, limits="ignore")
    )(q, motion.qd[:, 0])
    beyond = np.asarray(free.q[:, :, 1] > 3.2)
    left = beyond.any(axis=1) & ~beyond[:, 0]
    assert 0 < left.sum() < MANY
    status = motion.status
    np.testing.assert_array_equal(status.reason, np.where(left, 2, 0))
    np.testing.assert_array_equal(status.joint, np.where(left, 1, -1))
    first = beyond.argmax(axis=1) - 1  # the last sample within
    np.testing.assert_array_equal(status.step, np.where(left, first, -1))
    k = int(np.flatnonzero(left)[0])
    np.testing.assert_array_equal(
        motion.q[k, : first[k] + 1], free.q[k, : first[k] + 1]
    )
    np.testing.assert_array_equal(
        motion.q[k, first[k] :],
        jnp.tile(motion.q[k, first[k]], (STEPS + 1 - first[k], 1)),
    )
    np.testing.assert_array_equal(status.sound[k], np.arange(STEPS + 1) <= first[k])


def test_a_start_beyond_a_limit_is_let_in(arm):
    """Held to the limit only from when it is back within."""
    q = jnp.array([0.0, 3.3])
    inward = jd.rollout(arm, q, jnp.array([0.0, -20.0]), None, H, steps=STEPS)
    assert inward.status.ok and inward.q[-1, 1] < 3.2
    outward = jd.rollout(arm, q, jnp.array([0.0, 1.0]), None, H, steps=STEPS)
    assert outward.status.ok


def test_a_diverging_robot_does_not_spoil_the_gradient(arm, runs):
    """That of a shared mass is the sum over the others, finite and right.

    The stages of RK4 overflow within one step, and so do their derivatives.
    """
    *_, (q, wild) = runs

    def losses(mass, q, qd):
        model = eqx.tree_at(lambda m: m.mass, arm, mass)

        def one(q, qd):
            how = {"steps": STEPS, "integrator": "rk4"}
            motion = jd.rollout(model, q, qd, None, H, **how)
            return jnp.where(motion.status.ok, motion.q[-1] @ motion.qd[-1], 0.0)

        return jnp.sum(jax.vmap(one)(q, qd))

    gradient = jax.jit(jax.grad(losses, (0, 1, 2)))
    late = 8e74  # finite at the start, and not after a step or two
    q, qd = q[:8], wild[:8].at[3].set(late)
    good = np.array([k not in (3, 7) for k in range(8)])
    found = gradient(arm.mass, q, qd)
    others = gradient(arm.mass, q[good], qd[good])
    np.testing.assert_allclose(found[0], others[0], rtol=1e-12)
    for x, y in zip(found[1:], others[1:], strict=True):
        np.testing.assert_allclose(x[good], y, rtol=1e-12)
        np.testing.assert_array_equal(x[~good], 0)


def test_not_finite_from_the_start():
    body = tree(2, (-1, 0), floating_base=True)
    q, qd = jd.random_state(body, jax.random.key(0))
    motion = jd.rollout(body, q, qd.at[6].set(jnp.nan), None, H, steps=2)
    assert not motion.status.any()
    assert (motion.status.step, motion.status.joint) == (0, 1)
