"""Simulated motions against recorded ones, conservation laws and differences."""

import json
from pathlib import Path

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline

import jaxdenoc as jd
from jaxdenoc.simulate._torque import as_function

from ..support.robots import state

cites = pytest.mark.cites
GOLDEN = Path(__file__).parents[1] / "golden"


def golden(name):
    return json.loads((GOLDEN / name).read_text())


def runs_as(motion, data, tol):
    np.testing.assert_allclose(motion.t, data["t"], atol=1e-15)
    np.testing.assert_allclose(motion.q, data["q"], rtol=0, atol=tol)
    speed = np.abs(data["qd"]).max()
    np.testing.assert_allclose(motion.qd, data["qd"], rtol=0, atol=10 * tol * speed)
    assert motion.status.all()


def keeps_its_energy(motion, model, tol):
    energy = np.array(motion.energy(model))
    scale = np.array(
        jax.vmap(jd.kinetic_energy, (None, 0, 0))(model, motion.q, motion.qd)
    )
    assert np.ptp(energy) < tol * scale.max()


@pytest.mark.slow
@cites("Saha 1999, section 5.2: free fall of the Stanford arm", "MATH 16: 1e-8")
def test_the_stanford_arm_falls_as_recorded():
    data, arm = golden("stanford_freefall.json"), jd.robots.stanford_arm()
    q0, ts = jnp.asarray(data["q0"]), jnp.asarray(data["t"])
    motion = jd.simulate(
        *(arm, q0, jnp.zeros(6), ts), solver=diffrax.Dopri8(), rtol=1e-11, atol=1e-12
    )
    runs_as(motion, data, 1e-8)
    np.testing.assert_array_equal(motion.tau, 0)
    np.testing.assert_allclose(motion.energy(arm), data["energy"], rtol=0, atol=1e-8)
    keeps_its_energy(motion, arm, 1e-9)


