"""From links with names to a model: order, fixed joints merged, frames kept."""

import warnings
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import jaxdenoc as jd
from jaxdenoc.model import links_of

from ..support.dense import motion_transform, spatial_inertia
from ..support.robots import state

cites = pytest.mark.cites


def link(name, parent=None, kind="revolute", seed=0, **more):
    """A random link, of a possible inertia."""
    rng = np.random.default_rng([seed, *map(ord, name)])
    R = Rotation.random(rng=rng).as_matrix()
    moments = rng.uniform(0.01, 0.02, 3)
    values = {
        "axis": rng.normal(size=3),
        "rotation": Rotation.random(rng=rng).as_matrix(),
        "translation": rng.uniform(-0.5, 0.5, 3),
        "mass": rng.uniform(0.5, 2),
        "com": rng.uniform(-0.2, 0.2, 3),
        "inertia": R @ np.diag(moments.sum() - moments) @ R.T,
    }
    return jd.Link(name, parent, kind, **(values | more))


def inertia_of(s):
    return spatial_inertia(s.mass, np.array(s.com), np.array(s.inertia))


def as_given(s):
    """M of a link about its origin, from a model."""
    model, i = s
    return spatial_inertia(
        float(model.mass[i]), np.array(model.com[i]), np.array(model.inertia[i])
    )


def pose(s):
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = s.rotation, s.translation
    return T


def carried(M, T):
    """φ M φᵀ for a pose T: the inertia in the axes, about the origin of the parent."""
    X = motion_transform(T[:3, :3], T[:3, 3])
    return X.T @ M @ X


# order


def test_links_leave_branch_by_branch_whatever_their_order():
    links = {
        s.name: s
        for s in [
            link("trunk"),
            link("left", "trunk"),
            link("left_hand", "left"),
            link("right", "trunk"),
            link("right_hand", "right"),
        ]
    }
    one = jd.build(
        [links[s] for s in ("trunk", "left", "right", "left_hand", "right_hand")]
    )
    assert one.link_names == ("trunk", "left", "left_hand", "right", "right_hand")
    assert one.parent == (-1, 0, 1, 0, 3)
    backwards = jd.build(list(links.values())[::-1])
    assert backwards.link_names == (
        *("trunk", "right", "right_hand"),
        *("left", "left_hand"),
    )
    assert backwards.parent == (-1, 0, 1, 0, 3)


def test_numbers_follow_their_links_into_the_order():
    links = [link("c", "b"), link("a"), link("b", "a", armature=0.3, upper=2.0)]
    model = jd.build(links)
    assert model.link_names == ("a", "b", "c")
    for i, s in enumerate([links[1], links[2], links[0]]):
        np.testing.assert_array_equal(model.mass[i], s.mass)
        np.testing.assert_array_equal(model.com[i], s.com)
        np.testing.assert_array_equal(model.inertia[i], s.inertia)
        np.testing.assert_array_equal(model.placement.rotation[i], s.rotation)
        np.testing.assert_array_equal(model.placement.translation[i], s.translation)
        h = np.array(s.axis) / np.linalg.norm(s.axis)
        np.testing.assert_allclose(model.axis[i], h, rtol=1e-15)
    np.testing.assert_array_equal(model.armature, [0, 0.3, 0])
    np.testing.assert_array_equal(model.q_upper, [np.inf, 2, np.inf])
    np.testing.assert_array_equal(model.q_lower, [-np.inf] * 3)


def test_several_roots():
    model = jd.build([link("a"), link("b"), link("c", "b"), link("d", "base")])
    assert model.parent == (-1, -1, 1, -1)
    q, qd, qdd = state(model)
    tau = jd.inverse_dynamics(model, q, qd, qdd)
    alone = jd.build([link("b"), link("c", "b")])
    part = jd.inverse_dynamics(alone, q[1:3], qd[1:3], qdd[1:3])
    np.testing.assert_allclose(tau[1:3], part, rtol=1e-12)


def test_the_base_can_have_a_name():
    model = jd.build([link("a", "world"), link("f", "world", "fixed")], base="world")
    assert (model.base_name, model.frame_links, model.parent) == ("world", (-1,), (-1,))


# fixed joints


@cites("MATH 1.5: M about O_i", "MATH 4: composite inertia Mc = M + Σ φ Mc φᵀ")
def test_a_fixed_link_adds_its_inertia_to_its_host():
    arm, tool = link("arm"), link("tool", "arm", "fixed")
    model = jd.build([arm, tool])
    expected = inertia_of(arm) + carried(inertia_of(tool), pose(tool))
    np.testing.assert_allclose(as_given((model, 0)), expected, atol=1e-14)
    assert (model.n_links, model.frame_names) == (1, ("tool",))


