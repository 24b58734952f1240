"""Simulated robots from files, against SciPy on Pinocchio and conservation laws."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest
from scipy.integrate import solve_ivp

import jaxdenoc as jd

from ..io.test_urdf_robots import ROBOTS
from ..support.oracle import Oracle

cites = pytest.mark.cites


@pytest.fixture(autouse=True)
def one_loop(link_by_link):
    """Compiles faster, and is shown to be the same elsewhere."""


def without(model, *names):
    """Without damping, gravity and the like."""
    zeros = [jnp.zeros_like(getattr(model, s)) for s in names]
    return eqx.tree_at(lambda m: [getattr(m, s) for s in names], model, zeros)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::jaxdenoc.ModelWarning")
@cites("MATH 6.1: q̈ = ℳ⁻¹ (τ - bias), here by aba and DOP853")
def test_panda_moves_as_with_pinocchio_and_scipy():
    text = (ROBOTS / "panda_description/urdf/panda.urdf").read_text()
    fingers = ("panda_finger_joint1", "panda_finger_joint2")
    model = jd.lock(jd.load(text, mimic="free"), dict.fromkeys(fingers, 0.0))
    model = without(model, "damping", "friction")
    whole = pin.buildModelFromXML(text)
    held = [whole.getJointId(s) for s in fingers]
    oracle = Oracle(model, pin.buildReducedModel(whole, held, pin.neutral(whole)))

    q0 = jnp.array([0.2, -0.5, 0.3, -2.0, 0.1, 1.5, 0.4])
    hold, pace = np.array(jd.gravity_forces(model, q0)), np.arange(1.0, 8.0)
    size = np.array([4, 6, 4, 4, 0.1, 0.1, 0.01])
    ts = jnp.linspace(0.0, 1.0, 6)

    def tau(t, q, qd):
        return hold + size * jnp.sin(pace * t) - 0.3 * qd

    def rate(t, y):
        q, qd = np.split(y, 2)
        return np.r_[qd, oracle.forward_dynamics(q, qd, np.array(tau(t, q, qd)))]

    expected = solve_ivp(
        *(rate, (0.0, 1.0), np.r_[q0, np.zeros(7)]), method="DOP853", rtol=1e-12,
        atol=1e-13, t_eval=np.array(ts),
    ).y.T  # fmt: skip
    motion = jd.simulate(
        *(model, q0, jnp.zeros(7), ts), tau=tau,
        solver="dopri8", rtol=1e-12, atol=1e-12,
    )  # fmt: skip
    np.testing.assert_allclose(motion.q, expected[:, :7], rtol=0, atol=1e-8)
    np.testing.assert_allclose(motion.qd, expected[:, 7:], rtol=0, atol=1e-8)
    assert np.abs(expected[-1, :7] - q0).max() > 0.3  # it went somewhere


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::jaxdenoc.ModelWarning")
@cites("Newton and Euler: what acts inside a robot leaves its momentum as it is")
def test_solo12_keeps_its_momentum_in_the_air():
    path = ROBOTS / "solo_description/robots/solo12.urdf"
    model = without(jd.load(path, floating_base=True), "gravity")
    legs = jnp.arange(12.0)
    qd0 = jnp.concatenate([jnp.array([0.5, -1.0, 2.0, 0.3, 0.2, -0.1]), 0.1 * legs])

    def tau(t, q, qd):
        return jnp.concatenate([jnp.zeros(6), 0.05 * jnp.sin(5 * t + legs)])

    ts = jnp.linspace(0.0, 1.0, 6)
    motion = jd.simulate(
        model, jd.neutral(model), qd0, ts, tau=tau, rtol=1e-11, atol=1e-12
    )
    momentum = jax.vmap(jd.centroidal_momentum, (None, 0, 0))(
        model, motion.q, motion.qd
    )
    momentum = np.array(momentum)
    assert np.abs(momentum - momentum[0]).max() < 1e-10
    assert np.abs(motion.q[-1, 7:]).max() > 0.5 and np.ptp(motion.q[:, 3]) > 0.1
