"""Rollouts: what a step is, how fast it converges, batches, gradients, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdenoc as jd

from ..support.robots import tree

H = 0.01


@pytest.fixture(scope="module")
def arm():
    return jd.robots.random_chain(jax.random.key(3), 2)


def start(model, seed=0):
    return jd.random_state(model, jax.random.key(seed))


def forces(model, steps):
    return jnp.asarray(np.random.default_rng(0).normal(size=(steps, model.nv)))


def test_semi_implicit_is_velocities_first(arm):
    (q, qd), tau = start(arm), forces(arm, 4)
    motion = jd.rollout(arm, q, qd, tau, H)
    for k in range(5):
        np.testing.assert_allclose(motion.q[k], q, rtol=1e-12)
        np.testing.assert_allclose(motion.qd[k], qd, rtol=1e-12)
        qd = qd + H * jd.forward_dynamics(arm, q, qd, tau[min(k, 3)])
        q = q + H * qd
    np.testing.assert_allclose(motion.t, H * np.arange(5))
    np.testing.assert_array_equal(motion.tau, jnp.concatenate([tau, tau[-1:]]))
    assert motion.status.all()


def damped(t, q, qd):
    return -0.5 * qd + jnp.sin(3 * t)


@pytest.mark.parametrize("integrator, order", [("semi_implicit", 1), ("rk4", 4)])
def test_order(arm, integrator, order):
    """The error over 0.2 s under no force falls by 2^order when the step is halved."""
    q, qd = start(arm)
    exact = jd.simulate(arm, q, qd, jnp.array([0.0, 0.2]), rtol=1e-12, atol=1e-12)

    def error(steps):
        tau = jnp.zeros((steps, arm.nv))
        motion = jd.rollout(arm, q, qd, tau, 0.2 / steps, integrator=integrator)
        return float(jnp.abs(motion.q[-1] - exact.q[-1]).max())

    found = np.log2(error(10) / error(20))
    assert abs(found - order) < 0.25


def test_policy_is_asked_at_every_step(arm):
    q, qd = start(arm)
    motion = jd.rollout(arm, q, qd, damped, H, steps=6)
    asked = jax.vmap(damped)(motion.t, motion.q, motion.qd)
    np.testing.assert_allclose(motion.tau, asked, rtol=1e-12)
    table = jd.rollout(arm, q, qd, motion.tau[:-1], H)
    np.testing.assert_allclose(table.q, motion.q, rtol=1e-12)


@pytest.mark.parametrize("integrator", ["semi_implicit", "rk4"])
def test_free_base_stays_on_the_manifold(integrator):
    """A free body falls as a stone does, and its quaternion stays a unit one."""
    body = tree(2, (-1,), floating_base=True)
    q, qd = start(body)
    motion = jd.rollout(body, q, qd, jnp.zeros((20, 6)), H, integrator=integrator)
    np.testing.assert_allclose(jnp.linalg.norm(motion.q[:, 3:7], axis=1), 1, rtol=1e-12)
    centre = jax.vmap(jd.center_of_mass, (None, 0))(body, motion.q)
    fall = np.diff(centre, 2, axis=0)
    tolerance = 2e-3 if integrator == "semi_implicit" else 1e-6
    free = np.tile(body.gravity * H**2, (19, 1))
    np.testing.assert_allclose(fall, free, atol=tolerance)


def test_batch_and_gradient(arm):
    """`batched` against one by one, and its gradient against central differences."""
    states = [start(arm, k) for k in range(5)]
    q, qd = (jnp.stack(x) for x in zip(*states, strict=True))
    tau = jnp.asarray(np.random.default_rng(1).normal(size=(5, 8, arm.nv)))
    many = jd.batched(jd.rollout, in_axes=(None, 0, 0, 0, None), tile=2)
    motions = many(arm, q, qd, tau, H)
    one = jd.rollout(arm, q[3], qd[3], tau[3], H)
    np.testing.assert_allclose(motions.q[3], one.q, rtol=1e-12)

    @jax.jit
    def loss(tau):
        return jnp.sum(many(arm, q, qd, tau, H).q[:, -1] ** 2)

    along, small = jnp.cos(jnp.arange(tau.size)).reshape(tau.shape), 1e-4
    slope = (loss(tau + small * along) - loss(tau - small * along)) / (2 * small)
    assert abs(jnp.sum(jax.grad(loss)(tau) * along) - slope) < 1e-7 * abs(slope)


def test_refused(arm):
    q, qd = start(arm)
    with pytest.raises(jd.ModelError, match=r"tau has shape \(4, 3\).*nv = 2"):
        jd.rollout(arm, q, qd, jnp.zeros((4, 3)), H)
    with pytest.raises(ValueError, match="number of steps"):
        jd.rollout(arm, q, qd, damped, H)
    with pytest.raises(ValueError, match="has 3 rows, but steps is 4"):
        jd.rollout(arm, q, qd, jnp.zeros((3, 2)), H, steps=4)
