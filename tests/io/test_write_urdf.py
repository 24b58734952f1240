import re
import warnings

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdenoc import DHLink, Link, Model, ModelError, ModelWarning, build, from_dh
from jaxdenoc.io import load, to_urdf
from jaxdenoc.io._rpy import angles, rotation
from jaxdenoc.model import Tree


@pytest.mark.parametrize("floating_base", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_a_model_comes_back(random_model, assert_same, seed, floating_base):
    model = random_model(seed, floating_base)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        back = load(to_urdf(model))
    assert_same(model, back, 1e-12)
    assert_same(back, load(to_urdf(back)), 1e-12)


def test_a_table_comes_back(assert_same):
    row = DHLink("R", 0.3, 0.1, np.pi / 2, 0.0, 2.0, (0.1, 0, 0), (0.1, 0.1, 0.1))
    model = from_dh([row, row, row])
    assert_same(model, load(to_urdf(model)), 1e-12)


@pytest.mark.parametrize("pitch", [0.3, np.pi / 2, -np.pi / 2, np.pi / 2 - 1e-9])
def test_angles_give_the_rotation_back_at_the_pole_too(pitch):
    for roll, yaw in (0.4, -2.0), (3.0, 0.0), (0.0, np.pi):
        R = rotation((roll, pitch, yaw))
        np.testing.assert_allclose(rotation(angles(R)), R, rtol=0, atol=1e-15)


def test_the_text_is_plain_urdf(random_model):
    text = to_urdf(random_model(0))
    assert text.startswith('<?xml version="1.0"?>\n<robot name="&lt;odd&gt; &amp;')
    assert '<link name="the &quot;base&quot;" />' in text
    assert "inf" not in text and "nan" not in text
    limits = re.findall(r"<limit [^>]*>", text)
    assert limits and all("effort" in s and "velocity" in s for s in limits)


def test_a_frame_does_not_take_the_name_of_a_joint(assert_same):
    links = [
        Link("arm", joint="tool_joint", mass=1.0, inertia=np.eye(3)),
        Link("tool", "arm", "fixed"),
        Link("tool_joint", "tool", "fixed"),
    ]
    model = build(links)
    assert_same(model, load(to_urdf(model)), 1e-12)


def test_what_urdf_cannot_hold_is_said(random_model):
    model = random_model(0, floating_base=True)
    model = eqx.tree_at(
        lambda m: (m.armature, m.damping, m.gravity, m.friction_speed, m.q_upper),
        model,
        (
            model.armature.at[7].set(0.5),
            model.damping.at[2].set(0.5),
            jnp.array([0.0, 0.0, -1.62]),
            jnp.array(0.5),
            jnp.where(jnp.isinf(model.q_upper), 1.0, model.q_upper),
        ),
    )
    with pytest.warns(ModelWarning) as said:
        to_urdf(model)
    message = str(said[0].message)
    for part in (
        f"armature of {model.velocity_names[7]}",
        f"damping of {model.velocity_names[2]}",
        "q_upper of",
        "gravity [0.0, 0.0, -1.62]",
        "friction_speed 0.5",
        "jd.save",
    ):
        assert part in message, part


def test_links_that_are_not_branch_by_branch_are_said():
    one = {"mass": 1.0, "inertia": np.eye(3)}
    links = [Link("a", **one), Link("b", **one), Link("c", "b", **one)]
    model = build(links)
    assert model.link_names == ("a", "b", "c")
    fields = {s: getattr(model, s) for s in Model.__dataclass_fields__}
    mixed = Model(**(fields | {"tree": Tree((-1, -1, 0))}))
    with pytest.warns(ModelWarning, match="the order of the links"):
        assert load(to_urdf(mixed)).link_names == ("a", "c", "b")


@pytest.mark.parametrize("name", ["", "nul\0", "\ud800"])
def test_names_that_xml_cannot_hold_are_refused(name):
    body = {"mass": 1.0, "inertia": np.eye(3)}
    model = build([Link(name, joint="j", **body)], name="arm")
    with pytest.raises(ModelError, match=r"'arm': the name .* Choose one of printable"):
        to_urdf(model)


def test_names_keep_their_spaces():
    body = {"mass": 1.0, "inertia": np.eye(3)}
    model = build([Link(" a\tb\n", joint="\r", **body)])
    back = load(to_urdf(model))
    assert back.link_names == model.link_names and back.joint_names == ("\r",)
