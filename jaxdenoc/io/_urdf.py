"""URDF in, a `Model` out.

Beyond the standard there is one spelling: a helical joint is of type "screw" and has
an attribute `pitch`, metres along the axis per radian about it.
"""

import os
import warnings
from collections.abc import Iterable
from typing import Literal

from jax.typing import DTypeLike

from .._errors import ModelError, ModelWarning
from ..model import Link, Model, build, lock
from ._massless import massless_joints
from ._mimic import held_joints
from ._urdf_parts import ends, inertial, limits_by_default, link_on
from ._xml import Node, read

_MIMIC = ("refuse", "free", "lock")


def load(
    source: str | os.PathLike,
    *,
    floating_base: bool = False,
    mimic: Literal["refuse", "free", "lock"] = "refuse",
    dtype: DTypeLike | None = None,
) -> Model:
    """A model from a URDF: a path, or the XML text itself.

    The root link is the base; with `floating_base` it becomes link 0, free to move
    against a base named "world". A `floating` joint on the root link does the same to
    the link below it. Joints that mimic others are refused, made independent with
    mimic="free", or with mimic="lock" held where they are when the joint they follow
    is at zero. Meshes are not opened. What is left out of the model is listed in one
    `ModelWarning`; what cannot be a model is refused with a `ModelError`.
    """
    if not isinstance(source, str | os.PathLike):
        raise ModelError(
            f"A robot is loaded from a path or from XML text, not from {type(source)}. "
            "Give one of these."
        )
    if mimic not in _MIMIC:
        raise ModelError(f"mimic is {mimic!r}. Choose one of {', '.join(_MIMIC)}.")
    file, robot = read(source)
    _check_root(robot)
    links, joints = _named(robot, "link"), _named(robot, "joint")
    root = _root(robot, links, joints)
    held = held_joints(joints, mimic)
    parts = [link_on(joint, links, root) for joint in joints.values()]
    base = root
    if not floating_base and all(part.kind == "fixed" for part in parts):
        robot.refuse(
            "nothing in it moves. Load with floating_base=True, or give it a joint "
            "that is not fixed."
        )
    if floating_base:
        base = _unused("world", links)
        parts = [_free_root(links[root], root, parts, joints), *parts]
    try:
        model = build(parts, name=robot.get("name") or "robot", base=base, dtype=dtype)
        if held:
            model = lock(model, held)
    except ModelError as error:
        raise ModelError(f"{file}: {error}") from None
    _warn(file, robot, root, base, model)
    return model


def _check_root(robot: Node) -> None:
    """The right kind of file, before anything in it is looked at."""
    tag = str(robot.element.tag)
    if tag == "mujoco":
        robot.refuse("this is MJCF, which is not read yet. Convert it to URDF.")
    if any("xacro}" in str(e.tag) for e in robot.element.iter()):
        robot.refuse("this has xacro elements in it. Run xacro on it first.")
    if tag != "robot":
        robot.refuse(f"the root element is <{tag}>. A URDF begins with <robot>.")


def _named(robot: Node, tag: str) -> dict[str, Node]:
    found: dict[str, Node] = {}
    for node in robot.children(tag, key="name"):
        name = node.need("name")
        if name in found:
            node.refuse(f"two {tag}s have this name. Rename one.")
        found[name] = node
    return found


def _root(robot: Node, links: dict[str, Node], joints: dict[str, Node]) -> str:
    """The one link that hangs from no other."""
    if not links:
        robot.refuse("it has no <link>. Add links, and joints between them.")
    carrier: dict[str, str] = {}
    for name, joint in joints.items():
        _, child = ends(joint, links)
        if child in carrier:
            joint.refuse(
                f"link '{child}' hangs from joint '{carrier[child]}' already. Models "
                "are trees: cut the loop by giving one of the joints a link of its own."
            )
        carrier[child] = name
    roots = [name for name in links if name not in carrier]
    if not roots:
        robot.refuse(
            f"every link hangs from another, as '{next(iter(links))}' does from joint "
            f"'{carrier[next(iter(links))]}'. Remove a joint: one link is the base."
        )
    if len(roots) > 1:
        robot.refuse(
            f"{len(roots)} links hang from no joint: '{roots[0]}', '{roots[1]}'"
            f"{' ...' if len(roots) > 2 else ''}. Join them, by a fixed joint if "
            "nothing else, or load them one by one."
        )
    return roots[0]


def _free_root(
    node: Node, root: str, parts: list[Link], joints: dict[str, Node]
) -> Link:
    """The root link as a free base."""
    for part in parts:
        if part.kind == "free":
            joints[part.joint].refuse(
                "a floating joint makes a free base already. Load with "
                "floating_base=False."
            )
    return Link(root, None, "free", _unused("root_joint", joints), **inertial(node))


def _unused(name: str, names: dict[str, Node]) -> str:
    while name in names:
        name += "_"
    return name


def _warn(file: str, robot: Node, root: str, base: str, model: Model) -> None:
    """One warning for what is left out, and one for each thing that may surprise."""
    robot.get("version")  # of the format; there is only one
    for link in robot.children("link"):
        if root == base == link.get("name"):
            link.set_aside(("inertial",), "of the base")
    left_out = robot.left_out()
    if left_out:
        listed = ", ".join(f"{k} {what}" for what, k in left_out.most_common())
        _say(f"{file}: left out {listed}")
    shut = [s for s in robot.children("joint") if limits_by_default(s)]
    if shut:
        _say(
            f"{file}: <limit> has no lower and no upper, which URDF takes as zero, in "
            f"joint {_list(s.get('name') for s in shut)}. Write them, or make the "
            "joint continuous."
        )
    idle = massless_joints(model)
    if idle:
        _say(
            f"{file}: nothing with mass moves with joint {_list(idle)}, so its "
            "acceleration is not defined. Lock it, give a link beyond it mass, or give "
            "it armature."
        )


def _list(names: Iterable[str]) -> str:
    return ", ".join(f"'{s}'" for s in names)


def _say(message: str) -> None:
    warnings.warn(message, ModelWarning, stacklevel=4)  # at the call of `load`
