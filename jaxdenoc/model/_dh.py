"""Denavit-Hartenberg tables in Saha's convention (MATH 1.7)."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jax.typing import DTypeLike

from .._errors import ModelError
from .._types import Number, Numbers
from ._build import Link, build
from ._model import Model

_KINDS = {"R": "revolute", "P": "prismatic"}


@dataclass(frozen=True)
class DHLink:
    """One row of a table: the four parameters of joint i, the mass data of link i.

    Frame i has its z on joint i and is fixed to link i - 1; the next frame is

        frame_{i+1} = frame_i · Rz(theta) Tz(b) Tx(a) Rx(alpha)

    `kind` is "R" (theta is the variable) or "P" (b is); what the row holds for the
    variable is not used. The mass data are in frame i + 1, fixed to link i: `com` is
    r_i as Saha tabulates it, **from the mass centre to the next origin** O_{i+1}, and
    `inertia` (3×3, or its diagonal) is about the mass centre.
    """

    kind: str
    a: Number
    b: Number
    alpha: Number
    theta: Number
    mass: Number
    com: Numbers
    inertia: Numbers


def from_dh(
    rows: Iterable[DHLink],
    *,
    gravity: Numbers = (0.0, 0.0, -9.81),
    name: str = "robot",
    dtype: DTypeLike | None = None,
) -> Model:
    """A serial arm from its table, base to tip."""
    links: list[Link] = []
    R, t = np.eye(3), np.zeros(3)  # from the body frame of the link before to frame i
    for i, row in enumerate(rows, start=1):
        kind = _KINDS.get(row.kind[:1].upper()) if row.kind else None
        if kind is None or row.kind.lower() not in ("r", "p", "revolute", "prismatic"):
            raise ModelError(
                f"DH row {i} is of kind '{row.kind}'. Write 'R' for a revolute or 'P' "
                "for a prismatic joint."
            )
        inertia = np.asarray(row.inertia, float)
        if inertia.shape == (3,):
            inertia = np.diag(inertia)
        if inertia.shape != (3, 3) or np.shape(row.com) != (3,):
            raise ModelError(
                f"DH row {i}: com has shape {np.shape(row.com)} and inertia "
                f"{inertia.shape}. Give 3 numbers, and 3×3 or its diagonal."
            )
        Rf, tf = _to_next_frame(row, kind)
        links.append(
            Link(
                f"link{i}",
                f"link{i - 1}" if i > 1 else None,
                kind,
                f"joint{i}",
                rotation=R,
                translation=t,
                mass=row.mass,
                com=tf - Rf @ np.asarray(row.com, float),
                inertia=Rf @ inertia @ Rf.T,
            )
        )
        R, t = Rf, tf
    return build(links, gravity=gravity, name=name, dtype=dtype)


def _to_next_frame(row: DHLink, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """The pose of frame i + 1 in body frame i, which has the joint's motion in it."""
    c, s = np.cos(row.alpha), np.sin(row.alpha)
    Rx = np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
    if kind == "revolute":
        return Rx, np.array([row.a, 0.0, row.b])
    c, s = np.cos(row.theta), np.sin(row.theta)
    Rz = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    return Rz @ Rx, Rz @ np.array([row.a, 0.0, 0.0])
