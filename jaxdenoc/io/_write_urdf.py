"""A `Model` in, URDF out: `load` turned round."""

import re
import warnings
from collections.abc import Iterable
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np

from .._errors import ModelError, ModelWarning
from .._types import Numbers
from ..model import Link, Model, links_of
from ._rpy import angles
from ._urdf_parts import NO_LIMIT

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TYPES = {"free": "floating", "helical": "screw"}


def to_urdf(model: Model) -> str:
    """The model as URDF text, in as many digits as it takes to read the same numbers.

    Frames are links on fixed joints, a free base is a floating joint on the base, a
    helical joint is of type "screw" with `pitch` in metres per radian, and the largest
    number stands for no limit. `load` reads all of this back. What URDF has no place
    for, such as armature, is listed in a `ModelWarning`.
    """
    links = _in_order(model)
    _check_names(model, links)
    robot = Element("robot", name=model.name)
    _write_link(robot, Link(model.base_name))
    for link in links:
        _write_link(robot, link)
    joints = _joint_names(links)
    for link, name in zip(links, joints, strict=True):
        _write_joint(robot, link, name, model.base_name)
    _warn(model)
    indent(robot)
    return f'<?xml version="1.0"?>\n{tostring(robot, encoding="unicode")}\n'


def _in_order(model: Model) -> list[Link]:
    """Links and frames in one line, so that both are met in their order again.

    `load` walks the tree in depth, and children in the order of the file. A frame
    therefore comes after its link and after all that the frames before it came after.
    """
    links = links_of(model)
    after: list[list[Link]] = [[] for _ in range(model.n_links + 1)]  # last: the base
    slot = -1
    for host, frame in zip(model.frame_links, links[model.n_links :], strict=True):
        slot = max(slot, host)
        after[slot].append(frame)
    line = list(after[-1])
    for i in range(model.n_links):
        line += [links[i], *after[i]]
    return line


def _joint_names(links: list[Link]) -> list[str]:
    """Those of the model, and for frames what is not among them."""
    taken = {s.joint_name for s in links if s.kind != "fixed"}
    names = []
    for link in links:
        name = link.joint_name
        while link.kind == "fixed" and name in taken:
            name += "_"
        taken.add(name)
        names.append(name)
    return names


def _check_names(model: Model, links: list[Link]) -> None:
    bodies = (model.base_name, *(s.name for s in links))
    for name in (model.name, *bodies, *model.joint_names):
        if not name or _NOT_XML.search(name):
            raise ModelError(
                f"Model '{model.name}': the name {name!r} cannot stand in a URDF. "
                "Choose one of printable characters."
            )


def _write_link(robot: Element, link: Link) -> None:
    body = SubElement(robot, "link", name=link.name)
    if link.mass == 0 and not np.any(link.inertia) and not np.any(link.com):
        return
    inertial = SubElement(body, "inertial")
    SubElement(inertial, "origin", xyz=_text(link.com), rpy="0 0 0")
    SubElement(inertial, "mass", value=_text([link.mass]))
    inertia = np.asarray(link.inertia)
    upper = {f"i{'xyz'[i]}{'xyz'[j]}": (i, j) for i in range(3) for j in range(i, 3)}
    SubElement(inertial, "inertia", {s: _text([inertia[k]]) for s, k in upper.items()})


def _write_joint(robot: Element, link: Link, name: str, base: str) -> None:
    joint = SubElement(robot, "joint", name=name, type=_TYPES.get(link.kind, link.kind))
    if link.kind == "helical":
        joint.set("pitch", _text([link.pitch]))
    SubElement(joint, "parent", link=link.parent or base)
    SubElement(joint, "child", link=link.name)
    rpy = angles(np.asarray(link.rotation, float))
    SubElement(joint, "origin", xyz=_text(link.translation), rpy=_text(rpy))
    if link.kind in ("fixed", "free"):
        return
    SubElement(joint, "axis", xyz=_text(link.axis))
    limits = {"effort": link.effort, "velocity": link.speed}
    if link.kind != "continuous":
        limits = {"lower": link.lower, "upper": link.upper, **limits}
    SubElement(joint, "limit", {s: _text([x]) for s, x in limits.items()})
    losses = {"damping": link.damping, "friction": link.friction}
    SubElement(joint, "dynamics", {s: _text([x]) for s, x in losses.items()})


def _text(values: Numbers) -> str:
    """The shortest decimals that read as the same numbers, 17 digits at most."""
    return " ".join(
        repr(float(np.clip(x, -NO_LIMIT, NO_LIMIT))) for x in np.asarray(values, float)
    )


def _warn(model: Model) -> None:
    lost = list(_lost(model))
    if lost:
        warnings.warn(
            f"Model '{model.name}': URDF has no place for {'; '.join(lost)}. Keep the "
            "whole model with `jd.save`.",
            ModelWarning,
            stacklevel=3,
        )


def _lost(model: Model) -> Iterable[str]:
    """What `load` will not find in the text."""
    kinds = np.repeat(
        model.joint_kinds, [6 if k == "free" else 1 for k in model.joint_kinds]
    )
    free, endless = kinds == "free", np.isin(kinds, ("free", "continuous"))
    where = {
        **{"armature": kinds != "", "damping": free, "friction": free},
        **{"q_lower": endless, "q_upper": endless},
        **{"qd_limit": free, "tau_limit": free},
    }
    for what, rows in where.items():
        values = np.asarray(getattr(model, what))
        none = np.isinf(values) if what[0] == "q" or "limit" in what else values == 0
        named = [
            s for s, k in zip(model.velocity_names, rows & ~none, strict=True) if k
        ]
        if named:
            yield f"{what} of {', '.join(named)}"
    together = model.tree.ancestry
    if not all(p < 0 or together[p, i] for i, p in enumerate(model.parent[1:])):
        yield "the order of the links, which will be branch by branch"
    for what, usual in ("gravity", (0.0, 0.0, -9.81)), ("friction_speed", 0.01):
        values = np.asarray(getattr(model, what))
        if not np.array_equal(values, np.asarray(usual, values.dtype)):
            yield f"{what} {values.tolist()}"