@cites("MATH 16: planar free fall amplifies integrator error, tolerance 1e-7")
def test_the_planar_arm_falls_as_recorded():
    data, arm = golden("planar_3link.json")["freefall"], jd.robots.planar_arm()
    ts = jnp.asarray(data["t"])
    motion = jd.simulate(
        *(arm, jnp.zeros(3), jnp.zeros(3), ts), solver=diffrax.Dopri8(), rtol=1e-11,
        atol=1e-12,
    )  # fmt: skip
    runs_as(motion, data, 1e-7)
    keeps_its_energy(motion, arm, 1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("n", [4, 10, 20])
@cites("Condition-number note: rods swinging from 30 degrees off the vertical")
def test_chains_swing_as_recorded(n):
    data = golden("chain_swing.json")
    gravity = data["gravity_vector"]
    chain = jd.robots.rod_chain(n, mass=data["m"], length=data["l"], gravity=gravity)
    data = data["chains"][str(n)]
    ts, rest = jnp.asarray(data["t"]), jnp.zeros(n)
    motion = jd.simulate(
        *(chain, rest, rest, ts), solver=diffrax.Dopri8(), rtol=1e-10, atol=1e-10
    )
    runs_as(motion, data, 1e-6)
    keeps_its_energy(motion, chain, 1e-8)


@pytest.mark.slow
@cites("MATH 3.1: without gravity nothing acts on a free body", "MATH 1.4: free flyer")
def test_a_free_robot_keeps_its_momentum_and_its_unit_quaternion():
    model = jd.robots.random_tree(jr.key(7), 3, True)
    g = np.array(model.gravity)
    q0, qd0, _ = state(model)
    ts = jnp.linspace(0.0, 1.0, 6)
    motion = jd.simulate(model, q0, qd0, ts, rtol=1e-9, atol=1e-9)
    momentum = jax.vmap(jd.centroidal_momentum, (None, 0, 0))(
        model, motion.q, motion.qd
    )
    fall = np.zeros((6, 6))
    fall[:, 3:] = float(model.mass.sum()) * np.array(ts)[:, None] * g
    expected = np.array(momentum[0]) + fall
    np.testing.assert_allclose(momentum, expected, rtol=0, atol=1e-6)
    np.testing.assert_allclose(jnp.linalg.norm(motion.q[:, 3:7], axis=1), 1, rtol=1e-14)
    keeps_its_energy(motion, model, 1e-6)
    centre = jnp.stack([jd.center_of_mass(model, q) for q in motion.q])
    start, speed = np.array(centre[0]), np.array(momentum[0, 3:] / model.mass.sum())
    t = np.array(ts)[:, None]
    np.testing.assert_allclose(centre, start + t * speed + t**2 / 2 * g, atol=1e-6)


# a pendulum, one compilation each


def pendulum(**more):
    return jd.build(
        [jd.Link("rod", mass=2.0, com=(0.5, 0.0, 0.0), inertia=np.diag([0, 0.1, 0.1]),
                 **more)],
        gravity=(0.0, 0.0, 0.0),
    )  # fmt: skip


ABOUT_JOINT = 0.1 + 2.0 * 0.25
TS = jnp.linspace(0.0, 1.0, 5)
REST = jnp.zeros(1)


@cites("MATH 6.1: q̈ = ℳ⁻¹ (τ - bias)")
def test_tau_as_a_constant_a_function_and_nothing():
    model = pendulum()
    tau = jnp.array([0.3])
    constant = jd.simulate(model, REST, REST, TS, tau=tau)
    t = np.array(TS)
    expected = 0.3 / ABOUT_JOINT * t**2 / 2
    np.testing.assert_allclose(constant.q[:, 0], expected, atol=1e-8)
    np.testing.assert_allclose(constant.tau, 0.3)

    def spring(t, q, qd):
        return -ABOUT_JOINT * 4.0 * q + 0 * t

    swing = jd.simulate(model, jnp.array([0.2]), REST, TS, tau=spring)
    np.testing.assert_allclose(swing.q[:, 0], 0.2 * np.cos(2 * t), atol=1e-7)
    np.testing.assert_allclose(swing.tau, -4 * ABOUT_JOINT * swing.q, rtol=1e-12)

    def in_time(t, q, qd):
        return (ABOUT_JOINT * 6 * t)[None]

    ramp = jd.simulate(model, REST, REST, TS, tau=in_time)
    np.testing.assert_allclose(ramp.q[:, 0], t**3, atol=1e-7)

    alone = jd.simulate(model, REST, jnp.array([0.5]), TS)
    np.testing.assert_allclose(alone.q[:, 0], 0.5 * t, atol=1e-12)
    np.testing.assert_array_equal(alone.tau, 0)


def test_time_may_start_anywhere():
    model = pendulum()
    late = jd.simulate(
        *(model, REST, REST, TS + 3.0), tau=lambda t, q, qd: (ABOUT_JOINT * 6 * t)[None]
    )
    t = np.array(TS)
    np.testing.assert_allclose(late.q[:, 0], t**3 + 9 * t**2, atol=1e-6)


@cites("MATH 6.1: q̈ = ℳ⁻¹ (τ - bias), less d θ̇ + c tanh(θ̇ / speed)")
def test_damping_and_friction_take_energy_away():
    model = pendulum(damping=0.3)
    motion = jd.simulate(model, REST, jnp.array([2.0]), TS)
    expected = 2 * np.exp(-0.3 / ABOUT_JOINT * np.array(TS))
    np.testing.assert_allclose(motion.qd[:, 0], expected, atol=1e-7)
    assert (np.diff(np.array(motion.energy(model))) < 0).all()
    rubbing = eqx.tree_at(
        lambda m: (m.damping, m.friction), model, (jnp.zeros(1), jnp.array([0.2]))
    )
    motion = jd.simulate(rubbing, REST, jnp.array([2.0]), TS)
    expected = 2 - 0.2 / ABOUT_JOINT * np.array(TS)  # far above the friction's speed
    np.testing.assert_allclose(motion.qd[:, 0], expected, atol=1e-6)


def test_float32_stays_float32():
    model = jax.tree.map(lambda x: x.astype("float32"), pendulum())
    rest = REST.astype("float32")
    ts, tau = TS.astype("float32"), jnp.ones(1, "float32")
    motion = jd.simulate(model, rest, rest, ts, tau=tau, rtol=1e-5, atol=1e-5)
    samples = motion.t, motion.q, motion.qd, motion.tau
    assert {x.dtype for x in samples} == {jnp.dtype("float32")}
    np.testing.assert_allclose(motion.q[-1, 0], 0.5 / ABOUT_JOINT, rtol=1e-4)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"q0": jnp.zeros(2)}, r"q has shape \(2,\).* needs \(1,\)"),
        ({"qd0": jnp.zeros(2)}, r"qd has shape \(2,\).* needs \(1,\)"),
        ({"ts": TS[:1]}, r"ts has shape \(1,\).* Give two or more"),
    ],
    ids=["q", "qd", "ts"],
)
def test_wrong_shapes_are_refused(changes, message):
    given = {"q0": REST, "qd0": REST, "ts": TS} | changes
    with pytest.raises(jd.ModelError, match=message):
        jd.simulate(pendulum(), **given)


