"""Rollouts: what a step is, what it keeps, how fast it converges, policies, batches."""

import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdenoc as jd

from ..support.robots import tree

H = 0.01
cites = pytest.mark.cites


@pytest.fixture(scope="module")
def arm():
    return jd.robots.random_chain(jax.random.key(3), 2)


def start(model, seed=0):
    return jd.random_state(model, jax.random.key(seed))


def forces(model, steps):
    return jnp.asarray(np.random.default_rng(0).normal(size=(steps, model.nv)))


def weightless(model):
    return eqx.tree_at(lambda m: m.gravity, model, jnp.zeros(3))


def kept(values):
    """The largest change, against the first value."""
    values = np.asarray(values)
    return np.abs(values - values[0]).max() / abs(values[0])


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
    assert motion.status.all() and motion.status.ok


# what a step converges to, and what it keeps

ORDERS = {
    "semi_implicit": 1,
    "rk4": 4,
    "cayley": 2,
    "implicit_midpoint": 2,
    "energy": 2,
}


@pytest.mark.slow
@cites("MATH 12: the order of each method")
@pytest.mark.parametrize("integrator", ORDERS)
def test_order(integrator):
    """The error over 0.2 s, with weight and damping, falls by 2^order for half steps.

    The number of steps is a dimension of the samples, so it is the time of two halves:
    one compilation serves for 0.2 s in 20 steps and in 40 of which the first 20 count.
    """
    model = jd.robots.random_chain(jax.random.key(3), 2)
    model = eqx.tree_at(lambda m: m.damping, model, jnp.full(2, 0.3))
    q, qd = start(model)
    exact = jd.simulate(model, q, qd, jnp.array([0.0, 0.2]), rtol=1e-12, atol=1e-12)

    def error(steps):
        motion = jd.rollout(
            model, q, qd, None, 0.2 / steps, steps=40, integrator=integrator
        )
        return float(jnp.abs(motion.q[steps] - exact.q[-1]).max())

    assert abs(np.log2(error(20) / error(40)) - ORDERS[integrator]) < 0.1


@pytest.mark.slow
@cites("MATH 12: free motion, ½ νᵀν is exact", "J&R Identity 7.1: νᵀC = 0")
@pytest.mark.parametrize("integrator", ["cayley", "implicit_midpoint"])
def test_free_motion_keeps_its_energy(integrator):
    """To 1e-12 over 10⁴ steps, in which semi-implicit ones lose 1e-5 and more."""
    model = weightless(jd.robots.random_chain(jax.random.key(3), 3))
    q, qd = start(model)

    def energies(integrator):
        motion = jd.rollout(
            model, q, qd, None, 1e-3, steps=10_000, integrator=integrator
        )
        assert motion.status.ok
        return motion.energy(model)

    assert kept(energies(integrator)) < 1e-12
    assert kept(energies("semi_implicit")) > 1e-5


@pytest.mark.slow
@cites("MATH 12: the discrete gradient keeps ½ νᵀν + U")
def test_a_swinging_chain_keeps_its_energy():
    """Ten rods, to 1e-11 J over 10⁴ steps, while hundreds of joules are exchanged."""
    chain = jd.robots.rod_chain(10)
    q = jnp.zeros(10).at[0].set(0.5)
    motion = jd.rollout(chain, q, 0 * q, None, 1e-3, steps=10_000, integrator="energy")
    energy = np.asarray(motion.energy(chain))
    kinetic = jd.kinetic_energy(chain, motion.q[-1], motion.qd[-1])
    assert motion.status.ok and kinetic > 100
    assert np.abs(energy - energy[0]).max() < 1e-11


@pytest.mark.slow
@cites("MATH 12; MATH 7.1: the free base by its Cholesky factor")
def test_a_free_base_keeps_its_energy_and_its_manifold():
    body = tree(2, (-1, 0), floating_base=True)
    q, qd = start(body)
    motion = jd.rollout(body, q, qd, None, 1e-3, steps=200, integrator="energy")
    assert kept(motion.energy(body)) < 1e-12
    np.testing.assert_allclose(jnp.linalg.norm(motion.q[:, 3:7], axis=1), 1, rtol=1e-14)
    centre = jax.vmap(jd.center_of_mass, (None, 0))(body, motion.q)
    fall = np.diff(centre, 2, axis=0) / 1e-6
    np.testing.assert_allclose(fall, np.tile(body.gravity, (199, 1)), atol=1e-2)


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


