"""A log cut into short motions, each of which starts where it was measured."""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from .._errors import ModelError
from ..model import Model
from ._measurements import Measurements


class Segments(NamedTuple):
    """Rows of one motion each: `horizon` steps, of which the last may not be real."""

    q: Any  # (k, h + 1, nq)
    qd: Any  # (k, h + 1, nv)
    tau: Any  # (k, h, nv), held from its sample to the next
    dt: Any  # (k, h), zero where there is no step
    real: Any  # (k, h), 1 or 0

    def part(self, rows: slice) -> "Segments":
        return Segments(*(x[rows] for x in self))


def segments(model: Model, logs: list[Measurements], horizon: int) -> Segments:
    """All of the logs' pieces, cut where a sample's torques do not count, too."""
    found: list[tuple] = []
    for log in logs:
        for piece in log.pieces():
            for part in _driven(model, piece):
                found += _cut(part, horizon)
    if not found:
        raise ModelError(
            "No two samples follow each other with all torques between them: there is "
            "no motion to compare a rollout with."
        )
    return Segments(*(np.stack(x) for x in zip(*found, strict=True)))


def _driven(model: Model, piece: Measurements) -> list[Measurements]:
    """Stretches in which all motors' torques are known, but for the last sample."""
    motors = slice(6 if model.floating_base else 0, None)
    unknown = np.flatnonzero((np.asarray(piece.weight)[:, motors] == 0).any(axis=1))
    ends = [-1, *unknown.tolist(), len(piece) - 1]
    return [piece[a + 1 : b + 1] for a, b in pairwise(ends) if b - a > 1]


def _cut(part: Measurements, h: int) -> list[tuple]:
    rows = []
    t, q, qd, tau = (np.asarray(x) for x in (part.t, part.q, part.qd, part.tau))
    for a in range(0, len(part) - 1, h):
        b = min(a + h, len(part) - 1)
        short = h - (b - a)
        real = np.concatenate([np.ones(b - a), np.zeros(short)])
        dt = np.concatenate([np.diff(t[a : b + 1]), np.zeros(short)])
        held = [_longer(x[a : b + 1], short) for x in (q, qd)]
        rows.append((*held, _longer(tau[a:b], short), dt, real))
    return rows


def _longer(x: np.ndarray, by: int) -> np.ndarray:
    return np.concatenate([x, np.repeat(x[-1:], by, 0)])
