"""Robots that are refused: each message names the file, the element and a remedy."""

import inspect

import pytest

from jaxdenoc import ModelError
from jaxdenoc.io import load

INERTIA = '<inertia ixx="2" ixy="0" ixz="0" iyy="3" iyz="0" izz="4"/>'
BODY = f'<inertial><mass value="1"/>{INERTIA}</inertial>'
TURNED = BODY.replace(
    "<mass", '<origin xyz="1 2 3" rpy="0 0 1.5707963267948966"/><mass'
)
ARM = f"""
<robot name="arm">
  <link name="floor"/>
  <link name="upper">{BODY}</link>
  <link name="lower">{BODY}</link>
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


def mimicking(leader):
    """The arm with the elbow following."""
    follows = f'<child link="lower"/><mimic joint="{leader}"/>'
    return ARM.replace('<child link="lower"/>', follows)


def changed(old, new):
    assert old in ARM
    return ARM.replace(old, new, 1)


def with_joint(parent, child, kind="fixed"):
    """The arm with one more joint, and a link `pad` on it if the child is that."""
    pad = '<link name="pad"/>' if child == "pad" else ""
    joint = f'<joint name="extra" type="{kind}"><parent link="{parent}"/>'
    joint += f'<child link="{child}"/></joint>'
    return ARM.replace("</robot>", f"{pad}{joint}</robot>")


BAD = {
    "empty": ("", "is empty. Give a URDF"),
    "blank": (" \n", "is empty. Give a URDF"),
    "truncated": (ARM[:500], "not complete XML.*Repair it"),
    "another root": ("<sdf/>", "root element is <sdf>.*begins with <robot>"),
    "mjcf": ("<mujoco/>", "MJCF.*not read yet. Convert it to URDF"),
    "xacro": (
        '<robot xmlns:x="http://www.ros.org/wiki/xacro"><x:include/></robot>',
        "Run xacro on it first",
    ),
    "xacro prefix": ("<robot><xacro:include/></robot>", "Run xacro"),
    "xacro value": (changed('"0 0 2"', '"0 0 ${a}"'), "'shoulder', <axis>.*Run xacro"),
    "no links": ("<robot/>", "no <link>. Add links"),
    "nothing moves": ('<robot><link name="a"/></robot>', "floating_base=True"),
    "nameless link": (changed('<link name="floor"/>', "<link/>"), "<link>: .*name="),
    "nameless joint": (changed(' name="shoulder"', ""), "<joint>: it has no name"),
    "two links": (changed('"tool"', '"upper"'), "link 'upper': two links.*Rename one"),
    "two joints": (changed('"elbow"', '"shoulder"'), "'shoulder': two joints.*Rename"),
    "no type": (changed(' type="revolute"', ""), "joint 'shoulder': it has no type"),
    "planar": (changed("prismatic", "planar"), "'elbow': .*'planar'.*Compose it"),
    "ball": (changed("prismatic", "spherical"), "'elbow': .*'spherical'.*Compose it"),
    "screw": (changed("prismatic", "screw"), "'elbow': it has no pitch. Write pitch="),
    "floating": (changed("prismatic", "floating"), "'elbow': .*Hang it from the root"),
    "mimic": (
        mimicking("shoulder"),
        "'elbow', <mimic>: .*'shoulder'.*mimic='free'.*mimic='lock'",
    ),
    "no parent": (
        changed('<parent link="floor"/>', ""),
        "'shoulder': it has no parent",
    ),
    "no child": (changed('<child link="upper"/>', ""), "'shoulder': it has no child"),
    "no link": (changed('<parent link="floor"/>', "<parent/>"), "no link. Write link="),
    "dangling": (
        changed('<child link="tool"/>', '<child link="t"/>'),
        "'wrist', <child>: there is no link 't'. Add it",
    ),
    "two parents": (
        with_joint("floor", "lower"),
        "'extra': link 'lower' hangs from joint 'elbow' already.*cut the loop",
    ),
    "no root": (
        with_joint("tool", "floor"),
        "every link hangs from another.*'floor'.*'extra'.*Remove a joint",
    ),
    "cycle": (
        changed('<parent link="upper"', '<parent link="tool"'),
        "'lower' hangs from itself.*Break the loop",
    ),
    "two roots": (
        changed("</robot>", '<link name="spare"/></robot>'),
        "2 links hang from no joint: 'floor', 'spare'.*Join them",
    ),
    "words": (
        changed('"0 0 1"', '"0 0 one"'),
        "'shoulder', <origin>: xyz is '0 0 one'.*Correct it",
    ),
    "underscore": (
        changed('"0 0 1"', '"0 0 1_0"'),
        "'shoulder', <origin>: xyz.*not a finite",
    ),
    "nan": (changed('"0 0 1"', '"0 0 nan"'), "'shoulder', <origin>: xyz.*not a finite"),
    "inf": (changed('"0 0 1"', '"0 0 inf"'), "'shoulder', <origin>: xyz.*not a finite"),
    "huge": (
        changed('"0 0 1"', '"0 0 1e999"'),
        "'shoulder', <origin>: xyz.*not a finite",
    ),
    "two numbers": (
        changed('"0 0 1"', '"0 1"'),
        "'shoulder', <origin>: .*2 numbers. Write 3",
    ),
    "commas": (
        changed('"0 0 1"', '"0,0,1"'),
        "'shoulder', <origin>: .*1 numbers. Write 3, with spaces",
    ),
    "two origins": (
        changed("<axis", "<origin/><axis"),
        "'shoulder': it has 2 <origin>. Keep one",
    ),
    "zero axis": (
        changed('"0 0 2"', '"0 0 0"'),
        "'shoulder', <axis>: .*Give the axis a direction",
    ),
    "limit word": (
        changed('upper="2"', 'upper="x"'),
        "'shoulder', <limit>: upper is 'x'.*Correct it",
    ),
    "limits crossed": (
        changed('upper="2"', 'upper="-2"'),
        "'shoulder', <limit>: lower is above upper. Exchange",
    ),
    "effort": (
        changed('effort="30"', 'effort="-30"'),
        "'shoulder', <limit>: effort is -30.*Correct it",
    ),
    "damping": (
        changed('"0.5"', '"-0.5"'),
        "Joint 'shoulder': damping is -0.5.*zero or more",
    ),
    "no mass": (
        changed('<mass value="1"/>', ""),
        "link 'upper', <inertial>: it has no <mass>. Write",
    ),
    "mass word": (
        changed('<mass value="1"/>', '<mass value="kg"/>'),
        "link 'upper', <inertial>, <mass>: value is 'kg'",
    ),
    "mass < 0": (
        changed('<mass value="1"/>', '<mass value="-1"/>'),
        "Link 'upper': mass is -1. Give it zero or more",
    ),
    "mass nan": (
        changed('<mass value="1"/>', '<mass value="nan"/>'),
        "'upper', <inertial>, <mass>: value.*not a finite",
    ),
    "no inertia": (
        changed(INERTIA, ""),
        "'upper', <inertial>: it has no <inertia>. Write",
    ),
    "no ixy": (
        changed(' ixy="0"', ""),
        "'upper', <inertial>, <inertia>: it has no ixy. Write",
    ),
    "triangle": (
        changed('izz="4"', 'izz="6"'),
        "Link 'upper': principal moments 2, 3, 6 .*Check the inertia",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_text_is_refused(case):
    text, message = BAD[case]
    with pytest.raises(ModelError, match=f"^URDF text(?s:.*){message}"):
        load(text)


def test_a_bad_file_is_named(tmp_path):
    path = tmp_path / "arm.urdf"
    for case in "truncated", "triangle", "zero axis", "mjcf":
        path.write_text(BAD[case][0])
        with pytest.raises(ModelError, match=f"^arm.urdf(?s:.*){BAD[case][1]}"):
            load(path)


def test_a_bad_call_is_refused(tmp_path):
    for source in tmp_path / "no.urdf", tmp_path, "no.urdf", "x" * 9999, "a\0b":
        with pytest.raises(ModelError, match=r"cannot be read(?s:.*)Give the path"):
            load(source)
    with pytest.raises(ModelError, match="from a path or from XML text"):
        inspect.unwrap(load)(3)  # without the checks of types that tests add
    with pytest.raises(ModelError, match=r"mimic is 'follow'. Choose one of refuse"):
        inspect.unwrap(load)(ARM, mimic="follow")
    with pytest.raises(ModelError, match=r"'extra': .*already.*floating_base=False"):
        load(with_joint("floor", "pad", "floating"), floating_base=True)


def test_mimics_that_cannot_be_resolved_are_refused():
    with pytest.raises(ModelError, match=r"'elbow', <mimic>: .*'nobody'.*mimic='free'"):
        load(mimicking("nobody"), mimic="lock")
    with pytest.raises(ModelError, match=r"joint 'elbow': it mimics itself. Remove"):
        load(mimicking("elbow"), mimic="lock")


BOMB = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 12))


@pytest.mark.parametrize(
    "declaration",
    [
        f'<!DOCTYPE robot [<!ENTITY e0 "ha">{BOMB}]>',
        '<!DOCTYPE robot [<!ENTITY e11 SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE robot [<!ENTITY % p SYSTEM "http://127.0.0.1:9/x"> %p;]>',
        '<!DOCTYPE robot SYSTEM "http://127.0.0.1:9/robot.dtd">',
    ],
)
def test_entities_and_document_types_are_refused(declaration, tmp_path):
    text = declaration + ARM.strip().replace("</robot>", "&e11;</robot>")
    path = tmp_path / "bomb.urdf"
    path.write_text(text)
    for source in text, path:
        with pytest.raises(ModelError, match=r"not safe to read. Delete its <!DOCTYPE"):
            load(source)


def test_every_prefix_of_a_file_is_refused():
    for end in range(1, len(ARM.rstrip()), 37):
        with pytest.raises(ModelError, match=r"URDF text"):
            load(ARM[:end])
