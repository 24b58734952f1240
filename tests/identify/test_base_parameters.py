"""Base parameters: their number, their sums, and what no torque shows: MATH 11."""

from functools import cache
from importlib import import_module
from warnings import catch_warnings, simplefilter

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

import jaxdenoc as jd
from jaxdenoc.identify import Parameters, factorized, parameters_of
from jaxdenoc.identify._base_parameters import analysed

from ..support.oracle import Oracle, robot_file
from ..support.robots import tree

KNOWN = {"panda": 43, "ur5": 36, "stanford": 33}  # without the joints' own
FILES = {
    "panda": "panda_description/urdf/panda.urdf",
    "ur5": "ur_description/urdf/ur5_robot.urdf",
}


@cache
def robot(name):
    if name == "stanford":
        return jd.robots.stanford_arm()
    with catch_warnings():
        simplefilter("ignore")
        model = jd.load(robot_file(FILES[name]), mimic="lock")
    fingers = [s for s in model.joint_names if "finger" in s]
    return jd.lock(model, dict.fromkeys(fingers, 0.0))


@cache
def of_robot(name, joints=False):
    return jd.base_parameters(robot(name), joints=joints)


def theirs(model, count=60):
    """Pinocchio's regressor for states of its own choice, stacked."""
    oracle, rng = Oracle(model), np.random.default_rng(5)
    found = []
    for _ in range(count):
        state = rng.normal(size=(3, model.nv))
        q, v, a = oracle.configuration(state[0]), *state[1:]
        Y = pin.computeJointTorqueRegressor(oracle.pin, oracle.data, q, v, a)
        found.append(np.array(Y)[oracle.v])
    return np.concatenate(found)


@pytest.mark.cites("MATH 11: the regressor equals Pinocchio's")
@pytest.mark.parametrize("name", KNOWN)
def test_their_number_and_span_are_those_of_pinocchio(name):
    base, Y = of_robot(name), theirs(robot(name))
    lengths = np.linalg.norm(Y, axis=0)
    seen = lengths > 1e-10
    s = np.linalg.svd(Y[:, seen] / lengths[seen], compute_uv=False)
    assert s[KNOWN[name] - 1] > 1e-3 and s[KNOWN[name]] < 1e-12
    assert base.rank == KNOWN[name] and base.gap > 1e10
    assert base.condition < 100
    assert np.abs(Y @ base.nullspace).max() < 1e-11 * np.abs(Y).max()
    # Y π = Y_1 β, for any π
    pi = np.random.default_rng(0).normal(size=Y.shape[1])
    beta = base.project(pi)
    np.testing.assert_allclose(Y[:, base.independent] @ beta, Y @ pi, atol=1e-10)
    names = np.array(base.parameters.names)
    assert set(base.invisible) == set(names[~seen])


@pytest.mark.parametrize("name", ["panda"])
def test_with_joints(name):
    """One armature is seen in a sum with a moment of link 1, another one of link 2."""
    base, model = of_robot(name, True), robot(name)
    assert base.rank == KNOWN[name] + 3 * 7 - 2
    assert base.names[0] == (
        "panda_link1.Izz + panda_link2.Iyy + panda_joint1.armature"
    )
    assert "panda_joint7.friction" in base.names
    assert base.combination.shape == (62, 91)
    some = jd.base_parameters(model, joints=("damping",))
    assert some.rank == KNOWN[name] + 7 and len(some.parameters) == 77
    with pytest.raises(jd.ModelError, match=r"'inertia'; it can have armature"):
        jd.base_parameters(model, joints=("inertia",))


def test_the_null_space_is_orthonormal_and_of_no_effect():
    base = of_robot("ur5")
    N = base.nullspace
    assert N.shape == (60, 24)
    np.testing.assert_allclose(N.T @ N, np.eye(24), atol=1e-12)
    np.testing.assert_allclose(base.combination @ N, 0, atol=1e-12)
    alone = base.alone()
    assert alone.sum() > 0 and np.abs(N[alone]).max() < 1e-15
    assert np.abs(N[~alone]).sum(axis=1).min() > 1e-3
    with pytest.raises(jd.ModelError, match=r"60 parameters"):
        base.project(np.zeros(10))


def test_in_words():
    """Those of a planar arm of rods are known by heart: m c + l m of what is beyond."""
    base = jd.base_parameters(jd.robots.planar_arm(), joints=False)
    assert base.names == (
        "link1.m·cx + 0.3·link2.m + 0.3·link3.m",
        "link1.m·cy",
        "link1.Izz + 0.09·link2.m + 0.09·link3.m",
        "link2.m·cx + 0.25·link3.m",
        "link2.m·cy",
        "link2.Izz + 0.0625·link3.m",
        "link3.m·cx",
        "link3.m·cy",
        "link3.Izz",
    )
    text = base.describe()
    assert text.startswith("9 base parameters of 30; condition number of the normal")
    assert "\n  link2.m·cy\n" in text
    assert text.endswith("link3.m·cz, link3.Ixx, link3.Ixy, link3.Iyy, link3.Ixz, "
                         "link3.Iyz")  # fmt: skip
    assert "link1.m" in base.invisible and "link2.m" not in base.invisible
    assert base.words(0, digits=1, least=2.0) == "link1.m·cx"
    # of the Stanford arm, inner links stand for outer ones
    names = of_robot("stanford").names
    assert names[0] == "link1.Izz + link2.Iyy + link3.Izz"
    assert names[8] == "link3.m + link4.m + link5.m + link6.m"
    assert "link3.m·cz + link4.m·cz + 0.6·link5.m + 0.6·link6.m" in names
    assert names[-4:] == ("link6.Ixy", "link6.Ixz", "link6.Iyz", "link6.Izz")


