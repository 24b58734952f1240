"""The parts of a URDF: a joint and the link it carries become a `Link`."""

import sys

import numpy as np

from ..model import Link
from ._rpy import rotation
from ._xml import Node

_KINDS = {
    **{s: s for s in ("revolute", "continuous", "prismatic", "fixed")},
    **{"floating": "free", "screw": "helical"},
}
NO_LIMIT = sys.float_info.max  # the largest number stands for none: all tools read it


def ends(joint: Node, links: dict[str, Node]) -> tuple[str, str]:
    """The names of the parent and the child."""
    names = []
    for tag in "parent", "child":
        end = joint.child(tag)
        if end is None:
            joint.refuse(f'it has no {tag}. Write <{tag} link="..."/> into it.')
        name = end.need("link")
        if name not in links:
            end.refuse(f"there is no link '{name}'. Add it, or name another.")
        names.append(name)
    return names[0], names[1]


def link_on(joint: Node, links: dict[str, Node], root: str) -> Link:
    """The joint, and the link it carries."""
    parent, child = ends(joint, links)
    kind = _kind(joint, parent == root)
    one_way = kind not in ("fixed", "free")
    if not one_way:
        unused = ("axis", "limit", "dynamics", "mimic")
        joint.set_aside(unused, f"of a {joint.get('type')} joint")
    return Link(
        child,
        parent,
        kind,
        joint.get("name"),
        **_pose(joint),
        **inertial(links[child]),
        **(_moving(joint, kind) if one_way else {}),
    )


def _kind(joint: Node, on_root: bool) -> str:
    urdf = joint.need("type")
    if urdf not in _KINDS:
        joint.refuse(
            f"joints of type '{urdf}' are not supported. Compose it of revolute and "
            "prismatic joints with massless links between them, or make it fixed."
        )
    if urdf == "floating" and not on_root:
        joint.refuse(
            "a floating joint below a moving link is not supported. Hang it from the "
            "root link, or load its subtree as a robot of its own."
        )
    return _KINDS[urdf]


def _pose(node: Node) -> dict:
    origin = node.child("origin")
    if origin is None:
        return {}
    return {
        "rotation": rotation(origin.numbers("rpy", (0.0, 0.0, 0.0))),
        "translation": origin.numbers("xyz", (0.0, 0.0, 0.0)),
    }


def inertial(link: Node) -> dict:
    """Mass, mass centre, and the inertia turned from its own axes to the link's."""
    node = link.child("inertial")
    if node is None:
        return {}
    mass, inertia = node.child("mass"), node.child("inertia")
    if mass is None:
        node.refuse('it has no <mass>. Write <mass value="..."/> into it.')
    if inertia is None:
        node.refuse('it has no <inertia>. Write <inertia ixx="..." .../> into it.')
    xx, xy, xz, yy, yz, zz = (
        inertia.number(s) for s in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    )
    own = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    pose = _pose(node)
    R = pose.get("rotation", np.eye(3))
    return {
        "mass": mass.number("value"),
        "com": pose.get("translation", (0.0, 0.0, 0.0)),
        "inertia": R @ own @ R.T,
    }


def _moving(joint: Node, kind: str) -> dict:
    """The axis, limits and losses of a joint that moves in one way."""
    axis, dynamics = joint.child("axis"), joint.child("dynamics")
    what: dict = {
        "axis": axis.numbers("xyz", (1.0, 0.0, 0.0)) if axis else (1.0, 0.0, 0.0)
    }
    if axis and not np.any(what["axis"]):
        axis.refuse("xyz is 0 0 0. Give the axis a direction.")
    if dynamics:
        what["damping"] = dynamics.number("damping", 0.0)
        what["friction"] = dynamics.number("friction", 0.0)
    if kind == "helical":
        what["pitch"] = joint.number("pitch")
    return what | _limits(joint, kind)


def _limits(joint: Node, kind: str) -> dict:
    """Limits; none where the file gives none, but by the standard lower = upper = 0
    where <limit> stands without them."""
    limit = joint.child("limit")
    if limit is None:
        return {}
    names = {"effort": ("effort", np.inf), "speed": ("velocity", np.inf)}
    if kind != "continuous":
        names |= {"lower": ("lower", 0.0), "upper": ("upper", 0.0)}
    what = {}
    for ours, (theirs, default) in names.items():
        value = limit.number(theirs, default, infinite=True)
        what[ours] = np.copysign(np.inf, value) if abs(value) >= NO_LIMIT else value
    for ours in "effort", "speed":
        if what[ours] < 0:
            limit.refuse(f"{names[ours][0]} is {what[ours]:g}, below zero. Correct it.")
    if kind != "continuous" and what["lower"] > what["upper"]:
        limit.refuse("lower is above upper. Exchange them, or check their signs.")
    return what


def limits_by_default(joint: Node) -> bool:
    """Whether a joint may not move only because <limit> does not say how far."""
    limit = joint.child("limit")
    return (
        limit is not None
        and joint.get("type") in ("revolute", "prismatic", "screw")
        and not {"lower", "upper"} & set(limit.element.attrib)
    )
