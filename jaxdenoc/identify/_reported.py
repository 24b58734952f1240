"""What a report looks at: logs with their predictions, and what changed."""

from typing import Any

import numpy as np

from ._measurements import Measurements
from ._parameters import Parameters

BEYOND = 3.0  # standard deviations, and a change is told
LEVEL, TIMES = 0.95, 1.96
CLOSE = 1.05  # times the noise, and a prediction is as good as can be


class Logs:
    """Logs one after the other, with what is predicted for them."""

    def __init__(self, found: Any, logs: list[Measurements]):
        self.logs = logs
        self.samples = sum(map(len, logs))
        self.seconds = sum(float(log.t[-1] - log.t[0]) for log in logs)
        self.residual = np.concatenate([found.residuals(log) for log in logs])
        tau = np.concatenate([np.asarray(log.tau) for log in logs])
        self.predicted = np.concatenate([found.predict(log) for log in logs])
        self.measured = np.where(np.isnan(self.residual), np.nan, tau)
        start, times = 0.0, []
        for log in logs:
            t = np.asarray(log.t)
            times.append(t - t[0] + start)
            start = times[-1][-1] + 0.02 * self.seconds
        self.t = np.concatenate(times)
        self.first = np.cumsum([0, *map(len, logs)])

    def rms(self, x: np.ndarray) -> np.ndarray:
        count = np.sum(np.isfinite(x), axis=0)
        total = np.nansum(x**2, axis=0)
        return np.where(count > 0, np.sqrt(total / np.maximum(count, 1)), np.nan)

    def interval(self, found: Any, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The prediction interval of some samples, rows in their order."""
        low, high = [], []
        for k, log in enumerate(self.logs):
            here = at[(self.first[k] <= at) & (at < self.first[k + 1])] - self.first[k]
            if len(here):
                a, b = found.interval(log[here], LEVEL)
                low.append(np.asarray(a))
                high.append(np.asarray(b))
        return np.concatenate(low), np.concatenate(high)

    def broken(self, at: np.ndarray) -> np.ndarray:
        """Where a drawn line has to stop, since another log begins."""
        log = np.searchsorted(self.first, at, side="right")
        return np.flatnonzero(np.diff(log)) + 1


def inside(x: np.ndarray, wide: float) -> str:
    x = x[np.isfinite(x)]
    return f"{100 * np.mean(np.abs(x) <= wide):.1f} %" if len(x) else "none"


def beyond_noise(found: Any) -> np.ndarray:
    change = np.abs(np.asarray(found.values) - np.asarray(found.prior_values))
    sigma = np.asarray(found.sigma)
    return (sigma > 0) & (change > BEYOND * sigma)


def names_of(found: Any) -> tuple[str, ...]:
    given = found.parameters
    return given.names if isinstance(given, Parameters) else tuple(given)
