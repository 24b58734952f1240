"""New numbers in a user's own URDF."""

import difflib
import importlib.util
import re
import warnings
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdenoc as jd
from jaxdenoc.identify._write_back import write_patched_urdf
from jaxdenoc.io._rpy import rotation

ROBOTS = next(
    p for p in Path(str(importlib.util.find_spec("pinocchio").origin)).parents
    if p.name == "cmeel.prefix"
) / "share/example-robot-data/robots"  # fmt: skip

ARM = """<?xml version="1.0"?>
<!-- made by hand;   keep me -->
<robot name='arm' xmlns:xacro="http://www.ros.org/wiki/xacro">
  <material name="grey"><color rgba=".5 .5 .5 1"/></material>
  <link name="base"/>
  <link name="upper"><!-- mass > 1 -->
    <visual><geometry><mesh filename="package://arm/upper.stl"/></geometry></visual>
    <inertial>
      <origin rpy="0.1 0.2 0.3"   xyz='0 0 0.1' />
      <mass value = "2.0"/>
      <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.015"/>
    </inertial>
  </link>
\t<link name="lower" />
  <link name="tool">
    <inertial><mass value="0.5"/>
      <inertia ixx="1e-3" ixy="0" ixz="0" iyy="1e-3" iyz="0" izz="1e-3"/></inertial>
  </link>
  <joint name="shoulder" type="revolute">
    <parent link="base"/> <child link="upper"/>
    <origin xyz="0 0 1" rpy="0 0.5 0"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="10" velocity="2"/>
    <dynamics friction="0.0"
              damping="0.10"/>
  </joint>
  <joint name="elbow" type="continuous">
    <parent link="upper"/><child link="lower"/><axis xyz="0 1 0"/>
  </joint>
  <joint name="flange" type="fixed">
    <parent link="lower"/><child link="tool"/><origin xyz="0.1 0 0.2" rpy="0 0 1"/>
  </joint>
  <transmission name="t"><joint name="elbow"/><!-- &amp; --></transmission>
</robot>
<!-- the end -->
"""


def loaded(source, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jd.ModelWarning)
        return jd.load(source, **how)


def heavier(model, seed=0):
    """Another body fixed to every link, and other losses of the joints."""
    rng = np.random.default_rng(seed)
    extra = jnp.stack([
        0.1 * jd.from_log_cholesky(jnp.asarray(0.3 * rng.normal(size=10)))
        for _ in model.link_names
    ])  # fmt: skip
    model = jd.with_inertial_parameters(model, jd.inertial_parameters(model) + extra)
    losses = [jnp.asarray(rng.uniform(0.1, 1, model.nv)) for _ in range(2)]
    return eqx.tree_at(lambda m: (m.damping, m.friction), model, losses)


def assert_same(a, b):
    for name in ("mass", "com", "inertia", "damping", "friction", "axis", "armature"):
        x, y = np.asarray(getattr(a, name)), np.asarray(getattr(b, name))
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12 * np.abs(y).max())


def changed(before, after):
    """The lines that are not the same."""
    lines = difflib.ndiff(before.splitlines(True), after.splitlines(True))
    found = [x for x in lines if x[0] in "+-"]
    return [x[2:] for x in found if x[0] == "-"], [x[2:] for x in found if x[0] == "+"]


def test_round_trip_by_hand():
    """What was missing is put in, and the file's own axes of inertia are kept."""
    model = heavier(loaded(ARM))
    text = jd.patched_urdf(ARM, model)
    assert_same(loaded(text), model)
    gone, new = changed(ARM, text)
    assert len(gone) == 6  # origin, mass, inertia, the tag of lower, 2 of dynamics
    assert '      <origin rpy="0.1 0.2 0.3"   xyz=\'' in "".join(new)
    assert '<transmission name="t"><joint name="elbow"/><!-- &amp; -->' in text
    tool = ARM[ARM.index('<link name="tool">') : ARM.index('<joint name="shoulder')]
    assert tool in text  # a part that is fixed keeps its numbers
    assert '\t<link name="lower" >\n\t  <inertial>\n\t    <origin xyz=' in text
    assert jd.patched_urdf(text, model) == text


def test_nothing_changes_where_nothing_is_new():
    model = loaded(ARM)
    pi = jd.inertial_parameters(model)
    assert jd.patched_urdf(ARM, jd.with_inertial_parameters(model, pi)) == ARM
    one = eqx.tree_at(lambda m: m.damping, model, model.damping.at[0].set(0.25))
    text = jd.patched_urdf(ARM, one)
    assert text == ARM.replace('damping="0.10"', 'damping="0.25"')
    one = eqx.tree_at(lambda m: m.mass, model, model.mass.at[0].set(3.0))
    text = jd.patched_urdf(ARM, one)
    assert text == ARM.replace('<mass value = "2.0"/>', '<mass value = "3.0"/>')


