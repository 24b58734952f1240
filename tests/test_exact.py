"""The fifty digits that `benchmarks/precision.py` measures by: are they right?

Against Pinocchio, the golden files and the library in float64, which share nothing with
them, and to all digits against what the definitions say.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import jaxdenoc as jd

from .dynamics.test_golden import SAMPLES, golden, sample_model
from .support.benchmark import benchmark
from .support.oracle import Oracle, error
from .support.robots import state, tree

exact = benchmark("exact")
cites = pytest.mark.cites
pytestmark = pytest.mark.usefixtures("interpreted", "link_by_link")

FORK = (-1, 0, 1, 0, 3, 4)  # revolute, prismatic, helical and continuous joints


def case(floating_base):
    """A tree with armature, damping and friction; q, θ̇, something and wrenches."""
    model = tree(7, FORK, floating_base)
    motors = 0.01 * jnp.arange(1.0, 1 + model.nv)
    where = lambda m: (m.armature, m.damping, m.friction)  # noqa: E731
    model = eqx.tree_at(where, model, (motors, 2 * motors, 3 * motors))
    return model, *state(model), jr.normal(jr.key(8), (model.n_links, 6))


def floats(x):
    return exact.halves(x)[0]


def pairs(robot, fext):
    rows = [robot.numbers(row) for row in fext]
    return [(tuple(row[:3]), tuple(row[3:])) for row in rows]


@cites("MATH 3.1, 4, 6.2")
@pytest.mark.parametrize("floating_base", [False, True])
def test_beside_pinocchio_and_the_library(floating_base):
    model, q, qd, x, fext = case(floating_base)
    robot = exact.Robot(model)
    at = [robot.numbers(y) for y in (q, qd, x)]
    wrenches = pairs(robot, fext)
    found = robot.inverse_dynamics(*at, wrenches)
    assert error(floats(found), jd.inverse_dynamics(model, q, qd, x, fext)) < 1e-13
    found = robot.forward_dynamics(*at, wrenches)
    assert error(floats(found), jd.forward_dynamics(model, q, qd, x, fext)) < 1e-12

    none = jnp.zeros(model.nv)
    where = lambda m: (m.armature, m.damping, m.friction)  # noqa: E731
    model = eqx.tree_at(where, model, (none, none, none))
    robot, oracle = exact.Robot(model), Oracle(model)
    for name, args in (
        ("inverse_dynamics", (q, qd, x)),
        ("forward_dynamics", (q, qd, x)),
        ("mass_matrix", (q,)),
    ):
        found = getattr(robot, name)(*map(robot.numbers, args))
        assert error(floats(found), getattr(oracle, name)(*args)) < 1e-12


@cites("MATH 15: golden Stanford torques, soa_states, 1e-10")
def test_golden_numbers():
    data, model = golden("stanford_arm.json"), jd.robots.stanford_arm()
    robot = exact.Robot(model)
    for k in (0, 33, 70):
        at = [robot.numbers(data[s][k]) for s in ("q", "qd", "qdd")]
        found = robot.inverse_dynamics(*at)
        np.testing.assert_allclose(floats(found), data["tau"][k], rtol=0, atol=1e-12)
    for sample in SAMPLES[:2]:
        model, order = sample_model(sample)
        robot = exact.Robot(model)
        q, qd, qdd, tau, fext = (
            np.array(sample[s], float)[order]
            for s in ("q_exponential", "qd", "qdd_in", "tau_in", "fext_body")
        )
        q, qd, qdd, tau = map(robot.numbers, (q, qd, qdd, tau))
        wrenches = pairs(robot, fext)
        known = {s: np.ravel(sample[s])[order] for s in ("tau_ID", "qdd_FD")}
        found = robot.inverse_dynamics(q, qd, qdd, wrenches)
        assert error(floats(found), known["tau_ID"]) < 1e-12
        found = robot.forward_dynamics(q, qd, tau, wrenches)
        assert error(floats(found), known["qdd_FD"]) < 1e-12
        M = np.array(sample["M"], float)[np.ix_(order, order)]
        assert error(floats(robot.mass_matrix(q)), M) < 1e-12


def apart(found, known):
    """To all digits: the largest difference over the largest number."""
    differences = [abs(x - y) for x, y in zip(found, known, strict=True)]
    return float(max(differences) / max(abs(y) for y in known))


@cites("MATH 4, 6.1, 10.1", "MATH 12")
@pytest.mark.parametrize("floating_base", [False, True])
def test_all_digits(floating_base):
    """The recursions are inverse to each other, and derivatives agree."""
    model, q, qd, x, _ = case(floating_base)
    robot = exact.Robot(model)
    q, qd, x = map(robot.numbers, (q, qd, x))
    assert exact.DIGITS == 50
    tau = robot.inverse_dynamics(q, qd, x)
    assert apart(robot.forward_dynamics(q, qd, tau), x) < 1e-46
    M = robot.mass_matrix(q)
    product = [sum(a * b for a, b in zip(row, x, strict=True)) for row in M]
    assert apart(robot.solve(q, product), x) < 1e-46

    rng = np.random.default_rng(0)
    directions = [robot.numbers(rng.normal(size=len(y))) for y in (q, qd, tau)]
    weights = robot.numbers(rng.normal(size=model.nv))
    slope = robot.slope(q, qd, tau, *directions)
    gradient = robot.gradient(q, qd, tau, weights)
    along = [y for direction in directions for y in direction]
    left = sum(a * b for a, b in zip(weights, slope, strict=True))
    right = sum(a * b for a, b in zip(gradient, along, strict=True))
    assert abs(left - right) < 1e-25 * abs(left)


@cites("MATH 10.1", "MATH 12")
@pytest.mark.parametrize("floating_base", [False, True])
def test_derivatives_and_motion(floating_base):
    model, q, qd, x, _ = case(floating_base)
    robot = exact.Robot(model)
    at = [robot.numbers(y) for y in (q, qd, x)]
    back = jax.vjp(lambda *s: jd.forward_dynamics(model, *s), q, qd, x)[1](x)
    found = floats(robot.gradient(*at, at[2]))
    assert error(jnp.concatenate(back), found) < 1e-12

    motion = jd.rollout(model, q, qd, None, 2**-7, steps=4, limits="ignore")
    end = robot.rollout(*at[:2], 2**-7, 4)
    assert error(motion.q[-1], floats(end[0])) < 1e-13
    assert error(motion.qd[-1], floats(end[1])) < 1e-12


def test_the_same_by_mpmath():
    model, q, qd, x, _ = case(True)
    fast, slow = exact.Robot(model), exact.Robot(model, exact.MPMATH)
    results = []
    for robot in (fast, slow):
        at = [robot.numbers(y) for y in (q, qd, x)]
        found = robot.forward_dynamics(*at), robot.gradient(*at, at[2])
        results.append([exact.mpmath.mpf(str(y)) for part in found for y in part])
    assert apart(*results) < 1e-46


def test_rounded_rotations_stand_for_the_nearest():
    model = jax.tree.map(lambda y: y.astype("float32"), tree(7, FORK))
    robot = exact.Robot(model)
    for R, given in zip(robot.R_tree, model.placement.rotation, strict=True):
        near = np.array(R, float)
        u, _, v = np.linalg.svd(np.asarray(given, float))
        np.testing.assert_allclose(near, u @ v, atol=1e-15)
        off = exact.mat_sub(exact.mat_mul(exact.transpose(R), R), robot._identity())
        assert max(abs(y) for row in off for y in row) < 1e-49


def test_error_has_more_digits_than_what_it_measures():
    robot = exact.Robot(jd.robots.rod_chain(1))
    third = robot.one / 3
    assert exact.error([1 / 3], [third]) == float(abs(1 / 3 - third) / third)
    assert 0 < exact.error([1 / 3], [third]) < 1e-16
    assert np.isnan(exact.error([np.nan], [third]))
