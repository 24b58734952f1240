"""Feedback laws in closed loop: MATH 7.6."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import TypeCheckError

import jaxdenoc as jd

from ..support.robots import R, state

cites = pytest.mark.cites
TS = jnp.linspace(0.0, 1.0, 21)


@pytest.fixture(scope="module")
def arm():
    return jd.robots.random_chain(jax.random.key(2), 3, kinds=R)


@cites("J&R Control 8.1", "MATH 7.6: ε = -cν, kinetic energy as e^{-2ct}")
@pytest.mark.parametrize("rates", ["qd", "nu", "xi"])
def test_rate_feedback(arm, rates):
    q, qd, _ = state(arm)
    law = jd.control.rate_feedback(arm, 0.8)
    motion = jd.simulate(arm, q, qd, TS, tau=law, rates=rates, rtol=1e-10, atol=1e-10)
    energy = jax.vmap(lambda q, qd: jd.kinetic_energy(arm, q, qd))(motion.q, motion.qd)
    np.testing.assert_allclose(energy / energy[0], np.exp(-1.6 * TS), atol=1e-8)


@cites("MATH 7.6: d/dt KE = -νᵀ c ν, a gain per rate")
def test_rate_feedback_with_a_gain_per_rate(arm):
    q, qd, _ = state(arm)
    c = jnp.array([0.5, 1.0, 2.0])
    law = jd.control.rate_feedback(arm, c)
    nu = jd.factorize(arm, q).total_rates(qd)
    qdd = jd.forward_dynamics(arm, q, qd, law(0.0, q, qd))
    power = jax.jvp(lambda q, v: jd.kinetic_energy(arm, q, v), (q, qd), (qd, qdd))[1]
    np.testing.assert_allclose(power, -nu @ (c * nu), rtol=1e-10)
    weightless = jd.control.rate_feedback(arm, c, cancel_gravity=False)
    gap = law(0.0, q, qd) - weightless(0.0, q, qd)
    np.testing.assert_allclose(gap, jd.gravity_forces(arm, q), atol=1e-12)


@cites("J&R Control 8.2, corrected", "MATH 7.6: Ẏ = B* V", "MATH 14: J17, J18")
def test_set_point(arm):
    q, qd, _ = state(arm)
    goal = jd.forward_kinematics(arm, q + 0.4)[-1]
    W = jnp.linspace(4.0, 9.0, 12)
    law = jd.control.set_point(arm, goal, weight=W, rate_gain=2.0)
    # the Lyapunov function falls at the rate -νᵀ c₁ ν
    qdd = jd.forward_dynamics(arm, q, qd, law(0.0, q, qd))
    nu = jd.factorize(arm, q).total_rates(qd)
    rate = jax.jit(lambda: jax.jvp(law.lyapunov, (q, qd), (qd, qdd))[1])()
    np.testing.assert_allclose(rate, -2.0 * nu @ nu, rtol=1e-9)
    motion = jd.simulate(arm, q, 0 * qd, 12 * TS, tau=law, rtol=1e-7, atol=1e-9)
    height = jax.vmap(law.lyapunov)(motion.q, motion.qd)
    assert (np.diff(height) < 0).all()
    start, end = law.error(q), law.error(motion.q[-1])
    assert np.linalg.norm(end) < 0.02 * np.linalg.norm(start)
    # the printed sign drives it away: its Lyapunov function rises from rest
    printed = jd.control.rate_feedback(arm, 2.0)(0.0, q, 0 * qd)
    drawing = law(0.0, q, 0 * qd) - printed
    pushed = jd.forward_dynamics(arm, q, 0 * qd, printed - drawing)
    slope = jax.jit(
        lambda: jax.jvp(lambda h: law.error(q + h * pushed), (0.0,), (1.0,))
    )()
    assert start @ (W * slope[1]) > 0


@cites("MATH 6.1: FD undoes ID, so the error obeys its own equation")
def test_computed_torque_and_pd(arm):
    q, qd, _ = state(arm)

    def reference(t):
        return q + 0.2 * jnp.sin(2 * t)

    law = jd.control.computed_torque(arm, reference, kp=16.0, kd=8.0)
    t, at = 0.3, q + 0.1
    qdd = jd.forward_dynamics(arm, at, qd, law(t, at, qd))
    goal, rate = reference(t), 0.4 * np.cos(0.6) * np.ones(3)
    bend = -0.8 * np.sin(0.6) * np.ones(3)
    np.testing.assert_allclose(
        qdd, bend + 16 * (goal - at) + 8 * (rate - qd), rtol=1e-9, atol=1e-9
    )
    given = jd.control.computed_torque(
        arm,
        lambda t: (reference(t), jnp.asarray(rate), jnp.asarray(bend)),
        kp=16.0,
        kd=8.0,
    )
    np.testing.assert_allclose(given(t, at, qd), law(t, at, qd), atol=1e-9)
    hold = jd.control.pd_gravity(arm, q, kp=5.0, kd=1.0)
    still = jd.forward_dynamics(arm, q, 0 * qd, hold(0.0, q, 0 * qd))
    np.testing.assert_allclose(still, 0, atol=1e-11)


def test_gains_and_targets_are_checked(arm):
    with pytest.raises(jd.ModelError, match="one number, or 3"):
        jd.control.rate_feedback(arm, jnp.ones(2))
    with pytest.raises(jd.ModelError, match="4×4 pose"):
        jd.control.set_point(arm, jnp.eye(3))
    with pytest.raises(jd.ModelError, match="12×12"):
        jd.control.set_point(arm, jnp.eye(4), weight=jnp.eye(3))
    with pytest.raises(jd.ModelError, match="q has shape"):
        jd.control.pd_gravity(arm, jnp.zeros(2), kp=1.0, kd=1.0)
    with pytest.raises((ValueError, TypeCheckError), match="rates"):
        jd.simulate(arm, jnp.zeros(3), jnp.zeros(3), TS, rates="momenta")
