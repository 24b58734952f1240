"""What was identified, on one page: in words, in figures, in tables."""

import os
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from .._npz import write_whole
from ._charts import Panel, chart, thinned
from ._columns import slides
from ._measurements import Measurements, as_logs
from ._parameters import Parameters
from ._page import listed, number, page, table

POINTS = 1200  # of a curve at most, and
ALL_POINTS = 30_000  # of all joints together
BEYOND = 3.0  # standard deviations, and a change is told
LEVEL, TIMES = 0.95, 1.96
CLOSE = 1.05  # times the noise, and a prediction is as good as can be
LARGE = 1e4  # condition number of a motion that showed little
SOURCES = {
    "data": "torques show it by itself",
    "shared": "torques show it in a sum with others only",
    "prior": "torques do not show it; it stays as it was",
}


def write_report(
    found: Any,
    path: str | os.PathLike,
    data: Measurements | Iterable[Measurements],
    held_out: Measurements | Iterable[Measurements] | None = None,
) -> None:
    """One HTML file about what was `found` in the data, with nothing outside of it.

    Every joint has a figure of measured and predicted torques and of their difference,
    of `held_out` logs if there are any. Long logs are drawn by their extremes, so that
    the file stays small. It is there whole or not at all.
    """
    text = report(found, data, held_out).encode()
    write_whole(Path(path), lambda file: file.write(text))


def report(found: Any, data, held_out=None) -> str:
    """The page of `write_report`."""
    fit = _Logs(found, as_logs(data, found.model))
    new = None if held_out is None else _Logs(found, as_logs(held_out, found.model))
    shown, which = (
        (fit, "the data of the fit") if new is None else (new, "held-out data")
    )
    sections = [
        ("Summary", _summary(found, fit, new)),
        ("Joints", _joints(found, shown, which)),
        ("Noise", _noise(found, fit)),
        *([("Validation", _validation(found, new))] if new else []),
        ("Parameters", _parameters(found)),
        ("Base parameters", _base(found)),
        ("Physical consistency", _physical(found)),
        ("Convergence", _convergence(found)),
    ]
    name = found.model.name
    lead = (
        f'<p class="soft">{fit.samples} samples in {len(fit.logs)} '
        f"{'log' if len(fit.logs) == 1 else 'logs'}, {fit.seconds:.4g} s in all.</p>"
    )
    return page(f"Identification of {name}", sections, lead)


class _Logs:
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


def _summary(found, fit: _Logs, new: _Logs | None) -> str:
    sources = list(found.sources)
    beyond = int(np.sum(beyond_noise(found)))
    good = np.asarray(found.consistent)
    said = [
        f"{found.base.rank} combinations of the {len(names_of(found))} parameters can "
        f"be seen in these torques; the condition number of their normal matrix is "
        f"{found.base.condition:.3g}.",
        f"{sources.count('data')} parameters were found by themselves, "
        f"{sources.count('shared')} in sums with others, and {sources.count('prior')} "
        "stay as the model had them.",
        f"{beyond} parameters changed by more than {BEYOND:g} standard deviations.",
        _all_good(good),
        f"The fit leaves {_span(fit.rms(fit.residual))} of torque, root mean square, "
        f"of {_span(fit.rms(fit.measured))} that was measured.",
    ]
    if found.base.condition > LARGE:
        said.append(
            "The motion shows some combinations poorly: a richer one, such as "
            "jd.excitation finds, would narrow their errors."
        )
    if new is not None:
        said.append(_held_out_in_words(found, new))
    return listed([*said, *map(str, found.remarks)])


def _all_good(good: np.ndarray) -> str:
    if good.all():
        return "Every link is a possible body."
    return f"{np.sum(~good)} of {len(good)} links are no possible bodies."


def _held_out_in_words(found, new: _Logs) -> str:
    ratio = new.rms(new.residual) / np.asarray(found.noise)
    worst = float(np.nanmax(ratio)) if np.isfinite(ratio).any() else np.nan
    verdict = "as good as the noise lets it be" if worst <= CLOSE else "above the noise"
    return (
        f"On held-out data the error is at most {worst:.3g} times the noise of a joint: "
        f"{verdict}."
    )


