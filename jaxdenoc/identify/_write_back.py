"""New numbers in a user's own URDF, in which nothing else changes."""

import os
import warnings
from pathlib import Path
from typing import Literal

import numpy as np

from .._errors import ModelError, ModelWarning
from .._npz import write_whole
from ..io import load
from ..io._declared import declared
from ..io._edits import Edits, New, Place
from ..io._rpy import rotation
from ..io._urdf_parts import inertial
from ..io._xml import Node, read
from ..model import Model
from ..model._check import check_inertia
from ._bodies import Body, left_over, placed, same, together
from ._write_joints import text, write_joint

UPPER = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2),
         "izz": (2, 2)}  # fmt: skip
REMEDY = (
    'With fixed="merge" the link gets all of the sum, and the parts fixed to it zero.'
)
ELSEWHERE = ("armature", "placement", "axis", "pitch", "q_lower", "q_upper", "qd_limit",
             "tau_limit", "gravity", "friction_speed")  # fmt: skip


def patched_urdf(
    source: str | os.PathLike,
    model: Model,
    *,
    fixed: Literal["keep", "merge"] = "keep",
) -> str:
    """The user's URDF, a path or its text, with the numbers of this model in it.

    What is written is `inertial` of the links, `origin` and `dynamics` of the joints,
    where they differ from what is there; all other bytes stay, comments and blanks too.
    An inertia is written in the axes that the file has for it. Links on fixed joints
    keep their numbers: what their sum with the link that carries them has changed by
    goes to that link, and if no body is left for it then, that is an error. With
    fixed="merge" the link gets all of the sum, where it has changed, and they get zero.

    What URDF has no place for, such as armature, or what this does not write, such as
    limits, is listed in a `ModelWarning`. The text is to be written with the
    encoding that it declares and with line ends as they are.
    """
    if fixed not in ("keep", "merge"):
        raise ModelError(f"fixed is {fixed!r}. Choose 'keep' or 'merge'.")
    name, robot = read(source)
    edits = Edits(declared(source)[0])
    links = _named(robot, edits.root, "link")
    joints = _named(robot, edits.root, "joint")
    _check_names(name, model, links, joints)
    for i in range(model.n_links):
        _write_body(edits, model, i, links, fixed)
    for i, joint in enumerate(model.joint_names):
        if model.joint_kinds[i] != "free":
            write_joint(edits, model, i, *joints[joint])
    patched = edits.text()
    _warn(name, model, patched, robot)
    return patched


def write_patched_urdf(
    source: str | os.PathLike,
    model: Model,
    path: str | os.PathLike,
    *,
    fixed: Literal["keep", "merge"] = "keep",
) -> None:
    """`patched_urdf` to a file, in the source's encoding, there whole or not at all."""
    data = patched_urdf(source, model, fixed=fixed).encode(declared(source)[1])
    write_whole(Path(path), lambda file: file.write(data))


def _named(robot: Node, root: Place, tag: str) -> dict[str, tuple[Node, Place]]:
    """What was read, and where it is; both have the same order."""
    nodes = robot.children(tag, key="name")
    places = [c for c in root.children if c.tag == tag]
    return {x.need("name"): (x, p) for x, p in zip(nodes, places, strict=True)}


def _check_names(name: str, model: Model, links, joints) -> None:
    for what, ours, theirs in (
        ("link", (*model.link_names, *model.frame_names), links),
        ("joint", [s for s, k in zip(model.joint_names, model.joint_kinds, strict=True)
                   if k != "free"], joints),
    ):  # fmt: skip
        for s in ours:
            if s not in theirs:
                raise ModelError(
                    f"{name} has no {what} '{s}', which model '{model.name}' has. Give "
                    "the file that the model was loaded from."
                )


def _body(node: Node) -> Body:
    what = inertial(node)
    if not what:
        return Body.nothing()
    return Body(what["mass"], np.array(what["com"]), np.asarray(what["inertia"]))


def _parts(model: Model, i: int, links) -> dict[str, Body]:
    """The bodies that were merged into link i, in its axes."""
    found = {}
    for k, (name, host) in enumerate(
        zip(model.frame_names, model.frame_links, strict=True)
    ):
        if host == i:
            R = np.asarray(model.frame_placement.rotation[k], float)
            p = np.asarray(model.frame_placement.translation[k], float)
            found[name] = placed(_body(links[name][0]), R, p)
    return {s: b for s, b in found.items() if b.mass or b.inertia.any()}