def test_a_wrong_tau_is_refused():
    """A constant asked directly: `simulate`'s annotation, checked here, comes first."""
    model, tau = pendulum(), jnp.zeros(3)
    with pytest.raises(jd.ModelError, match=r"tau has shape \(3,\).* needs \(1,\)"):
        as_function(model, tau, jnp.float64)
    with pytest.raises(jd.ModelError, match=r"tau has shape \(3,\).* needs \(1,\)"):
        jd.simulate(model, REST, REST, TS, tau=lambda t, q, qd: tau)


def test_a_motion_that_is_not_finite_says_so():
    motion = jd.Trajectory(
        TS, jnp.zeros((5, 1)).at[2, 0].set(jnp.nan), *[jnp.zeros((5, 1))] * 2
    )
    np.testing.assert_array_equal(motion.status, [True, True, False, True, True])


# tables of joint forces


def between(kind, t):
    """Rows at uneven times, and what the table makes of them."""
    times, rows = np.array([0.0, 0.3, 0.4, 1.0]), np.array([[1.0, -2.0, 0.5, 3.0]]).T
    table = jd.TorqueTable(times, rows, kind)
    return times, rows, jax.vmap(lambda t: table(t, REST, REST))(jnp.asarray(t))


@cites("an interpolant meets its rows; Hermite with the slopes of parabolas")
def test_a_table_between_its_rows():
    t = np.linspace(-0.5, 1.5, 101)
    times, rows, line = between("linear", t)
    np.testing.assert_allclose(line[:, 0], np.interp(t, times, rows[:, 0]), atol=1e-15)
    _, _, held = between("hold", t)
    last = np.clip(np.searchsorted(times, t, side="right") - 1, 0, 3)
    np.testing.assert_array_equal(held, rows[last])
    _, _, cubic = between("cubic", t)
    slopes = [
        np.polyval(np.polyder(np.polyfit(times[i], rows[i, 0], 2)), times[k])
        for k, i in enumerate([[0, 1, 2], [0, 1, 2], [1, 2, 3], [1, 2, 3]])
    ]
    expected = CubicHermiteSpline(times, rows[:, 0], slopes)(np.clip(t, 0, 1))
    np.testing.assert_allclose(cubic[:, 0], expected, atol=1e-12)


