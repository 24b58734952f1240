"""A free base on its manifold: accuracy, unit quaternions, derivatives."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import jaxdenoc as jd
from jaxdenoc.simulate._manifold import OnManifold
from jaxdenoc.simulate._motion import Motion
from jaxdenoc.simulate._torque import as_function

cites = pytest.mark.cites
INERTIA = np.diag([0.1, 0.2, 0.25])


def body(gravity=0.0):
    link = jd.Link("body", kind="free", mass=2.0, inertia=INERTIA)
    return jd.build([link], gravity=(0.0, 0.0, -gravity))


def euler(t, y):
    """Euler's equations, and the rotation as a matrix, in NumPy."""
    R, w = y[:9].reshape(3, 3), y[9:]
    turn = np.cross(R, w)  # R ω~, row by row
    return np.r_[turn.ravel(), np.linalg.solve(INERTIA, np.cross(INERTIA @ w, w))]


def rotation(p):
    w, x, y, z = p
    return np.array(
        [[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
         [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
         [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]]
    )  # fmt: skip


SPIN = np.array([0.1, 5.0, 0.3])  # about the middle axis, which tumbles
TS = jnp.linspace(0.0, 2.0, 21)
QD0 = jnp.concatenate([jnp.array(SPIN), jnp.array([0.3, -1.0, 0.2])])


@pytest.fixture(scope="module")
def tumbling():
    start = np.r_[np.eye(3).ravel(), SPIN]
    return solve_ivp(
        *(euler, (0.0, 2.0), start), method="DOP853", rtol=1e-13, atol=1e-14,
        t_eval=np.array(TS),
    ).y.T  # fmt: skip


@cites("Euler: I ω̇ = I ω × ω , Ṙ = R ω~", "Munthe-Kaas: q = q_n exp(δ)")
@pytest.mark.parametrize(
    ("solver", "tol", "error"),
    [("tsit5", 1e-10, 2e-9), ("dopri8", 1e-10, 1e-9),
     pytest.param("kvaerno5", 1e-7, 1e-7, marks=pytest.mark.slow)],
)  # fmt: skip
def test_a_tumbling_body_is_where_euler_says(tumbling, solver, tol, error):
    model = body()
    q0 = jd.neutral(model)
    motion = jd.simulate(model, q0, QD0, TS, solver=solver, rtol=tol, atol=tol)
    turns = np.array([rotation(np.array(p)) for p in motion.q[:, 3:7]])
    np.testing.assert_allclose(turns.reshape(-1, 9), tumbling[:, :9], atol=error)
    np.testing.assert_allclose(motion.qd[:, :3], tumbling[:, 9:], atol=error)
    way = np.array(TS)[:, None] * np.array(QD0[3:])
    np.testing.assert_allclose(motion.q[:, :3], way, atol=error)
    length = np.linalg.norm(motion.q[:, 3:7], axis=1)
    np.testing.assert_allclose(length, 1, rtol=0, atol=1e-14)


@cites("order of Tsit5: an error of h⁵ at the steps and between them")
def test_order_five_between_steps_too(tumbling):
    model = body()
    motion = Motion(model, as_function(model, None, QD0.dtype), "qd")

    @jax.jit
    def turns(h):
        solution = diffrax.diffeqsolve(
            *(diffrax.ODETerm(motion), OnManifold(diffrax.Tsit5(), model), 0.0, 2.0, h),
            (jd.neutral(model), QD0),
            args=True,
            saveat=diffrax.SaveAt(ts=TS),
        )
        return solution.ys[0]

    errors = []
    for steps in (67, 134):  # samples are between steps
        q = np.array(turns(2.0 / steps))
        found = np.array([rotation(p) for p in q[:, 3:7]]).reshape(-1, 9)
        errors.append(np.abs(found - tumbling[:, :9]).max(axis=1)[1:])
        np.testing.assert_allclose(np.linalg.norm(q[:, 3:7], axis=1), 1, atol=1e-14)
    orders = np.log2(errors[0].max() / errors[1].max())
    assert 4.7 < orders < 5.7
    assert errors[0].max() < 3 * errors[0][-1]  # the last sample is a step


@pytest.mark.slow
@cites("MATH 3.1: a body falls by g t² / 2 wherever its base frame is")
def test_reverse_mode_is_finite_at_rest_and_right_in_motion():
    """From the identity at rest; and in motion, beside a difference quotient."""
    model, ts = body(gravity=9.81), jnp.linspace(0.0, 0.2, 3)
    weights = jnp.array([1.0, -2.0, 0.5, 0.3, 0.7, -0.4, 0.2])

    def end(qd0):
        q0 = jd.neutral(model)
        motion = jd.simulate(model, q0, qd0, ts, rtol=1e-9, atol=1e-9, max_steps=64)
        return weights @ motion.q[-1]

    run, h = jax.jit(jax.value_and_grad(end)), 1e-5
    expected = np.r_[0.2 / 2 * np.array(weights[4:]), 0.2 * np.array(weights[:3])]
    np.testing.assert_allclose(run(jnp.zeros(6))[1], expected, atol=1e-9)
    more, less = run(QD0.at[1].add(h))[0], run(QD0.at[1].add(-h))[0]
    quotient = (more - less) / (2 * h)
    np.testing.assert_allclose(run(QD0)[1][1], quotient, rtol=0, atol=1e-5)
