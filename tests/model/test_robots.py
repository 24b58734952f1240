"""The robots to start with."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import jaxdenoc as jd

from ..support.robots import state

cites = pytest.mark.cites
GOLDEN = Path(__file__).parents[1] / "golden"


def golden(name):
    return json.loads((GOLDEN / name).read_text())


@cites("Saha 1999, Table 3", "MATH 15: golden Stanford torques, absolute 1e-10")
def test_stanford_arm():
    data, arm = golden("stanford_arm.json"), jd.robots.stanford_arm()
    assert arm.joint_kinds == ("revolute",) * 2 + ("prismatic",) + ("revolute",) * 3
    q, qd, qdd = (jnp.asarray(data[s][::10]) for s in ("q", "qd", "qdd"))
    tau = jax.jit(jax.vmap(jd.inverse_dynamics, (None, 0, 0, 0)))(arm, q, qd, qdd)
    np.testing.assert_allclose(tau, data["tau"][::10], rtol=0, atol=1e-10)


@cites("MATH 14, S10: the planar arm's parameters are chosen")
def test_planar_arm():
    data, arm = golden("planar_3link.json"), jd.robots.planar_arm()
    np.testing.assert_allclose(arm.mass, data["m"])
    np.testing.assert_allclose(arm.com[:, 0], data["com_from_joint"])
    np.testing.assert_allclose(arm.com[:, 1:], 0)
    np.testing.assert_allclose(arm.inertia[:, 2, 2], data["Izz_com"])
    np.testing.assert_allclose(arm.gravity, data["gravity"])
    np.testing.assert_allclose(arm.axis, [[0, 0, 1]] * 3)
    reach = np.array([[0, 0, 0], [data["a"][0], 0, 0], [data["a"][1], 0, 0]])
    np.testing.assert_allclose(arm.placement.translation, reach)
    np.testing.assert_allclose(arm.placement.rotation, [np.eye(3)] * 3)
    q, qd, qdd = (jnp.asarray(data[s][::20]) for s in ("q", "qd", "qdd"))
    tau = jax.jit(jax.vmap(jd.inverse_dynamics, (None, 0, 0, 0)))(arm, q, qd, qdd)
    np.testing.assert_allclose(tau, data["tau"][::20], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "case", ["text_values_m2.2", "fitted_thin_rod", "fitted_solid_rod"]
)
@cites("Condition-number note: the matrix of four rods", "MATH 14, C1")
def test_rod_chain(case):
    data = golden("chain4_condition.json")
    given = data["cases"][case]
    chain = jd.robots.rod_chain(
        4,
        mass=given["m"],
        length=given["l"],
        axial_inertia=given["extra_Izz_per_link"],
        gravity=data["gravity_vector"],
    )
    q = jnp.asarray(data["q"], float)
    np.testing.assert_allclose(jd.mass_matrix(chain, q), given["I"], rtol=1e-12)
    qdd = jd.forward_dynamics(chain, q, jnp.zeros(4), jnp.zeros(4))
    np.testing.assert_allclose(qdd, given["qdd"], rtol=1e-9)


def test_rod_chains_are_straight_along_x():
    chain = jd.robots.rod_chain(3, mass=2.0, length=0.5, dtype="float32")
    assert chain.name == "rod_chain_3"
    assert chain.mass.dtype == jnp.float32
    poses = jd.forward_kinematics(chain, jnp.zeros(3, "float32"))
    np.testing.assert_allclose(poses[:, :3, 3], [[0, 0, 0], [0.5, 0, 0], [1, 0, 0]])
    np.testing.assert_allclose(chain.inertia[0], np.diag([0, 1, 1]) / 24, rtol=1e-6)


MAKERS = {
    "chain": lambda key: jd.robots.random_chain(key, 5),
    "tree": lambda key: jd.robots.random_tree(key, 5),
    "free tree": lambda key: jd.robots.random_tree(key, 5, True),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_random_robots_come_from_their_key(make):
    one, again, old_style, other = map(
        make, (jr.key(1), jr.key(1), jr.PRNGKey(1), jr.key(2))
    )
    for same in (again, old_style):
        assert jax.tree.structure(one) == jax.tree.structure(same)
        for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(same), strict=True):
            np.testing.assert_array_equal(x, y)
    assert (np.array(one.mass) != np.array(other.mass)).all()


@cites("MATH 5.1: D ≥ H M H > 0")
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_random_robots_are_possible_and_well_mixed(make):
    model = make(jr.key(3))
    q, _, _ = state(model)
    M = np.array(jd.mass_matrix(model, q))
    assert np.linalg.eigvalsh(M).min() > 0
    of_joints = np.array([k != "free" for k in model.joint_kinds])
    axes = np.array(model.axis)[of_joints]
    np.testing.assert_allclose(np.linalg.norm(axes, axis=1), 1, rtol=1e-15)
    assert (np.linalg.det(np.array(model.placement.rotation)) > 0.999).all()


def test_random_chains_and_trees_have_the_shape_asked_for():
    chain = jd.robots.random_chain(jr.key(0), 6, dtype="float32")
    assert chain.parent == (-1, 0, 1, 2, 3, 4)
    assert chain.mass.dtype == jnp.float32
    trees = [jd.robots.random_tree(jr.key(s), 12) for s in range(5)]
    assert all(t.n_links == 12 and not t.floating_base for t in trees)
    assert any(t.parent.count(-1) > 1 for t in trees)
    assert len({t.parent for t in trees}) > 1
    free = jd.robots.random_tree(jr.key(0), 12, True)
    assert free.floating_base
    assert free.parent.count(-1) == 1
    assert (free.nq, free.nv) == (18, 17)
    assert "free" not in free.joint_kinds[1:]


def test_joint_kinds_are_drawn_from_those_given():
    drawn = jd.robots.random_chain(jr.key(0), 40).joint_kinds
    assert set(drawn) == {"revolute", "continuous", "prismatic", "helical"}
    few = jd.robots.random_tree(jr.key(0), 20, kinds=("prismatic", "helical"))
    assert set(few.joint_kinds) == {"prismatic", "helical"}
    pitched = np.array(few.pitch) != 0
    np.testing.assert_array_equal(pitched, np.array(few.joint_kinds) == "helical")
    one = jd.robots.random_chain(jr.key(0), 3, kinds=("revolute",))
    assert one.joint_kinds == ("revolute",) * 3
    with pytest.raises(jd.ModelError, match="kind 'ball'"):
        jd.robots.random_chain(jr.key(0), 2, kinds=("ball",))