@pytest.mark.parametrize(
    ("file", "how"),
    [
        ("panda_description/urdf/panda.urdf", {"mimic": "lock"}),
        ("ur_description/urdf/ur5_robot.urdf", {}),
        ("solo_description/robots/solo12.urdf", {"floating_base": True}),
    ],
)
def test_round_trip_of_robots(file, how, tmp_path):
    """All that is not inertial or dynamics is the same, byte for byte."""
    source = ROBOTS / file
    model = heavier(loaded(source, **how))
    out = tmp_path / "fitted.urdf"
    if model.floating_base:  # URDF has no place for the losses of a free base
        rest = [jnp.zeros(6, x.dtype) for x in (model.damping, model.friction)]
        both = [
            jnp.concatenate([a, b[6:]])
            for a, b in zip(rest, (model.damping, model.friction), strict=True)
        ]
        model = eqx.tree_at(lambda m: (m.damping, m.friction), model, both)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_patched_urdf(source, model, out)
    assert_same(loaded(out, **how), model)
    hidden = rb"(?s)\s*<inertial.*?</inertial>|\s*<dynamics[^>]*/>"
    rest = [re.sub(hidden, b"", path.read_bytes()) for path in (source, out)]
    assert rest[0] == rest[1]


def test_parts_that_are_fixed_cannot_outweigh_the_whole():
    model = loaded(ARM)
    light = eqx.tree_at(lambda m: m.mass, model, model.mass.at[1].set(0.4))
    with pytest.raises(jd.ModelError, match=r"'lower', less .*\(tool\): -0.1 kg"):
        jd.patched_urdf(ARM, light)
    thin = eqx.tree_at(
        lambda m: (m.mass, m.inertia),
        model,
        (model.mass.at[1].set(0.6), model.inertia.at[1].multiply(0.5)),
    )
    with pytest.raises(jd.ModelError, match=r"'lower', less .* belong to no body"):
        jd.patched_urdf(ARM, thin)
    for model in light, thin:
        text = jd.patched_urdf(ARM, model, fixed="merge")
        assert_same(loaded(text), model)
        assert '<inertial><mass value="0.0"/>' in text


def test_joints_that_were_found_to_be_elsewhere():
    """On a link, and on a part that is fixed to one; where there was no origin, too."""
    far = """<link name="grip"/><joint name="wrist" type="continuous">
    <parent link="tool"/><child link="grip"/><axis xyz="1 0 0"/>
    <origin rpy="0.2 0 0"/></joint>"""
    source = ARM.replace("</robot>", f"  {far}\n</robot>")
    model = heavier(loaded(source))
    R = jnp.asarray(rotation((0.01, -0.02, 0.03)))
    moved = eqx.tree_at(
        lambda m: (m.placement.translation, m.placement.rotation),
        model,
        (
            model.placement.translation + jnp.array([[0.01, 0.0, -0.02]]),
            model.placement.rotation @ R[None],
        ),
    )
    text = jd.patched_urdf(source, moved)
    found = loaded(text)
    assert_same(found, moved)
    for name in ("translation", "rotation"):
        a, b = (np.asarray(getattr(m.placement, name)) for m in (found, moved))
        np.testing.assert_allclose(a, b, atol=1e-13)
    assert jd.patched_urdf(text, moved) == text
    assert jd.patched_urdf(text, loaded(text)) == text


def test_what_has_no_place_is_said():
    model = loaded(ARM)
    geared = eqx.tree_at(
        lambda m: (m.armature, m.gravity),
        model,
        (model.armature + 0.1, model.gravity * 0.5),
    )
    with pytest.warns(jd.ModelWarning, match="armature, gravity of the model"):
        assert jd.patched_urdf(ARM, geared) == ARM
    with pytest.raises(jd.ModelError, match="no link 'link1'"):
        jd.patched_urdf(ARM, jd.robots.rod_chain(1))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16"])
def test_encodings_and_line_ends_stay(encoding, tmp_path):
    said = encoding.removesuffix("-sig")
    text = ARM.replace('"1.0"', f'"1.0" encoding="{said}"').replace("by", "für")
    text = text.replace("\n", "\r\n")
    source, out = tmp_path / "a.urdf", tmp_path / "b.urdf"
    source.write_bytes(text.encode(encoding))
    model = loaded(source)
    write_patched_urdf(source, model, out)
    assert out.read_bytes() == source.read_bytes()
    new = heavier(model)
    write_patched_urdf(source, new, out)
    assert_same(loaded(out), new)
    again = out.read_bytes().decode(encoding)
    assert again.count("\r\n") == again.count("\n") and "für" in again


def test_all_in_one_line():
    text = re.sub(r"\n\s*", " ", ARM)
    model = heavier(loaded(text))
    assert_same(loaded(jd.patched_urdf(text, model)), model)