@cites("MATH 4: composite inertia Mc = M + Σ φ Mc φᵀ")
def test_fixed_links_in_a_row_and_a_moving_one_behind_them():
    links = [
        link("arm"),
        link("a", "arm", "fixed"),
        link("b", "a", "fixed"),
        link("c", "b", "fixed"),
        link("other", "a", "fixed"),
        link("finger", "b"),
    ]
    model = jd.build(links)
    arm, a, b, c, other, finger = links
    to_b = pose(a) @ pose(b)
    expected = inertia_of(arm) + sum(
        carried(inertia_of(s), T)
        for s, T in [
            (a, pose(a)),
            (b, to_b),
            (c, to_b @ pose(c)),
            (other, pose(a) @ pose(other)),
        ]
    )
    assert model.link_names == ("arm", "finger")
    assert model.parent == (-1, 0)
    np.testing.assert_allclose(as_given((model, 0)), expected, atol=1e-13)
    np.testing.assert_allclose(as_given((model, 1)), inertia_of(finger), atol=1e-15)
    q = jnp.array([0.4, -1.2])
    T = np.array(jd.forward_kinematics(model, q))
    placed = np.linalg.solve(T[0], np.array(jd.frame_pose(model, q, "c")))
    np.testing.assert_allclose(placed, to_b @ pose(c), atol=1e-14)


@pytest.mark.parametrize("host", ["base", "arm"])
@cites("MATH 1.3: pose of frame B in frame A")
def test_frames_keep_their_pose_and_the_motion_its_laws(host):
    """Against the same robot with a revolute joint held at zero for the fixed one."""
    links = [
        link("arm"),
        link("plate", host, "fixed"),
        link("knuckle", "plate", "fixed"),
        link("finger", "knuckle", "prismatic"),
    ]
    model = jd.build(links)
    held = jd.build(
        [replace(s, kind="revolute") if s.kind == "fixed" else s for s in links]
    )
    arm, finger = (held.joint_names.index(s) for s in model.joint_names)
    q, qd, qdd = state(model)

    def spread(x):
        return jnp.zeros(held.nv).at[jnp.array([arm, finger])].set(x)

    poses = dict(
        zip(held.link_names, jd.forward_kinematics(held, spread(q)), strict=True)
    )
    for name in ("plate", "knuckle", "finger"):
        found = jd.frame_pose(model, q, name)
        np.testing.assert_allclose(found, poses[name], atol=1e-14)
    tau = jd.inverse_dynamics(held, spread(q), spread(qd), spread(qdd))
    np.testing.assert_allclose(
        jd.inverse_dynamics(model, q, qd, qdd),
        tau[jnp.array([arm, finger])],
        atol=1e-13,
    )


def test_what_is_fixed_to_the_base_has_no_inertia_to_move():
    model = jd.build([link("arm"), link("stand", None, "fixed"), link("b", "stand")])
    assert model.parent == (-1, -1)
    np.testing.assert_allclose(
        as_given((model, 0)), inertia_of(link("arm")), atol=1e-15
    )
    assert (model.frame_names, model.frame_links) == (("stand",), (-1,))
    found = jd.frame_pose(model, jnp.zeros(2), "stand")
    np.testing.assert_allclose(found, pose(link("stand")), atol=1e-15)


def test_a_frame_without_mass_changes_nothing():
    bare, arm = jd.build([link("arm")]), link("arm")
    with_frame = jd.build([arm, jd.Link("tip", "arm", "fixed", translation=(1, 2, 3))])
    np.testing.assert_array_equal(with_frame.inertia, bare.inertia)
    np.testing.assert_array_equal(with_frame.com, bare.com)


def test_an_impossible_fixed_part_is_said_but_passes_in_a_possible_whole():
    heavy = link("arm", inertia=np.diag([1.0, 1.0, 1.0]))
    part = link("screw", "arm", "fixed", inertia=np.diag([1e-6, 1e-6, 1e-3]))
    with pytest.warns(jd.ModelWarning, match="Link 'screw', merged into 'arm'"):
        model = jd.build([heavy, part])
    expected = inertia_of(heavy) + carried(inertia_of(part), pose(part))
    np.testing.assert_allclose(as_given((model, 0)), expected, atol=1e-14)


def test_an_impossible_whole_is_refused():
    point = jd.Link("arm")  # no mass, no inertia
    part = jd.Link("screw", "arm", "fixed", mass=1.0, inertia=np.diag([0.1, 0.1, 1.0]))
    with (
        pytest.warns(jd.ModelWarning, match="screw"),
        pytest.raises(jd.ModelError, match=r"Link 'arm'.*belong to no body"),
    ):
        jd.build([point, part])


