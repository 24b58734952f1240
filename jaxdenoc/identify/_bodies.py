"""Rigid bodies that are put together and taken apart again."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Body(NamedTuple):
    mass: float
    com: np.ndarray
    inertia: np.ndarray  # about the mass centre

    @classmethod
    def nothing(cls) -> "Body":
        return cls(0.0, np.zeros(3), np.zeros((3, 3)))


def second_moment(m: float, c: np.ndarray) -> np.ndarray:
    """m (c·c 1 - c cᵀ), of a point mass."""
    return m * (c @ c * np.eye(3) - np.outer(c, c))


def placed(body: Body, R: np.ndarray, p: np.ndarray) -> Body:
    """The body in the axes of what carries it."""
    return Body(body.mass, p + R @ body.com, R @ body.inertia @ R.T)


def together(bodies: Sequence[Body]) -> Body:
    """Σ m , Σ m c / m , Σ I + m_k (…) of all bodies as one."""
    mass = sum(b.mass for b in bodies)
    com = sum((b.mass * b.com for b in bodies), np.zeros(3)) / (mass or 1.0)
    com = com if mass > 0 else bodies[0].com
    inertia = [b.inertia + second_moment(b.mass, b.com - com) for b in bodies]
    return Body(mass, com, np.sum(inertia, axis=0))


def left_over(whole: Body, parts: Sequence[Body]) -> Body:
    """What has to be put to the parts to make the whole: `together` turned round."""
    mass = whole.mass - sum(b.mass for b in parts)
    moment = whole.mass * whole.com - sum(b.mass * b.com for b in parts)
    com = moment / mass if mass else whole.com
    inertia = whole.inertia - second_moment(mass, com - whole.com)
    for b in parts:
        inertia = inertia - b.inertia - second_moment(b.mass, b.com - whole.com)
    return Body(mass, com, inertia)


def same(a: Body, b: Body, rounding: float) -> bool:
    """Whether they differ by rounding only."""
    length = max(np.abs(a.com).max(), np.abs(b.com).max())
    size = max(np.abs(b.inertia).max(), b.mass * length**2)
    return bool(
        abs(a.mass - b.mass) <= rounding * b.mass
        and np.abs(a.com - b.com).max() <= rounding * length
        and np.abs(a.inertia - b.inertia).max() <= rounding * size
    )