def test_no_unit_matters():
    """The same robot in millimetres has as many, in the same sums."""
    arm = jd.robots.stanford_arm()
    small = eqx.tree_at(
        lambda m: (m.placement.translation, m.gravity),
        arm,
        (1e3 * arm.placement.translation, 1e3 * arm.gravity),
    )
    base, other = of_robot("stanford"), jd.base_parameters(small, joints=False)
    np.testing.assert_array_equal(base.independent, other.independent)
    assert other.gap > 1e10
    np.testing.assert_allclose(other.condition, base.condition, rtol=1e-3)
    assert other.names[1] == base.names[1]


def test_free_base_and_tree():
    """All ten of a free base, and none of it for motors that it does not have."""
    free = tree(3, (-1, 0, 0), floating_base=True)
    base = jd.base_parameters(free)
    base_names = [s for s in base.parameters.names if s.startswith("link1.")]
    assert len(base_names) == 10 and not set(base_names) & set(base.invisible)
    assert not any(s.startswith("joint1.") for s in base.parameters.names)
    assert len(base.parameters) == 3 * 10 + 3 * 2
    assert base.gap > 1e10


def motion(model, k, seed=0, still=()):
    rng = np.random.default_rng(seed)
    q, qd, qdd = rng.normal(size=(3, k, model.nv))
    for j in still:
        q[:, j] = qd[:, j] = qdd[:, j] = 0
    return jd.Measurements(np.arange(k), q, qd, qdd, rng.normal(size=q.shape))


def test_a_poor_motion_shows_less():
    arm = jd.robots.planar_arm()
    whole = jd.base_parameters(arm, motion(arm, 40))
    poor = jd.base_parameters(arm, motion(arm, 40, still=(2,)))
    assert whole.rank == 9 + 9 - 1  # an armature beside link1.Izz
    assert poor.rank < whole.rank and "joint3.damping" in poor.invisible
    still = jd.base_parameters(arm, motion(arm, 40, still=(0, 1, 2)), joints=False)
    assert still.rank == 3  # weights of a robot at rest, in one place
    unseen = motion(arm, 4)
    weight = np.zeros_like(unseen.weight)
    unseen = eqx.tree_at(lambda d: d.weight, unseen, weight)
    with pytest.raises(jd.ModelError, match="the data are empty"):
        jd.base_parameters(arm, unseen)


def test_a_gap_that_is_not_clear_is_told():
    rng = np.random.default_rng(0)
    U, V = (np.linalg.qr(rng.normal(size=(n, 3)))[0] for n in (9, 3))
    names = Parameters(("a", "b", "c"), np.arange(3))
    with pytest.warns(jd.ModelWarning, match="not clear how many base parameters"):
        base = analysed(names, U * [1, 3e-9, 3e-10] @ V.T, 1e-9)
    assert base.rank == 2 and base.gap < 100
    with catch_warnings():
        simplefilter("error")
        assert analysed(names, U * [1, 3e-9, 3e-14] @ V.T, 1e-9).rank == 2
        assert analysed(names, U * [1, 3e-9, 3e-10] @ V.T, 1e-12).gap == np.inf


def test_factors_of_chunks_and_logs(monkeypatch):
    """R of all the samples at once, of chunk by chunk, and of two logs added."""
    arm = jd.robots.planar_arm()
    data = motion(arm, 50)
    whole = factorized(arm, data)
    parts = factorized(arm, data[:20]) + factorized(arm, data[20:])
    module = import_module("jaxdenoc.identify._factor")  # behind a function's name
    monkeypatch.setattr(module, "CHUNK", 16)
    chunks = factorized(arm, [data[:30], data[30:]])
    Y = jnp.stack([jd.regressor(arm, *map(jnp.asarray, x), joints=True)
                   for x in zip(data.q, data.qd, data.qdd, strict=True)])  # fmt: skip
    x = np.random.default_rng(2).normal(size=Y.shape[-1])
    want = np.sum((np.array(Y) @ x - data.tau) ** 2, axis=0)
    for factor in (whole, parts, chunks):
        np.testing.assert_allclose(factor.squares(x), want, rtol=1e-12)
        np.testing.assert_allclose(factor.torque_squares(), np.sum(data.tau**2, 0))
        np.testing.assert_array_equal(factor.counts, 50)


def test_selected_parameters_are_put_back():
    arm = jd.robots.stanford_arm()
    some = parameters_of(arm, ("damping",))
    assert some.names[0] == "link1.m" and some.names[-1] == "joint6.damping"
    values = some.of(arm)
    values[3], values[-1] = 0.7, 0.4
    back = some.put(arm, values)
    np.testing.assert_allclose(some.of(back), values, rtol=1e-14, atol=1e-15)
    assert back.damping[-1] == 0.4
    np.testing.assert_array_equal(back.armature, arm.armature)