def test_a_possible_part_is_merged_in_silence():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jd.build([link("arm"), link("tool", "arm", "fixed")])


# round trip, types, refusals


@pytest.mark.parametrize("floating_base", [False, True])
def test_links_of_turns_build_round(floating_base):
    links = [
        link("a", kind="free" if floating_base else "helical", pitch=0.1),
        link(
            "b", "a", "prismatic", armature=0.1, damping=0.2, friction=0.3, lower=-1.0
        ),
        link("c", "b", "continuous", upper=2.0, speed=3.0, effort=4.0),
        link("f", "c", "fixed"),
        link("g", None, "fixed"),
        link("d", "a", "helical", pitch=-0.2),
    ]
    model = jd.build(links, gravity=(1.0, 2.0, 3.0), name="x")
    again = jd.build(links_of(model), gravity=(1.0, 2.0, 3.0), name="x")
    assert jax.tree.structure(again) == jax.tree.structure(model)
    for x, y in zip(jax.tree.leaves(again), jax.tree.leaves(model), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-15, atol=1e-16)


def test_dtype():
    model = jd.build([link("a"), link("t", "a", "fixed")], dtype="float32")
    assert {x.dtype for x in jax.tree.leaves(model)} == {jnp.dtype("float32")}
    assert "float32" in repr(model)
    q, qd = jnp.ones(1, "float32"), jnp.ones(1, "float32")
    assert jd.inverse_dynamics(model, q, qd, qd).dtype == jnp.float32
    for dtype in ("int32", jnp.int32, bool, "complex64"):
        with pytest.raises(jd.ModelError, match="Give a float type"):
            jd.build([link("a")], dtype=dtype)


REFUSED = {
    "no links": ([], "no moving link.*Add"),
    "all fixed": ([link("a", kind="fixed")], "no moving link.*Add"),
    "two of a name": ([link("a"), link("a")], "name 'a'.*Rename"),
    "name of the base": ([link("base")], "name 'base'.*Rename"),
    "dangling": ([link("a", "ghost")], "Link 'a' hangs from 'ghost'.*Name one"),
    "in a circle": (
        [link("x"), link("a", "c"), link("b", "a"), link("c", "b")],
        "Link 'a' hangs from itself.*Break the loop",
    ),
    "unknown kind": (
        [link("a", kind="ball", joint="hip")],
        "Joint 'hip' is of kind 'ball'.*Make it",
    ),
    "free at the tip": ([link("a"), link("b", "a", "free")], "'b_joint' is free"),
    "free and another": ([link("a", kind="free"), link("b")], "'a_joint' is free"),
    "no axis": ([link("a", axis=(0, 0, 0))], "Joint 'a_joint': the axis.*Give"),
    "axis not a number": ([link("a", axis=(0, np.nan, 1))], "the axis.*Give"),
    "short axis": ([link("a", axis=(0, 1))], "Link 'a': axis needs three"),
    "short com": ([link("a", com=(0, 1))], "Link 'a': com needs three"),
    "short translation": ([link("a", translation=(1,))], "translation needs three"),
    "moments": ([link("a", inertia=(1, 1, 1))], "Link 'a': inertia needs 3 rows"),
    "short rotation": ([link("a", rotation=np.eye(2))], "rotation needs 3 rows"),
    "negative mass": ([link("a", mass=-1.0)], "Link 'a': mass is -1.*Give"),
    "negative part": (
        [link("a"), link("b", "a", "fixed", mass=-1.0)],
        "Link 'b': mass is -1.*Give",
    ),
    "nan mass": ([link("a", mass=np.nan)], "Link 'a': mass is nan.*Give"),
    "nan inertia": ([link("a", inertia=np.full((3, 3), np.nan))], "Link 'a': inertia"),
    "nan com": ([link("a", com=(0, 0, np.nan))], "Link 'a': com"),
    "negative friction": ([link("a", friction=-1.0)], "'a_joint': friction is -1"),
    "impossible inertia": (
        [link("a", inertia=np.diag([1, 1, 3]))],
        "Link 'a'.*belong to no body.*Check",
    ),
    "not a rotation": (
        [link("a", rotation=2 * np.eye(3))],
        "Joint 'a_joint'.*orthogonal and right-handed",
    ),
}


@pytest.mark.parametrize("links, message", REFUSED.values(), ids=REFUSED)
def test_refused_by_name_with_a_remedy(links, message):
    with pytest.raises(jd.ModelError, match=message):
        jd.build(links)


def test_gravity_of_two_numbers_is_refused():
    with pytest.raises(Exception, match="gravity"):
        jd.build([link("a")], gravity=(0.0, 0.0))