def _span(x: np.ndarray) -> str:
    x = x[np.isfinite(x)]
    if not len(x):
        return "nothing"
    low, high = float(x.min()), float(x.max())
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"


def _joints(found, logs: _Logs, which: str) -> str:
    names, sliding = found.model.velocity_names, slides(found.model, "tau")
    most = int(np.clip(ALL_POINTS // len(names), 200, POINTS))
    pairs = [
        (thinned(logs.measured[:, j], most), thinned(logs.residual[:, j], most))
        for j in range(len(names))
    ]
    every = np.unique(np.concatenate([tau for tau, _ in pairs]))
    low, high = logs.interval(found, every)
    figures = []
    for j, name in enumerate(names):
        at = np.searchsorted(every, pairs[j][0])
        unit = "N" if sliding[j] else "N·m"
        band = low[at, j], high[at, j]
        figures.append(_figure(found, logs, j, name, unit, pairs[j], band))
    key = (
        f'<p class="soft">Torques of {which}.<span class="key one"></span>measured'
        '<span class="key two"></span>predicted<span class="key band"></span>95 % '
        "interval of a measurement</p>"
    )
    return key + "".join(figures)


def _figure(found, logs: _Logs, j: int, name: str, unit: str, at, band) -> str:
    tau, rest = at
    cut = logs.broken(tau)
    t, measured, predicted, low, high = (
        np.insert(np.asarray(x, float), cut, np.nan)
        for x in (logs.t[tau], logs.measured[tau, j], logs.predicted[tau, j], *band)
    )
    above = Panel(f"torque [{unit}]")
    above.bands = [(t, low, high, "band")]
    above.curves = [(t, measured, "one"), (t, predicted, "two")]
    wide = TIMES * float(found.noise[j])
    below = Panel(f"residual [{unit}]", 90)
    s, left = (
        np.insert(np.asarray(x, float), logs.broken(rest), np.nan)
        for x in (logs.t[rest], logs.residual[rest, j])
    )
    below.curves = [(s, left, "rest")]
    if np.isfinite(wide):
        ends = np.array([logs.t[0], logs.t[-1]])
        below.bands = [(ends, np.full(2, -wide), np.full(2, wide), "band")]
        below.curves += [(ends, np.full(2, x), "edge") for x in (-wide, wide)]
    rms = float(logs.rms(logs.residual)[j])
    words = (
        f"Joint {name}: measured and predicted torque against time, and the residual, "
        f"with root mean square {rms:.3g} {unit}"
    )
    svg = chart([above, below], (float(logs.t[0]), float(logs.t[-1])), name, words)
    inside = _inside(logs.residual[:, j], wide)
    return (
        f'<figure class="joint">{svg}<figcaption><b>{escape(name)}</b>: residual '
        f"{number(rms, 3)} {unit}, root mean square; {inside} of the samples within "
        f"±1.96 σ of the noise, {number(float(found.noise[j]), 3)} {unit}</figcaption>"
        "</figure>"
    )


def _inside(x: np.ndarray, wide: float) -> str:
    x = x[np.isfinite(x)]
    return f"{100 * np.mean(np.abs(x) <= wide):.1f} %" if len(x) else "none"


def _noise(found, fit: _Logs) -> str:
    counts = np.sum(np.isfinite(fit.residual), axis=0)
    left, size = fit.rms(fit.residual), fit.rms(fit.measured)
    rows = [
        [escape(name), number(found.noise[j]), number(left[j]), number(size[j]),
         number(100 * left[j] / size[j], 3), str(counts[j])]
        for j, name in enumerate(found.model.velocity_names)
    ]  # fmt: skip
    head = ["joint", "noise σ", "residual", "torque", "residual [%]", "samples"]
    return table("Noise of the joints", head, rows) + (
        '<p class="soft">Root mean squares, in N·m or N; the residual is in per cent of '
        "the torque.</p>"
    )


def _validation(found, new: _Logs) -> str:
    left, size = new.rms(new.residual), new.rms(new.measured)
    rows = []
    for j, name in enumerate(found.model.velocity_names):
        ratio = left[j] / found.noise[j]
        kind = "good" if ratio <= CLOSE else "bad"
        cell = f'<span class="{kind}">{number(ratio, 3)}</span>'
        inside = _inside(new.residual[:, j], TIMES * float(found.noise[j]))
        rows.append([escape(name), number(left[j]), cell, inside,
                     number(100 * left[j] / size[j], 3)])  # fmt: skip
    head = ["joint", "error", "error / noise", "within ±1.96 σ", "of the torque [%]"]
    words = f"<p>{new.samples} samples that were not used for the fit.</p>"
    return words + table("Prediction of held-out data", head, rows)


def beyond_noise(found: Any) -> np.ndarray:
    change = np.abs(np.asarray(found.values) - np.asarray(found.prior_values))
    sigma = np.asarray(found.sigma)
    return (sigma > 0) & (change > BEYOND * sigma)


def names_of(found: Any) -> tuple[str, ...]:
    given = found.parameters
    return given.names if isinstance(given, Parameters) else tuple(given)


def _parameters(found) -> str:
    beyond, sigma = beyond_noise(found), np.asarray(found.sigma)
    rows = []
    for k, name in enumerate(names_of(found)):
        before, after = float(found.prior_values[k]), float(found.values[k])
        source, some = found.sources[k], sigma[k] > 0
        moved = (after - before) / sigma[k] if some else np.nan
        mark = " <b>changed</b>" if beyond[k] else ""
        rows.append([
            escape(name), number(before), number(after),
            f"±&nbsp;{number(sigma[k], 2)}" if some else "–", number(moved, 3),
            f'<span title="{SOURCES.get(source, "")}">{escape(source)}</span>{mark}',
        ])  # fmt: skip
    head = ["parameter", "before", "after", "σ", "change / σ", "source"]
    kinds = "; ".join(f"“{s}”: {words}" for s, words in SOURCES.items())
    note = (
        f'<p class="soft">SI units. Marked are changes beyond {BEYOND:g} σ. Source '
        f"{kinds}.</p>"
    )
    return note + table("Parameters", head, rows, marked=beyond.tolist())


def _base(found) -> str:
    base = found.base
    sigma = np.sqrt(np.diagonal(found.base_covariance))
    before = base.project(found.prior_values[: len(base.parameters)])
    rows = [
        [number(before[k]), number(found.base_values[k]),
         f"±&nbsp;{number(sigma[k], 2)}", escape(words)]
        for k, words in enumerate(base.names)
    ]  # fmt: skip
    note = "<p>The combinations that torques show, and nothing else of them.</p>"
    unseen = base.invisible
    if unseen:
        note += f'<p class="soft">No torque depends on {escape(", ".join(unseen))}.</p>'
    head = ["before", "after", "σ", "combination"]
    return note + table("Base parameters", head, rows, words=3)


def _physical(found) -> str:
    pi = found.model
    rows = []
    for i, name in enumerate(pi.link_names):
        c = np.asarray(pi.com[i], float)
        good = bool(found.consistent[i])
        kind, word = (
            ("good", "a possible body") if good else ("bad", "no body has these")
        )
        place = ", ".join(number(x, 3) for x in c)
        rows.append([escape(name), number(float(pi.mass[i])), place,
                     f'<span class="{kind}">{word}</span>'])  # fmt: skip
    head = ["link", "mass [kg]", "mass centre [m]", "pseudo-inertia"]
    return table("Physical consistency of the links", head, rows)


def _convergence(found) -> str:
    history = np.asarray(found.history, float).ravel()
    words = f"<p>{found.iterations} iterations.</p>"
    if len(history) < 2:
        return (
            words + "<p>The result is in closed form: there is nothing to follow.</p>"
        )
    shown = thinned(history, POINTS)
    y = np.where(history > 0, np.log10(np.where(history > 0, history, 1)), np.nan)
    panel = Panel("log₁₀ of the loss", 130)
    panel.curves = [(shown, y[shown], "one")]
    text = f"The loss from {history[0]:.4g} to {history[-1]:.4g}"
    svg = chart([panel], (0.0, len(history) - 1.0), "Convergence", text, "iteration")
    return f"{words}<figure>{svg}<figcaption>{escape(text)}.</figcaption></figure>"
