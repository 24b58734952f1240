import warnings

import jax.numpy as jnp
import numpy as np
import pytest

from jaxdenoc import ModelWarning
from jaxdenoc.io import load

INERTIA = '<inertia ixx="2" ixy="0" ixz="0" iyy="3" iyz="0" izz="4"/>'
BODY = f'<inertial><mass value="1"/>{INERTIA}</inertial>'
TURNED = BODY.replace("<mass", '<origin xyz="1 2 3" rpy="0 0 0.5"/><mass')
ARM = f"""
<robot name="arm">
  <link name="floor"/>
  <link name="upper">{BODY}</link>
  <link name="lower">{TURNED}</link>
  <link name="tool">{BODY}</link>
  <joint name="shoulder" type="revolute">
    <parent link="floor"/><child link="upper"/>
    <origin xyz="0 0 1" rpy="0 0 1.5707963267948966"/><axis xyz="0 0 2"/>
    <limit lower="-1" upper="2" effort="30" velocity="4"/>
    <dynamics damping="0.5" friction="0.25"/>
  </joint>
  <joint name="elbow" type="prismatic">
    <parent link="upper"/><child link="lower"/>
  </joint>
  <joint name="wrist" type="fixed">
    <parent link="lower"/><child link="tool"/><origin xyz="2 4 6"/>
  </joint>
</robot>
"""


