"""A locked joint against the same joint held still."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdenoc as jd

from ..support.robots import state
from .test_build import link

cites = pytest.mark.cites


@cache
def robot():
    """A tree with one joint of every kind to lock, and others that stay."""
    links = [
        link("trunk", damping=0.2),
        link("revolute", "trunk", "revolute"),
        link("prismatic", "revolute", "prismatic", armature=0.1),
        link("helical", "trunk", "helical", pitch=0.3),
        link("continuous", "helical", "continuous", friction=0.4),
        link("tip", "continuous", "revolute", upper=1.5),
        link("tool", "prismatic", "fixed"),
    ]
    model = jd.build(links, gravity=(1.0, -2.0, 9.0), name="tree")
    return eqx.tree_at(lambda m: m.friction_speed, model, jnp.array(0.5))


inverse_dynamics = jax.jit(jd.inverse_dynamics)


@pytest.mark.parametrize(
    "held", [("trunk",), ("prismatic",), ("helical",), ("revolute", "helical", "tip")]
)
@cites("MATH 3.1: inverse dynamics with q̇ = q̈ = 0 at a joint")
def test_a_locked_joint_is_one_that_is_held(held):
    model = robot()
    values = {f"{k}_joint": 0.3 + 0.4 * i for i, k in enumerate(held)}
    locked = jd.lock(model, values)
    left = [i for i, s in enumerate(model.joint_names) if s not in values]
    assert locked.joint_names == tuple(model.joint_names[i] for i in left)
    q, qd, qdd = state(model)
    for s, x in values.items():
        i = model.joint_names.index(s)
        q, qd, qdd = q.at[i].set(x), qd.at[i].set(0), qdd.at[i].set(0)
    here = np.array(left)
    tau = inverse_dynamics(locked, q[here], qd[here], qdd[here])
    expected = inverse_dynamics(model, q, qd, qdd)[here]
    np.testing.assert_allclose(tau, expected, rtol=0, atol=1e-12)


@cites("MATH 1.3: pose of frame B in frame A")
def test_every_link_keeps_its_pose_and_its_name():
    model = robot()
    values = {"prismatic_joint": 0.4, "helical_joint": -1.1, "trunk_joint": 0.7}
    locked = jd.lock(model, values)
    q, _, _ = state(model, 1)
    for s, x in values.items():
        q = q.at[model.joint_names.index(s)].set(x)
    here = np.array([i for i, s in enumerate(model.joint_names) if s not in values])
    assert locked.link_names == ("revolute", "continuous", "tip")
    assert set(locked.frame_names) == {"trunk", "helical", "prismatic", "tool"}
    expected = poses(model, q)
    for name, pose in poses(locked, q[here]).items():
        np.testing.assert_allclose(pose, expected.pop(name), atol=1e-14)
    assert not expected


def poses(model, q):
    """Of links by forward kinematics, of frames by their own function."""
    of_links = jd.forward_kinematics(model, q)
    return dict(zip(model.link_names, of_links, strict=True)) | {
        s: jd.frame_pose(model, q, s) for s in model.frame_names
    }


def test_what_a_model_has_besides_is_kept():
    model = robot()
    locked = jd.lock(model, {"revolute_joint": 0.1})
    here = np.array([0, 2, 3, 4, 5])
    for s in ("armature", "damping", "friction", "q_lower", "q_upper"):
        np.testing.assert_array_equal(getattr(locked, s), getattr(model, s)[here])
    np.testing.assert_array_equal(locked.gravity, model.gravity)
    np.testing.assert_array_equal(locked.friction_speed, 0.5)
    assert (locked.name, locked.base_name) == (model.name, model.base_name)
    small = jax.tree.map(lambda x: x.astype("float32"), model)
    assert jd.lock(small, {"revolute_joint": 0.1}).mass.dtype == jnp.float32
    nothing = jd.lock(model, {})
    assert jax.tree.structure(nothing) == jax.tree.structure(model)
    for x, y in zip(jax.tree.leaves(nothing), jax.tree.leaves(model), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-15, atol=1e-16)


def test_locking_in_two_steps_is_locking_at_once():
    model = robot()
    once = jd.lock(model, {"tip_joint": 0.2, "helical_joint": 0.3})
    twice = jd.lock(jd.lock(model, {"tip_joint": 0.2}), {"helical_joint": 0.3})
    for s in ("mass", "com", "inertia"):
        np.testing.assert_allclose(getattr(once, s), getattr(twice, s), atol=1e-14)


def test_a_joint_of_a_free_robot_can_be_locked_but_not_its_base():
    model = jd.robots.random_tree(jax.random.key(1), 4, True)
    locked = jd.lock(model, {"joint3": 0.4})
    assert (locked.nq, locked.nv, locked.floating_base) == (9, 8, True)
    with pytest.raises(jd.ModelError, match=r"'joint1' is the free base.*Load"):
        jd.lock(model, {"joint1": 0.0})


def test_refused():
    model = robot()
    with pytest.raises(jd.ModelError, match=r"no joint 'elbow'.*trunk_joint"):
        jd.lock(model, {"elbow": 0.0})
    with pytest.raises(jd.ModelError, match="no joint 'tool_joint'"):  # fixed already
        jd.lock(model, {"tool_joint": 0.0})
    with pytest.raises(jd.ModelError, match="no moving link"):
        jd.lock(model, dict.fromkeys(model.joint_names, 0.0))
