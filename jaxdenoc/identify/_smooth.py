"""Rates of sampled motions: gaps filled, noise filtered, no delay.

A run of samples is brought to even steps by a cubic spline where its steps are not
even, filtered forward and backward by a Butterworth filter of order 4, which leaves the
phase as it was and half the amplitude at the cutoff, and differentiated by splines
through its samples, whose central differences are exact to h⁴. SciPy is loaded when
there is something to filter.
"""

import numpy as np

ORDER = 4
EVEN = 1e-3  # steps; times off the even ones by less are taken for even
MOST = 0.4  # of the sampling frequency, the highest cutoff that filters anything
SHARE = 0.999  # of the power of the velocity, and a cutoff is so much higher than
ABOVE = 5.0  # the frequency below which that share is
LEAST = 30.0  # periods of the cutoff in a run, since some are lost at its ends
FLOOR = 30.0  # times the noise floor, where a spectrum is taken for signal


def filled(
    t: np.ndarray, x: np.ndarray, longest: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x with its short gaps interpolated; which rows have been, and which are lost.

    Missing numbers are NaN. Those of a gap that is longer, and those before the first
    or after the last number of a column, are lost: the row is no sample of a motion.
    """
    x, missing = x.copy(), np.isnan(x)
    lost = np.zeros(len(x), bool)
    for column in np.flatnonzero(missing.any(axis=0)):
        gone = missing[:, column]
        known = np.flatnonzero(~gone)
        if len(known) < 4:
            return x, gone, np.ones(len(x), bool)
        at = np.flatnonzero(gone)
        after = np.searchsorted(known, at)
        outside = (after == 0) | (after == len(known))
        before, after = known[after - 1], known[np.minimum(after, len(known) - 1)]
        lost[at[outside | (t[after] - t[before] > longest)]] = True
        x[at, column] = _spline(t[known], x[known, column])(t[at])
    return x, missing.any(axis=1) & ~lost, lost


def rates(t: np.ndarray, x: np.ndarray, cutoff: float, order: int) -> list[np.ndarray]:
    """The first `order` derivatives of x, filtered, at the times of the run."""
    grid, y = evenly(t, x)
    y = low_pass(y, grid[1] - grid[0], cutoff)
    found = []
    for _ in range(order):
        y = _spline(grid, y)(grid, 1)
        found.append(y if grid is t else _spline(grid, y)(t))
    return found


def low_pass(x: np.ndarray, h: float, cutoff: float) -> np.ndarray:
    """x of even steps h without what is faster than the cutoff, in Hz."""
    if cutoff >= MOST / h:
        return x
    from scipy.signal import butter, sosfiltfilt

    sos = butter(ORDER, cutoff, fs=1 / h, output="sos")
    pad = min(len(x) - 2, int(3 / (cutoff * h)))
    return sosfiltfilt(sos, x, axis=0, padlen=pad)


def evenly(t: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The run at even steps, as long as the median one; `t` itself if it is even."""
    grid = np.linspace(t[0], t[-1], len(t))
    if np.abs(grid - t).max() <= EVEN * (grid[1] - grid[0]):
        return t, x
    steps = round((t[-1] - t[0]) / float(np.median(np.diff(t))))
    grid = np.linspace(t[0], t[-1], max(steps, 4) + 1)
    return grid, _spline(t, x)(grid)


def usual_cutoff(t: np.ndarray, x: np.ndarray) -> float:
    """A cutoff for positions x: five times as fast as what they do, in Hz.

    Of the spectrum of each column that stands out of the noise, whose level is that of
    the upper half of the band, the frequency is taken below which 99.9 % of the power
    of the velocity is; and the highest of all columns. Not less than 30 periods of the
    cutoff are in the run, and nothing is filtered where nothing stands out.
    """
    from scipy.signal import welch

    grid, y = evenly(t, x)
    h = grid[1] - grid[0]
    f, power = welch(y, 1 / h, nperseg=min(len(y), 1 << 14), detrend="linear", axis=0)
    floor = np.median(power[len(f) // 2 :], axis=0)
    power = np.where(power > FLOOR * floor, power, 0) * f[:, None] ** 2
    total = np.cumsum(power, axis=0)
    reached = total >= SHARE * np.maximum(total[-1], 1e-300)
    top = np.where(total[-1] > 0, f[np.argmax(reached, axis=0)], 0)
    if not top.any():
        return MOST / h
    return float(min(max(ABOVE * top.max(), LEAST / (t[-1] - t[0])), MOST / h))


def _spline(t: np.ndarray, x: np.ndarray):
    from scipy.interpolate import CubicSpline

    return CubicSpline(t, x)
