"""What a model is made of, and what it refuses to be made of."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdenoc as jd
from jaxdenoc.model import Tree
from jaxdenoc.model._check import check_shapes

cites = pytest.mark.cites
I = np.diag([0.02, 0.03, 0.04])
LEAVES = 18  # placements have two each


def arm(**changes):
    """upper - lower, with a frame at the hand."""
    upper = jd.Link("upper", None, "revolute", "shoulder", mass=2.0, inertia=I)
    lower = jd.Link("lower", "upper", "prismatic", "elbow", mass=1.0, inertia=I)
    hand = jd.Link("hand", "lower", "fixed", translation=(0.0, 0.0, 0.3))
    return jd.build([upper, lower, hand], name="arm", **changes)


def free_arm():
    links = [
        jd.Link("trunk", None, "free", "root", mass=3.0, inertia=I),
        jd.Link("left", "trunk", mass=1.0, inertia=I),
        jd.Link("right", "trunk", mass=1.0, inertia=I),
        jd.Link("right_hand", "right", mass=1.0, inertia=I),
    ]
    return jd.build(links, name="free arm")


def test_sizes_and_names():
    model = arm()
    assert (model.n_links, model.nq, model.nv) == (2, 2, 2)
    assert model.parent == (-1, 0)
    assert not model.floating_base
    assert model.joint_names == model.velocity_names == ("shoulder", "elbow")
    assert model.link_names == ("upper", "lower")
    assert (model.frame_names, model.frame_links) == (("hand",), (1,))
    assert repr(model) == "Model('arm': 2 links, nq=2, nv=2, fixed base, float64)"


@cites("MATH 1.4: free flyer, H = 1₆, q̇ the body twist")
def test_sizes_and_names_with_a_free_base():
    model = free_arm()
    assert (model.n_links, model.nq, model.nv) == (4, 10, 9)
    assert model.floating_base
    assert model.velocity_names == (
        *(f"root.{s}" for s in ("wx", "wy", "wz", "vx", "vy", "vz")),
        *("left_joint", "right_joint", "right_hand_joint"),
    )
    assert "floating base" in repr(model)
    for x in (model.armature, model.damping, model.q_lower, model.tau_limit):
        assert x.shape == (9,)


def test_every_number_is_a_leaf_and_nothing_else_is():
    model = arm()
    leaves, static = jax.tree.flatten(model)
    assert len(leaves) == LEAVES
    assert all(isinstance(x, jax.Array) and x.dtype == jnp.float64 for x in leaves)
    assert hash(static) == hash(jax.tree.structure(arm(gravity=(0.0, 0.0, 0.0))))
    assert static == jax.tree.structure(arm(gravity=(0.0, 0.0, 0.0)))
    assert static != jax.tree.structure(jd.lock(model, {"elbow": 0.0}))


def test_a_number_changed_does_not_compile_again():
    traced = []

    @jax.jit
    def f(model, q):
        traced.append(1)
        return jd.gravity_forces(model, q)

    model, q = arm(gravity=(1.0, 2.0, 3.0)), jnp.array([0.3, 0.2])
    before = f(model, q)
    heavy = eqx.tree_at(lambda m: m.mass, model, 2 * model.mass)
    np.testing.assert_allclose(f(heavy, q), 2 * before, rtol=1e-13)
    assert len(traced) == 1


def test_a_model_can_be_batched_and_differentiated():
    model, q = arm(gravity=(1.0, 2.0, 3.0)), jnp.array([0.3, 0.2])

    def f(mass):
        return jd.gravity_forces(eqx.tree_at(lambda m: m.mass, model, mass), q)

    np.testing.assert_allclose(jax.jacobian(f)(model.mass) @ model.mass, f(model.mass))
    masses = jnp.stack([model.mass, 3 * model.mass])
    np.testing.assert_allclose(jax.vmap(f)(masses)[1], 3 * f(model.mass), rtol=1e-13)


@cites("MATH 1.4: free flyer, H = 1₆")
def test_rows_of_a_free_base():
    """Six rows at one place, the last velocity nearest to the base; then one a link."""
    rows = free_arm().rows
    assert rows.tree.parent == (-1, 0, 1, 2, 3, 4, 5, 5, 7)
    assert rows.link == (0, 0, 0, 0, 0, 0, 1, 2, 3)
    assert rows.body == (5, 6, 7, 8)
    assert rows.velocity == (5, 4, 3, 2, 1, 0, 6, 7, 8)
    x = jnp.arange(9.0)
    np.testing.assert_array_equal(
        rows.from_velocities(x), [5.0, 4, 3, 2, 1, 0, 6, 7, 8]
    )
    np.testing.assert_array_equal(rows.to_velocities(rows.from_velocities(x)), x)
    of_links = jnp.array([10.0, 20, 30, 40])
    spread = rows.from_bodies(of_links)
    np.testing.assert_array_equal(spread, [0.0, 0, 0, 0, 0, 10, 20, 30, 40])
    np.testing.assert_array_equal(rows.to_links(spread), of_links)
    np.testing.assert_array_equal(rows.from_links(of_links), [10.0] * 6 + [20, 30, 40])


def test_rows_of_a_fixed_base_are_its_links():
    rows = arm().rows
    assert rows.are_links
    assert rows.link == rows.body == rows.velocity == (0, 1)
    assert rows.tree == Tree((-1, 0))


def test_ancestry():
    related = Tree((-1, 0, 0, 2, -1)).ancestry
    expected = np.eye(5, dtype=bool)
    expected[0, [1, 2, 3]] = expected[2, 3] = True
    np.testing.assert_array_equal(related, expected)


# what is refused

NAN = float("nan")


def put(path, index, value):
    """The arm with one number changed, checked again."""

    def change(model):
        parts = path.split(".")
        x = model
        for part in parts:
            x = getattr(x, part)
        x = x.at[index].set(value) if index is not None else jnp.asarray(value)
        if len(parts) == 2:
            x = replace(getattr(model, parts[0]), **{parts[1]: x})
        return replace(model, **{parts[0]: x})

    return change


NOT_FINITE = [
    (path, index, owner)
    for path, index, owner in [
        ("mass", 1, "Link 'lower'"),
        ("com", (1, 2), "Link 'lower'"),
        ("inertia", (0, 0, 0), "Link 'upper'"),
        ("placement.rotation", (1, 0, 0), "Joint 'elbow'"),
        ("placement.translation", (1, 0), "Joint 'elbow'"),
        ("axis", (0, 1), "Joint 'shoulder'"),
        ("pitch", 1, "Joint 'elbow'"),
        ("armature", 1, "Joint 'elbow'"),
        ("damping", 0, "Joint 'shoulder'"),
        ("friction", 1, "Joint 'elbow'"),
        ("q_lower", 0, "Joint 'shoulder'"),
        ("q_upper", 1, "Joint 'elbow'"),
        ("qd_limit", 1, "Joint 'elbow'"),
        ("tau_limit", 1, "Joint 'elbow'"),
        ("gravity", 2, "Model 'arm'"),
        ("friction_speed", None, "Model 'arm'"),
    ]
]


@pytest.mark.parametrize(
    "path, index, owner", NOT_FINITE, ids=[x[0] for x in NOT_FINITE]
)
def test_nan_is_refused_wherever_it_is(path, index, owner):
    with pytest.raises(jd.ModelError, match=owner) as refusal:
        put(path, index, NAN)(arm())
    assert path in str(refusal.value)
    assert "Correct" in str(refusal.value)


@pytest.mark.parametrize("path", ["mass", "com", "axis", "armature", "gravity"])
def test_infinity_is_refused_but_for_limits(path):
    with pytest.raises(jd.ModelError, match=path):
        put(path, 0 if path != "com" else (0, 0), jnp.inf)(arm())
    put("q_upper", 0, jnp.inf)(arm())


BAD_NUMBERS = {
    "mass": (put("mass", 1, -2.0), "Link 'lower'", "zero or more"),
    "armature": (put("armature", 1, -1.0), "Joint 'elbow'", "zero or more"),
    "damping": (put("damping", 0, -1.0), "Joint 'shoulder'", "zero or more"),
    "friction": (put("friction", 1, -1.0), "Joint 'elbow'", "zero or more"),
    "friction_speed": (put("friction_speed", None, 0.0), "Model 'arm'", "positive"),
    "zero axis": (put("axis", 1, 0.0), "Joint 'elbow'", "Give a direction"),
    "long axis": (put("axis", (1, 0), 1.0), "Joint 'elbow'", "unit"),
    "stretch": (
        put("placement.rotation", 1, 1.1 * np.eye(3)),
        "Joint 'elbow'",
        "orthogonal",
    ),
    "mirror": (
        put("placement.rotation", 0, -np.eye(3)),
        "Joint 'shoulder'",
        "right-handed",
    ),
    "triangle inequality": (
        put("inertia", 1, np.diag([1.0, 1.0, 2.1])),
        "Link 'lower'",
        "Check the inertia",
    ),
    "negative moment": (
        put("inertia", 0, np.diag([-0.1, 1.0, 1.0])),
        "Link 'upper'",
        "Check the inertia",
    ),
    "not symmetric": (put("inertia", (1, 0, 1), 0.01), "Link 'lower'", "Mirror"),
}


@pytest.mark.parametrize("change, owner, remedy", BAD_NUMBERS.values(), ids=BAD_NUMBERS)
@cites("MATH 1.5: I_C of a body")
def test_impossible_numbers_are_refused_by_name_with_a_remedy(change, owner, remedy):
    with pytest.raises(jd.ModelError, match=owner) as refusal:
        change(arm())
    assert remedy in str(refusal.value)


@pytest.mark.parametrize(
    "moments",
    [(0.0, 1.0, 1.0), (1.0, 1.0, 2.0), (0.0, 0.0, 0.0), (1.0, 1.0, 2.0 + 1e-7)],
    ids=["rod", "disc", "point", "disc to seven digits"],
)
@cites("MATH 16: thin rods have singular M")
def test_bodies_at_the_edge_of_the_possible_pass(moments):
    put("inertia", 1, np.diag(moments))(arm())


def test_a_free_joint_needs_no_axis():
    put("axis", 0, 0.0)(free_arm())


SHAPES = [
    *("mass", "com", "inertia", "axis", "pitch", "gravity", "armature", "damping"),
    *("friction", "q_lower", "q_upper", "qd_limit", "tau_limit"),
]


@pytest.mark.parametrize("path", SHAPES)
def test_a_wrong_shape_is_refused(path):
    """Asked directly: these tests check annotations too, which would come first."""
    x = getattr(arm(), path)
    more = jnp.concatenate([x, x[:1]])
    model = eqx.tree_at(lambda m: getattr(m, path), arm(), more)
    with pytest.raises(jd.ModelError) as refusal:
        check_shapes(model)
    message = str(refusal.value)
    assert f"{path} has shape {more.shape}" in message
    assert f"need {x.shape}" in message


def test_a_wrong_shape_of_a_placement_is_refused():
    model = arm()
    with pytest.raises(jd.ModelError, match=r"frame_placement.rotation.* need \(0, 3"):
        replace(model, frame_names=(), frame_links=())
    bad = eqx.tree_at(lambda m: m.placement.translation, model, jnp.zeros((3, 3)))
    with pytest.raises(jd.ModelError, match=r"placement.translation.* need \(2, 3"):
        check_shapes(bad)


STATIC = {
    "two joints of one name": (
        {"joint_names": ("elbow", "elbow")},
        "joint name 'elbow'.*Rename",
    ),
    "two links of one name": ({"link_names": ("a", "a")}, "frame name 'a'.*Rename"),
    "link and frame": ({"frame_names": ("upper",)}, "name 'upper'.*Rename"),
    "link and base": ({"base_name": "lower"}, "name 'lower'.*Rename"),
    "too few joint names": ({"joint_names": ("elbow",)}, "1 joint names.*Give"),
    "too many link names": ({"link_names": ("a", "b", "c")}, "3 link names.*Give"),
    "unknown kind": (
        {"joint_kinds": ("revolute", "spherical")},
        "Joint 'elbow' is of kind 'spherical'.*make it",
    ),
    "free tip": ({"joint_kinds": ("revolute", "free")}, "Joint 'elbow' is free.*root"),
    "two roots, one free": (
        {"joint_kinds": ("free", "revolute"), "tree": Tree((-1, -1))},
        "Joint 'shoulder' is free.*one model",
    ),
}


@pytest.mark.parametrize("changes, message", STATIC.values(), ids=STATIC)
def test_impossible_topology_is_refused(changes, message):
    with pytest.raises(jd.ModelError, match=message):
        replace(arm(), **changes)


def test_a_model_error_is_a_value_error():
    assert issubclass(jd.ModelError, ValueError)
    assert issubclass(jd.ModelWarning, UserWarning)


def test_inside_jit_values_are_not_looked_at_but_topology_is():
    model = arm()

    @jax.jit
    def total(mass):
        return jnp.sum(replace(model, mass=mass).mass)

    assert total(jnp.array([-3.0, 1.0])) == -2.0
    with pytest.raises(jd.ModelError, match="mass is -3"):
        replace(model, mass=jnp.array([-3.0, 1.0]))

    @jax.jit
    def renamed(mass):
        return replace(model, mass=mass, joint_names=("elbow", "elbow")).mass

    with pytest.raises(jd.ModelError, match="Rename"):
        renamed(model.mass)


def test_tree_at_changes_one_number_and_leaves_the_rest():
    model = arm()
    other = eqx.tree_at(lambda m: m.gravity, model, jnp.zeros(3))
    assert jax.tree.structure(other) == jax.tree.structure(model)
    np.testing.assert_array_equal(other.gravity, 0)
    np.testing.assert_array_equal(other.mass, model.mass)
    np.testing.assert_array_equal(model.gravity, [0, 0, -9.81])