def test_a_step_that_cannot_be_solved_is_said(arm):
    q, qd = start(arm)
    motion = jd.rollout(arm, q, 50 * qd, None, 1.0, steps=3, integrator="energy")
    assert motion.status.describe(arm).startswith("needed more iterations")
    np.testing.assert_array_equal(motion.q, jnp.tile(q, (4, 1)))


# policies: hold, delay


def damped(t, q, qd):
    return -0.5 * qd + jnp.sin(3 * t)


def test_policy_is_asked_at_every_step(arm):
    q, qd = start(arm)
    motion = jd.rollout(arm, q, qd, damped, H, steps=6)
    asked = jax.vmap(damped)(motion.t, motion.q, motion.qd)
    np.testing.assert_allclose(motion.tau, asked, rtol=1e-12)
    table = jd.rollout(arm, q, qd, motion.tau[:-1], H)
    np.testing.assert_allclose(table.q, motion.q, rtol=1e-12)
    assert abs(motion.tau[-1] - table.tau[-1]).max() > 1e-6  # what would act next


def test_decimation_holds_the_answer(arm):
    """Three steps of H for each answer are the same as its rows three times."""
    q, qd = start(arm)
    held = jd.rollout(arm, q, qd, damped, H, steps=4, decimation=3)
    rows = jnp.repeat(held.tau[:-1], 3, axis=0)
    fine = jd.rollout(arm, q, qd, rows, H)
    np.testing.assert_allclose(held.t, fine.t[::3], rtol=1e-12)
    np.testing.assert_allclose(held.q, fine.q[::3], rtol=1e-12)
    asked = jax.vmap(damped)(held.t, held.q, held.qd)
    np.testing.assert_allclose(held.tau, asked, rtol=1e-12)


def test_delay_brings_the_answer_later(arm):
    q, qd = start(arm)
    late = jd.rollout(arm, q, qd, damped, H, steps=6, delay=2)
    asked = jax.vmap(damped)(late.t, late.q, late.qd)
    np.testing.assert_array_equal(late.tau[:2], 0)
    np.testing.assert_allclose(late.tau[2:], asked[:-2], rtol=1e-12)
    plain = jd.rollout(arm, q, qd, late.tau[:-1], H)
    np.testing.assert_allclose(late.q, plain.q, rtol=1e-12)


def test_a_network_is_a_policy(arm):
    """Its gradient through the rollout is that of central differences."""
    net = eqx.nn.MLP(4, 2, 8, 1, dtype=jnp.float64, key=jax.random.key(0))

    class Policy(eqx.Module):
        net: eqx.nn.MLP

        def __call__(self, t, q, qd):
            return self.net(jnp.concatenate([q, qd]))

    q, qd = start(arm)

    @eqx.filter_jit
    def loss(policy):
        return jnp.sum(jd.rollout(arm, q, qd, policy, H, steps=5).q[-1] ** 2)

    policy = Policy(net)
    bias = lambda p: p.net.layers[0].bias  # noqa: E731
    found = bias(eqx.filter_grad(loss)(policy))
    along, small = jnp.cos(jnp.arange(8.0)), 1e-4

    def at(s):
        return loss(eqx.tree_at(bias, policy, bias(policy) + s * along))

    slope = (at(small) - at(-small)) / (2 * small)
    np.testing.assert_allclose(found @ along, slope, rtol=1e-7)


# batches


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


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"tau": jnp.zeros((4, 3))}, jd.ModelError, r"tau has shape \(4, 3\).*nv = 2"),
        ({"tau": damped}, ValueError, "number of steps"),
        ({"tau": jnp.zeros((3, 2)), "steps": 4}, ValueError, "3 rows, but steps is 4"),
        (
            {"integrator": "euler"},
            ValueError,
            "'euler'; it can be 'semi_implicit', 'rk4'",
        ),
        ({"limits": "bounce"}, ValueError, "'bounce'; it can be 'freeze' or 'ignore'"),
        ({"samples": "some"}, ValueError, "'some'; it can be 'all' or 'ends'"),
        ({"decimation": 0}, ValueError, "decimation is 0 and delay 0"),
        ({"checkpoint": 0}, ValueError, "checkpoint is 0; it can be None, 'sqrt' or"),
        (
            {"checkpoint": "log"},
            ValueError,
            "checkpoint is log; it can be None, 'sqrt'",
        ),
    ],
)
def test_refused(arm, changes, error, says):
    q, qd = start(arm)
    given = {"tau": jnp.zeros((4, 2)), "dt": H} | changes
    with pytest.raises(error, match=says):
        inspect.unwrap(jd.rollout)(arm, q, qd, **given)
