"""Outliers: samples that lie far off count less, in turns [Huber 1964].

    r = τ - τ̂ ,   σ_j = 1.4826 median |r_kj| ,   w_kj² = min(1, 1.345 σ_j / |r_kj|)

after each of which the log is read again with these weights times its own.
"""

from collections.abc import Callable
from dataclasses import replace

import equinox as eqx
import numpy as np

from ..model import Model
from ._factor import factorized
from ._identified import Identified
from ._measurements import Measurements

TUNING = 1.345  # 95 % as efficient as least squares where noise is normal
TURNS = 20
SAME = 1e-3


def reweighted(
    found: Identified, model: Model, logs: list[Measurements], fitted: Callable
) -> Identified:
    """The fit again with weights from its residuals, until these stay."""
    last = None
    for _ in range(TURNS):
        off = [found.residuals(log) for log in logs]
        sigma = _scale(np.concatenate(off))
        weights = [_weight(r, sigma) for r in off]
        same = last is not None and max(map(_apart, weights, last)) < SAME
        last = weights
        if same:
            break
        lighter = [
            eqx.tree_at(lambda d: d.weight, log, np.asarray(log.weight) * w)
            for log, w in zip(logs, weights, strict=True)
        ]
        found = fitted(factorized(model, lighter, show=False), sigma)
    low = np.mean(np.concatenate(last or []) < 0.5)
    remark = f"{100 * low:.2g} % of the torques lie far off and count less than half."
    return replace(found, remarks=(*found.remarks, remark))


def _scale(r: np.ndarray) -> np.ndarray:
    some = ~np.isnan(r).all(axis=0)
    median = np.nanmedian(np.abs(np.where(some, r, 1.0)), axis=0)
    return np.maximum(1.4826 * median, 1e-12)


def _weight(r: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    size = np.abs(np.nan_to_num(r))
    return np.sqrt(np.minimum(1, TUNING * sigma / np.maximum(size, 1e-300)))


def _apart(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max(initial=0))
