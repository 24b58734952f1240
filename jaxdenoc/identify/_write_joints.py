"""A joint's own numbers in a user's URDF: where it is, and what it loses."""

import numpy as np

from ..io._edits import Edits, New, Place
from ..io._rpy import angles, rotation
from ..io._xml import Node
from ..model import Model


def write_joint(edits: Edits, model: Model, i: int, node: Node, place: Place) -> None:
    """What differs of `origin` and `dynamics`."""
    rounding = 64 * float(np.finfo(np.asarray(model.mass).dtype).eps)
    _write_origin(edits, model, i, node, place, rounding)
    _write_losses(edits, model, i, node, place, rounding)


def _write_origin(edits, model, i, node: Node, place: Place, rounding) -> None:
    """The placement, as seen from the parent in the file, which may be a frame.

    R = R_frameᵀ R_i ,   p = R_frameᵀ (p_i - p_frame)
    """
    R, p = _pose(model.placement, i)
    parent = node.child("parent")
    name = parent.get("link") if parent else ""
    if name in model.frame_names:
        R_f, p_f = _pose(model.frame_placement, model.frame_names.index(name))
        R, p = R_f.T @ R, R_f.T @ (p - p_f)
    there, origin = node.child("origin"), place.child("origin")
    none = (0.0, 0.0, 0.0)
    old = there.numbers("xyz", none) if there else none
    turn = there.numbers("rpy", none) if there else none
    new = {}
    size = max(np.abs(p).max(), np.abs(np.asarray(model.placement.translation)).max())
    if np.abs(p - np.asarray(old)).max() > rounding * size:
        new["xyz"] = text(*p)
    if np.abs(R - rotation(turn)).max() > rounding:
        new["rpy"] = text(*angles(R))
    _put(edits, place, origin, "origin", new)


def _write_losses(edits, model, i, node: Node, place: Place, rounding) -> None:
    k = model.rows.velocity[model.rows.body[i]]
    there, new = node.child("dynamics"), {}
    for s in ("damping", "friction"):
        old = there.number(s, 0.0) if there else 0.0
        value = float(np.asarray(getattr(model, s), float)[k])
        if abs(value - old) > rounding * abs(old):
            new[s] = text(value)
    _put(edits, place, place.child("dynamics"), "dynamics", new)


def _put(edits: Edits, place: Place, there: Place | None, tag: str, new: dict) -> None:
    """Attributes of an element that is there, or a new one, behind the others."""
    if there is not None:
        for name, value in new.items():
            edits.set(there, name, value)
    elif new:
        edits.add(place, [New(tag, new)], last=True)


def _pose(placement, k: int) -> tuple[np.ndarray, np.ndarray]:
    R, p = placement.rotation[k], placement.translation[k]
    return np.asarray(R, float), np.asarray(p, float)


def text(*values: float) -> str:
    """The shortest decimals that read as the same numbers."""
    return " ".join(repr(float(x)) for x in values)
