"""Curves as SVG, small and with colours of the page they are on."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from math import floor, isfinite, log10

import numpy as np

WIDTH, LEFT, RIGHT, TOP, BELOW = 760, 62, 10, 12, 20


@dataclass
class Panel:
    """One pair of axes: curves (t, y, class) and bands (t, low, high, class)."""

    label: str
    height: int = 150
    curves: list[tuple] = field(default_factory=list)
    bands: list[tuple] = field(default_factory=list)

    def range(self) -> tuple[float, float]:
        every = [y for _, y, _ in self.curves] + [
            y for _, *pair, _ in self.bands for y in pair
        ]
        values = np.concatenate([np.ravel(y) for y in every] or [np.zeros(1)])
        values = values[np.isfinite(values)]
        low, high = (
            (float(values.min()), float(values.max())) if len(values) else (0, 1)
        )
        more = 0.06 * (high - low) or 0.5 * abs(high) or 1.0
        return low - more, high + more


def chart(
    panels: Sequence[Panel],
    times: tuple[float, float],
    title: str,
    words: str,
    label: str = "time [s]",
) -> str:
    """The panels above one another, with the same times. `words` say what is seen."""
    height = TOP + sum(p.height + BELOW for p in panels) + 14
    parts, at = [], TOP
    for k, panel in enumerate(panels):
        last = k == len(panels) - 1
        parts.append(_drawn(panel, at, times, label if last else ""))
        at += panel.height + BELOW
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(words)}">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )


def _drawn(panel: Panel, top: int, times, label: str) -> str:
    low, high = panel.range()
    wide, first = WIDTH - LEFT - RIGHT, times[0]
    long = (times[1] - times[0]) or 1.0

    def x(t):
        return LEFT + wide * (np.asarray(t, float) - first) / long

    def y(v):
        return top + panel.height * (high - np.asarray(v, float)) / (high - low)

    bottom = top + panel.height
    parts = []
    for v in ticks(low, high, 4):
        h = f"{float(y(v)):.1f}"
        parts.append(f'<path class="grid" d="M{LEFT} {h}H{WIDTH - RIGHT}"/>')
        parts.append(
            f'<text x="{LEFT - 6}" y="{h}" dy=".32em" class="y">{_tick(v)}</text>'
        )
    for t in ticks(times[0], times[1], 8):
        at = f"{float(x(t)):.1f}"
        parts.append(f'<path class="grid" d="M{at} {top}V{bottom}"/>')
        parts.append(f'<text x="{at}" y="{bottom + 13}" class="x">{_tick(t)}</text>')
    for t, a, b, name in panel.bands:
        parts += _areas(x(t), y(a), y(b), name)
    for t, v, name in panel.curves:
        parts.append(f'<path class="{name}" d="{_path(x(t), y(v))}"/>')
    middle = top + panel.height / 2
    parts.append(
        f'<text transform="translate(13 {middle}) rotate(-90)" class="x">'
        f"{escape(panel.label)}</text>"
    )
    if label:
        parts.append(
            f'<text x="{LEFT + wide / 2}" y="{bottom + 28}" class="x">{label}</text>'
        )
    return "".join(parts)


def _path(x: np.ndarray, y: np.ndarray) -> str:
    """A line, broken where a number is missing."""
    parts, pen = [], "M"
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        if isfinite(a) and isfinite(b):
            parts.append(f"{pen}{a:.1f} {b:.1f}")
            pen = "L"
        else:
            pen = "M"
    return "".join(parts)


def _areas(x: np.ndarray, low: np.ndarray, high: np.ndarray, name: str) -> list[str]:
    """Between two curves, one area for each stretch without a missing number."""
    sound = np.isfinite(x) & np.isfinite(low) & np.isfinite(high)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], sound, [0]])))
    found = []
    for a, b in edges.reshape(-1, 2):
        around = np.concatenate([x[a:b], x[a:b][::-1]])
        up = np.concatenate([low[a:b], high[a:b][::-1]])
        found.append(f'<path class="{name}" d="{_path(around, up)}Z"/>')
    return found


def ticks(low: float, high: float, count: int) -> list[float]:
    """Round numbers between two, about so many."""
    step = (high - low) / count
    if not (isfinite(step) and step > 0):
        return [low]
    size = 10.0 ** floor(log10(step))
    step = next(size * k for k in (1, 2, 5, 10) if size * k >= 0.75 * step)
    first = int(np.ceil(low / step - 1e-9))
    last = int(np.floor(high / step + 1e-9))
    return [k * step for k in range(first, last + 1)]


def _tick(v: float) -> str:
    return f"{0.0 if abs(v) < 1e-12 else v:.5g}".replace("-", "−")


def thinned(y: np.ndarray, most: int) -> np.ndarray:
    """Which samples to draw: the least and the largest of every stretch, in order."""
    if len(y) <= most:
        return np.arange(len(y))
    edges = np.linspace(0, len(y), max(most // 2, 1) + 1).astype(int)
    chosen = {0, len(y) - 1}
    for a, b in pairwise(edges.tolist()):
        part = y[a:b]
        if np.isfinite(part).any():
            chosen |= {a + int(np.nanargmin(part)), a + int(np.nanargmax(part))}
    return np.array(sorted(chosen))
