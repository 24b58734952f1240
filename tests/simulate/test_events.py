"""Events against closed forms, and motions that cannot be continued."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ellipk, ellipkinc

import jaxdenoc as jd
from jaxdenoc.simulate._status import EVENT, NOT_FINITE, NOT_SOLVED, OUT_OF_LIMITS

cites = pytest.mark.cites
G, LENGTH, REST = 9.81, 0.7, jnp.zeros(1)
TS = jnp.linspace(0.0, 1.2, 7)


def pendulum(gravity=G, **more):
    """A mass on a string: hangs along -y at q = 0."""
    return jd.build(
        [jd.Link("bob", mass=2.0, com=(0.0, -LENGTH, 0.0), **more)],
        gravity=(0.0, -gravity, 0.0),
    )


def time_to(angle, start):
    """From rest at -start, up the other side, in elliptic integrals."""
    k = np.sin(start / 2)
    quarters = ellipk(k**2) + ellipkinc(np.arcsin(np.sin(angle / 2) / k), k**2)
    return quarters * np.sqrt(LENGTH / G)


@pytest.fixture(scope="module")
def swings():
    """A batch: two that reach the limit, one that does not, one from beyond it."""
    model, starts = pendulum(lower=-3.0, upper=0.5), jnp.array([1.0, 1.4, 0.3, 3.1])

    def end(start):
        motion = jd.simulate(
            *(model, -start[None], REST, TS), event=jd.events.joint_limit(),
            rtol=1e-10, atol=1e-10, max_steps=256,
        )  # fmt: skip
        return motion.t[-1] + motion.q[-1, 0], motion

    run = jax.jit(jax.vmap(jax.value_and_grad(end, has_aux=True)))
    (_, motions), gradient = run(starts)
    return model, np.array(starts), motions, np.array(gradient)


@cites(
    "a pendulum: t = sqrt(l/g) (K(k) + F(φ, k)), sin φ = sin(q/2) / k, k = sin(q₀/2)"
)
def test_a_joint_reaches_its_limit_when_it_should(swings):
    model, starts, motions, _ = swings
    for start, k in zip(starts[:2], range(2), strict=True):
        motion = jax.tree.map(lambda x: x[k], motions)
        expected, before = time_to(0.5, start), np.sum(time_to(0.5, start) >= TS)
        np.testing.assert_allclose(motion.t[-1], expected, rtol=0, atol=1e-8)
        np.testing.assert_allclose(motion.q[before:], 0.5, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(motion.t[:before], TS[:before])
        np.testing.assert_array_equal(motion.t[before:], motion.t[-1])
        speed = np.sqrt(2 * G / LENGTH * (np.cos(0.5) - np.cos(start)))
        np.testing.assert_allclose(motion.qd[before:], speed, rtol=0, atol=1e-8)
        np.testing.assert_array_equal(motion.status.sound, np.arange(7) < before)
        assert int(motion.status.step) == before - 1
    assert motions.status.reason.tolist()[:2] == [OUT_OF_LIMITS] * 2
    assert motions.status.joint.tolist() == [0, 0, -1, 0]
    assert "left its limits at step" in motions.status.describe(model)[0]


def test_in_a_batch_the_others_go_on(swings):
    model, _, motions, _ = swings
    alone = jd.simulate(model, jnp.array([-0.3]), REST, TS, rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(motions.t[2], TS)
    np.testing.assert_allclose(motions.q[2], alone.q, rtol=0, atol=1e-8)
    assert motions.status.ok[2] and motions.status.sound[2].all()


def test_a_start_beyond_a_limit_stops_at_once(swings):
    _, starts, motions, _ = swings
    np.testing.assert_array_equal(motions.t[3], 0)
    np.testing.assert_array_equal(motions.q[3, :, 0], -starts[3])
    np.testing.assert_array_equal(motions.status.sound[3], np.arange(7) == 0)
    assert motions.status.step[3] == 0
    assert motions.status.reason[3] == OUT_OF_LIMITS


@cites("the derivative of t(q₀) in elliptic integrals; of a held start, q = q₀")
def test_gradients_pass_through_the_event(swings):
    _, starts, _, gradient = swings
    h = 1e-5
    expected = (time_to(0.5, starts[:2] + h) - time_to(0.5, starts[:2] - h)) / (2 * h)
    np.testing.assert_allclose(gradient[:2], expected, rtol=0, atol=1e-6)
    assert np.isfinite(gradient).all()
    assert gradient[3] == -1


def spring(t, q, qd):
    return -2.0 * LENGTH**2 * 4.0 * q


@cites("q̈ = -4 q: q = q₀ cos 2t + q̇₀ / 2 sin 2t")
@pytest.mark.parametrize(
    ("direction", "start", "expected"),
    [("down", (0.2, 0.0), np.pi / 4), ("up", (0.2, 0.0), 3 * np.pi / 4),
     (None, (0.0, 0.2), np.pi / 2)],
)  # fmt: skip
def test_a_function_stops_the_motion_where_it_is_zero(direction, start, expected):
    q0, qd0 = jnp.array(start)[:, None]
    event = jd.events.Crossing(lambda t, q, qd: 3 * q[0], direction)
    ts = jnp.linspace(0.0, 4.0, 9)
    motion = jd.simulate(pendulum(0.0), q0, qd0, ts, tau=spring, event=event)
    np.testing.assert_allclose(motion.t[-1], expected, rtol=0, atol=1e-7)
    np.testing.assert_allclose(motion.q[-1], 0, atol=1e-9)
    assert motion.status.reason == EVENT and motion.status.joint == -1


def test_back_in_time_and_with_a_bare_function():
    ts = jnp.linspace(1.0, -1.0, 5)
    motion = jd.simulate(
        *(pendulum(0.0), REST, jnp.ones(1), ts), event=lambda t, q, qd: t + 2 * q[0]
    )  # q = t - 1
    np.testing.assert_allclose(motion.t, [1, 2 / 3, 2 / 3, 2 / 3, 2 / 3], atol=1e-12)
    np.testing.assert_allclose(motion.q[-1], -1 / 3, atol=1e-12)


def test_a_joint_of_a_free_robot_is_called_by_its_number():
    """Two wheels on one axis, which turn against each other: q̇ stays as it is."""
    wheel = {"mass": 1.0, "inertia": np.diag([0.1, 0.1, 0.1])}
    model = jd.build(
        [jd.Link("body", kind="free", **wheel),
         jd.Link("wheel", parent="body", speed=1.5, **wheel)],
        gravity=(0.0, 0.0, 0.0),
    )  # fmt: skip
    qd0 = jnp.zeros(7).at[2].set(-0.5).at[6].set(1.0)
    tau = jnp.zeros(7).at[6].set(0.05)  # on half the inertia of a wheel: q̈ = 1
    motion = jd.simulate(
        *(model, jd.neutral(model), qd0, TS), tau=tau, event=jd.events.speed_limit()
    )
    np.testing.assert_allclose(motion.t[-1], 0.5, atol=1e-8)
    assert motion.status.joint == 1
    assert motion.status.describe(model).endswith("step 2: joint 'wheel_joint'")


# motions that cannot be continued


def test_a_motion_without_a_force_stops_the_others_not():
    """A torque that is no number once q > 1/2; one robot is there, one never is."""

    def broken(t, q, qd):
        return jnp.where(q > 0.5, jnp.nan, 0.0 * q)

    def run(q0, qd0):
        model = pendulum(0.0)
        return jd.simulate(model, q0, qd0, TS, tau=broken, throw=False)

    q0 = jnp.array([[0.0], [0.0], [0.6], [jnp.nan]])
    motions = jax.jit(jax.vmap(run))(q0, jnp.array([[1.0], [-1.0], [1.0], [0.0]]))
    assert motions.status.reason.tolist() == [NOT_FINITE, 0, NOT_FINITE, NOT_FINITE]
    assert motions.status.step.tolist() == [2, -1, 0, 0]
    np.testing.assert_allclose(motions.q[1, :, 0], -TS, atol=1e-12)
    np.testing.assert_allclose(motions.q[0, 3:], 0.5, atol=1e-12)
    np.testing.assert_allclose(motions.t[0, 3:], 0.5, atol=1e-12)
    np.testing.assert_array_equal(motions.q[2], 0.6)
    np.testing.assert_array_equal(motions.status.sound.sum(1), [3, 7, 1, 0])
    with pytest.raises(eqx.EquinoxRuntimeError, match="left the finite numbers"):
        jd.simulate(pendulum(0.0), q0[0], jnp.ones(1), TS, tau=broken)


def test_too_few_steps_are_an_error_or_a_status():
    def run(throw):
        q0 = jnp.ones(1)
        return jd.simulate(pendulum(), q0, REST, TS, max_steps=8, throw=throw)

    with pytest.raises(eqx.EquinoxRuntimeError, match="Raise max_steps"):
        run(True)
    motion = run(False)
    assert motion.status.reason == NOT_SOLVED and not motion.status.ok
    assert np.isfinite(motion.q).all() and motion.t[-1] < TS[-1]
    np.testing.assert_array_equal(motion.status.sound, motion.t == TS)


def test_wrong_names_are_refused():
    with pytest.raises(Exception, match="up', 'down"):
        jd.events.Crossing(spring, "sideways")
    with pytest.raises(ValueError, match="'tsit5', 'dopri8', 'kvaerno5', or one of"):
        jd.simulate(pendulum(), REST, REST, TS, solver="rk4")