def _write_body(edits: Edits, model: Model, i: int, links, fixed: str) -> None:
    parts = _parts(model, i, links)
    com, inertia = (np.asarray(x[i], float) for x in (model.com, model.inertia))
    own = _body(links[model.link_names[i]][0])
    goal = Body(float(model.mass[i]), com, inertia)
    rounding = 64 * float(np.finfo(np.asarray(model.mass).dtype).eps)
    if same(together([own, *parts.values()]), goal, rounding):
        return
    if parts and fixed == "merge":
        for name in parts:
            _write_inertial(edits, links[name], Body.nothing(), rounding)
    elif parts:
        goal = left_over(goal, list(parts.values()))
        _check(model.link_names[i], own, goal, parts)
    _write_inertial(edits, links[model.link_names[i]], goal, rounding)


def _write_inertial(edits: Edits, link, new: Body, rounding: float) -> None:
    node, place = link
    own, at, R = _body(node), place.child("inertial"), _own_axes(node)
    moments = R.T @ new.inertia @ R
    if at is None:
        edits.add(place, [_new_inertial(new, moments)])
        return
    if new.mass > 0:
        _write_place(edits, at, own.com, new.com, rounding)
    mass, inertia = at.child("mass"), at.child("inertia")
    assert mass is not None and inertia is not None  # `inertial` has refused else
    if abs(new.mass - own.mass) > rounding * own.mass:
        edits.set(mass, "value", text(new.mass))
    least = rounding * np.abs(moments).max()
    for s, k in UPPER.items():
        if not abs(float(inertia.attributes[s]) - moments[k]) <= least:
            edits.set(inertia, s, text(moments[k]))


def _own_axes(node: Node) -> np.ndarray:
    """Those that the file has the inertia in."""
    at = node.child("inertial")
    origin = at.child("origin") if at else None
    return rotation(origin.numbers("rpy", (0.0, 0.0, 0.0))) if origin else np.eye(3)


def _write_place(edits: Edits, at: Place, old, new, rounding: float) -> None:
    if np.abs(new - old).max() <= rounding * np.abs(new).max():
        return
    xyz, origin = text(*new), at.child("origin")
    if origin is None:
        edits.add(at, [New("origin", {"xyz": xyz})])
    else:
        edits.set(origin, "xyz", xyz)


def _new_inertial(body: Body, moments: np.ndarray) -> New:
    return New(
        "inertial",
        {},
        [
            New("origin", {"xyz": text(*body.com), "rpy": "0 0 0"}),
            New("mass", {"value": text(body.mass)}),
            New("inertia", {s: text(moments[k]) for s, k in UPPER.items()}),
        ],
    )


def _check(link: str, own: Body, new: Body, parts: dict[str, Body]) -> None:
    """What is left for the link itself must be a body, if it was one."""
    where = f"Link '{link}', less the parts fixed to it ({', '.join(parts)})"
    if new.mass > 0:
        try:
            check_inertia(new.inertia, new.mass, where)
        except ModelError as error:
            if _is_body(own):
                raise ModelError(f"{error} {REMEDY}") from None
        return
    carried = sum(b.mass for b in parts.values())
    raise ModelError(
        f"{where}: {new.mass:.4g} kg would be left for it, of {new.mass + carried:.4g} "
        f"kg in all. {REMEDY}"
    )


def _is_body(body: Body) -> bool:
    try:
        check_inertia(body.inertia, body.mass, "")
    except ModelError:
        return False
    return body.mass > 0 or not body.inertia.any()


def _warn(name: str, model: Model, text: str, robot: Node) -> None:
    lost = _lost(model, text, robot)
    if lost:
        warnings.warn(
            f"{name}: not written are {', '.join(lost)} of the model, which differ "
            "from what the file gives. Keep the whole model with `jd.save`.",
            ModelWarning,
            stacklevel=3,
        )


def _lost(model: Model, text: str, robot: Node) -> list[str]:
    """What `load` finds otherwise in the text; armature only if it has other joints."""
    floating = any(j.get("type") == "floating" for j in robot.children("joint"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        found = load(
            text,
            floating_base=model.floating_base and not floating,
            mimic="free",
            dtype=np.asarray(model.mass).dtype,
        )
    if found.joint_names != model.joint_names:
        return ["armature"] if np.any(np.asarray(model.armature)) else []
    return [s for s in ELSEWHERE if not _alike(getattr(found, s), getattr(model, s))]


def _alike(a, b) -> bool:
    if hasattr(a, "rotation"):
        return _alike(a.rotation, b.rotation) and _alike(a.translation, b.translation)
    return bool(np.allclose(np.asarray(a), np.asarray(b), rtol=1e-6, atol=1e-9))