def quietly(*arguments, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return load(*arguments, **keywords)


def with_joint(inside, kind="revolute"):
    """The arm with one more link and joint on its lower link."""
    joint = f'<joint name="extra" type="{kind}"><parent link="lower"/>'
    joint += f'<child link="hand"/>{inside}</joint>'
    return ARM.replace("</robot>", f'<link name="hand">{BODY}</link>{joint}</robot>')


def mimicking(offset=0.0, leader="shoulder", multiplier=2):
    return with_joint(
        f'<mimic joint="{leader}" multiplier="{multiplier}" offset="{offset}"/>'
        '<axis xyz="0 0 1"/>'
    )


def test_every_number_arrives():
    model = quietly(ARM)
    assert model.name == "arm" and model.base_name == "floor"
    assert model.link_names == ("upper", "lower") and model.frame_names == ("tool",)
    assert model.joint_names == ("shoulder", "elbow")
    assert model.joint_kinds == ("revolute", "prismatic")
    np.testing.assert_allclose(model.axis, [[0, 0, 1], [1, 0, 0]])
    np.testing.assert_allclose(model.placement.translation, [[0, 0, 1], [0, 0, 0]])
    turn = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    np.testing.assert_allclose(model.placement.rotation[0], turn, atol=1e-15)
    np.testing.assert_array_equal(model.q_lower, [-1, -np.inf])
    np.testing.assert_array_equal(model.q_upper, [2, np.inf])
    np.testing.assert_array_equal(model.qd_limit, [4, np.inf])
    np.testing.assert_array_equal(model.tau_limit, [30, np.inf])
    np.testing.assert_array_equal(model.damping, [0.5, 0])
    np.testing.assert_array_equal(model.friction, [0.25, 0])
    # two bodies of 1 kg, at (1, 2, 3) with axes turned, and at (2, 4, 6)
    np.testing.assert_allclose(model.mass, [1, 2])
    np.testing.assert_allclose(model.com[1], [1.5, 3, 4.5])
    d, c, s = np.array([0.5, 1, 1.5]), np.cos(0.5), np.sin(0.5)
    steiner = 2 * (d @ d * np.eye(3) - np.outer(d, d))
    turned = [
        [2 * c**2 + 3 * s**2, -c * s, 0],
        [-c * s, 2 * s**2 + 3 * c**2, 0],
        [0, 0, 4],
    ]
    np.testing.assert_allclose(
        model.inertia[1], turned + np.diag([2.0, 3, 4]) + steiner
    )


def test_a_path_reads_like_its_text(tmp_path, assert_same):
    path = tmp_path / "arm.urdf"
    for text in (ARM, '<?xml version="1.0" encoding="utf-8"?>' + ARM, "\ufeff" + ARM):
        path.write_text(text, encoding="utf-8")
        assert_same(quietly(path), quietly(text))
        assert_same(quietly(str(path)), quietly(text))


def test_dtype_is_that_asked_for():
    assert load(ARM, dtype=jnp.float32).mass.dtype == jnp.float32


def test_the_root_link_can_float():
    text = ARM.replace('<link name="floor"/>', f'<link name="floor">{BODY}</link>')
    model = quietly(text, floating_base=True)
    assert model.link_names == ("floor", "upper", "lower")
    assert model.joint_names[0] == "root_joint" and model.joint_kinds[0] == "free"
    assert model.base_name == "world" and model.mass[0] == 1
    taken = text.replace("floor", "world").replace("elbow", "root_joint")
    model = quietly(taken, floating_base=True)
    assert model.base_name == "world_" and model.joint_names[0] == "root_joint_"


def test_a_floating_joint_on_the_root_is_a_free_base():
    model = quietly(
        f'<robot name="r"><link name="world"/><link name="body">{BODY}</link>'
        '<joint name="float" type="floating"><parent link="world"/>'
        '<child link="body"/></joint></robot>'
    )
    assert model.floating_base and model.joint_names == ("float",)
    assert model.base_name == "world" and model.nq == 7


def test_a_screw_has_a_pitch_in_metres_per_radian():
    text = with_joint("", "screw").replace('type="screw"', 'type="screw" pitch="0.01"')
    model = quietly(text)
    assert model.joint_kinds[2] == "helical" and model.pitch[2] == 0.01


def test_a_wheel_has_no_position_limits():
    limit = '<limit lower="-1" upper="1" effort="2" velocity="3"/>'
    with pytest.warns(ModelWarning, match="left out 1 limit lower, 1 limit upper"):
        model = load(with_joint(limit, "continuous"))
    assert model.q_lower[2] == -np.inf and model.q_upper[2] == np.inf
    assert model.tau_limit[2] == 2 and model.qd_limit[2] == 3


def test_limits_that_are_not_written_are_zero_as_in_the_standard():
    with pytest.warns(ModelWarning, match="no lower and no upper.*'extra'.*continuous"):
        model = load(with_joint('<limit effort="2" velocity="3"/>'))
    assert model.q_lower[2] == model.q_upper[2] == 0


def test_mimic_joints_are_free_or_held():
    text = mimicking(offset=0.5)
    with pytest.warns(ModelWarning, match=r"left out 1 mimic \(free\)"):
        assert load(text, mimic="free").nv == 3
    with pytest.warns(ModelWarning, match=r"left out 1 mimic \(lock\)"):
        model = load(text, mimic="lock")
    assert model.nv == 2 and "hand" in model.frame_names
    R = model.frame_placement.rotation[model.frame_names.index("hand")]
    np.testing.assert_allclose(R[:2, 0], [np.cos(0.5), np.sin(0.5)])


def test_a_held_joint_follows_one_that_is_held_itself():
    child = '<child link="lower"/>'
    text = mimicking(offset=0.5, leader="elbow").replace(
        child, f'{child}<mimic joint="shoulder" offset="0.25"/>'
    )
    with pytest.warns(ModelWarning, match="2 mimic"):
        model = load(text, mimic="lock")
    R = model.frame_placement.rotation[model.frame_names.index("hand")]
    np.testing.assert_allclose(R[:2, 0], [np.cos(1.0), np.sin(1.0)])


def test_massless_links_between_joints_are_in_order():
    quietly(ARM.replace(f'<link name="upper">{BODY}', '<link name="upper">'))


def test_what_is_left_out_is_listed_once():
    extra = """
      <visual><geometry><mesh filename="package://no/such.stl"/></geometry></visual>
      <visual/><collision/>
    """
    text = ARM.replace(
        '<link name="floor"/>', f'<link name="floor">{BODY}{extra}</link>'
    )
    text = text.replace(
        "</robot>", '<material name="m"/><a:plugin xmlns:a="urn:x"/></robot>'
    )
    text = text.replace('velocity="4"', 'velocity="4" colour="red"')
    text = text.replace('<origin xyz="2 4 6"/>', '<axis xyz="0 0 0"/>')
    with pytest.warns(ModelWarning) as said:
        load(text)
    assert len(said) == 1
    assert str(said[0].message) == (
        "URDF text: left out 2 visual, 1 inertial of the base, 1 collision, 1 limit "
        "colour, 1 axis of a fixed joint, 1 material, 1 plugin"
    )


MASSLESS = "nothing with mass moves with joint 'extra'.*Lock it.*mass.*armature"


@pytest.mark.parametrize(
    ("kind", "body", "idle"),
    [
        ("revolute", "", True),
        ("prismatic", BODY.replace('"1"', '"0"'), True),
        ("revolute", BODY.replace('"1"', '"0"'), False),
        ("revolute", TURNED, False),
        ("revolute", BODY.replace('ixx="2"', 'ixx="0"').replace('"4"', '"3"'), True),
    ],
)
def test_a_joint_that_moves_no_mass_is_said(kind, body, idle):
    text = with_joint("", kind).replace(
        f'<link name="hand">{BODY}', f'<link name="hand">{body}'
    )
    if idle:
        with pytest.warns(ModelWarning, match=MASSLESS):
            load(text)
    else:
        quietly(text)


def test_a_long_chain_is_no_matter_of_recursion():
    n = 300
    links = "".join(f'<link name="l{i}">{BODY}</link>' for i in range(n + 1))
    joints = "".join(
        f'<joint name="j{i}" type="revolute"><parent link="l{i}"/>'
        f'<child link="l{i + 1}"/></joint>'
        for i in range(n)
    )
    text = f'<robot name="r">{joints}{links}</robot>'
    with pytest.warns(ModelWarning, match="1 inertial of the base"):
        assert load(text).n_links == n