@cites("q̇ = ∫ τ dt / I; a row held until the next")
def test_a_held_table_loses_no_accuracy_at_its_jumps():
    """Rows at samples, between them, before the start, at the end and beyond it."""
    model = pendulum()
    times = np.array([-1.0, 0.1, 0.5, 0.71, 1.0, 1.5])
    rows = np.array([9.0, 1.0, -3.0, 2.0, 50.0, 50.0])
    table = jd.TorqueTable(times, rows[:, None], "hold")
    motion = jd.simulate(model, REST, REST, TS, tau=table, rtol=1e-6, atol=1e-6)
    fine = np.linspace(0.0, 1.0, 100_001)
    acceleration = rows[np.searchsorted(times, fine[:-1] + 5e-6) - 1] / ABOUT_JOINT
    speed = np.r_[0.0, np.cumsum(acceleration) * 1e-5][::25_000]
    np.testing.assert_allclose(motion.qd[:, 0], speed, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(motion.t, TS)
    np.testing.assert_array_equal(motion.tau[:, 0], [9, 1, -3, 2, 50])
    np.testing.assert_array_equal(table.jumps, times[1:])


@cites("∂q̇/∂τ_k = ∫ hat_k dt / I of a linear table")
def test_a_motion_by_the_rows_of_its_table():
    model = pendulum()

    def end(rows):
        table = jd.TorqueTable(jnp.array([0.0, 0.25, 1.0]), rows)
        motion = jd.simulate(
            *(model, REST, REST, TS), tau=table, rtol=1e-10, atol=1e-10, max_steps=128
        )
        return motion.qd[-1, 0]

    gradient = jax.jit(jax.grad(end))(jnp.array([[1.0], [2.0], [-1.0]]))
    hats = np.array([0.125, 0.5, 0.375]) / ABOUT_JOINT
    np.testing.assert_allclose(gradient[:, 0], hats, rtol=0, atol=1e-7)


def test_wrong_tables_are_refused():
    rows = jnp.zeros((3, 1))
    with pytest.raises(jd.ModelError, match=r"t has shape \(2,\) and tau \(3, 1\)"):
        jd.TorqueTable(jnp.array([0.0, 1.0]), rows)
    with pytest.raises(jd.ModelError, match=r"t\[1\] = 1.0 and t\[2\] = 1.0.*Sort"):
        jd.TorqueTable(jnp.array([0.0, 1.0, 1.0]), rows)
    with pytest.raises(eqx.EquinoxRuntimeError, match="must increase"):
        eqx.filter_jit(jd.TorqueTable)(jnp.array([0.0, 2.0, 1.0]), rows)
    with pytest.raises(Exception, match=r"linear'?, '?hold'?, '?cubic"):
        jd.TorqueTable(jnp.arange(3.0), rows, "steps")
    with pytest.raises(jd.ModelError, match=r"tau has shape \(2,\).* needs \(1,\)"):
        table = jd.TorqueTable(jnp.arange(3.0), jnp.zeros((3, 2)))
        jd.simulate(pendulum(), REST, REST, TS, tau=table)


@cites("J&R 8.1: e^{-2ct} of the energy under ε = -c ν")
@pytest.mark.parametrize("rates", ["nu", "xi"])
def test_a_law_of_control_in_diagonal_rates(rates):
    model = pendulum()
    law = jd.control.rate_feedback(model, 1.5)
    motion = jd.simulate(model, REST, jnp.array([2.0]), TS, tau=law, rates=rates)
    expected = 2 * np.exp(-1.5 * np.array(TS))
    np.testing.assert_allclose(motion.qd[:, 0], expected, rtol=0, atol=1e-7)


# derivatives and batches, on two rods


@pytest.mark.slow
@cites("Saha 1999, section 5.2: RFDSIM, differentiated")
def test_reverse_mode_agrees_with_central_differences():
    model = jd.robots.rod_chain(2)
    ts = jnp.linspace(0.0, 0.3, 3)

    @jax.jit
    def end(q0, qd0):
        motion = jd.simulate(model, q0, qd0, ts, rtol=1e-10, atol=1e-10, max_steps=256)
        return jnp.concatenate([motion.q[-1], motion.qd[-1]])

    weights = jnp.array([1.0, -2.0, 0.5, 0.3])
    gradient = jax.jit(jax.grad(lambda q0, qd0: weights @ end(q0, qd0), argnums=(0, 1)))
    q0, qd0 = jnp.array([0.4, -0.7]), jnp.array([0.5, 1.0])
    found = np.concatenate(gradient(q0, qd0))
    h = 1e-4
    expected = [
        float(weights @ (end(q0 + e[:2], qd0 + e[2:]) - end(q0 - e[:2], qd0 - e[2:])))
        / (2 * h)
        for e in jnp.asarray(h * np.eye(4))
    ]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


@pytest.mark.slow
def test_a_batch_of_starts_is_the_single_runs():
    model = jd.robots.rod_chain(2)
    ts = jnp.linspace(0.0, 0.4, 3)
    q0 = jr.normal(jr.key(0), (4, 2))
    qd0 = jr.normal(jr.key(1), (4, 2))

    def run(q0, qd0):
        return jd.simulate(model, q0, qd0, ts)

    together = jax.vmap(run)(q0, qd0)
    assert together.q.shape == (4, 3, 2)
    for k in range(4):
        alone = run(q0[k], qd0[k])
        np.testing.assert_allclose(together.q[k], alone.q, rtol=0, atol=1e-11)
        np.testing.assert_allclose(together.qd[k], alone.qd, rtol=0, atol=1e-11)
