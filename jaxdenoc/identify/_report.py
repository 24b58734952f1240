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
from ._page import listed, number, page
from ._report_tables import (
    base_table,
    convergence,
    noise_table,
    parameters_table,
    physical_table,
    validation_table,
)
from ._reported import BEYOND, CLOSE, TIMES, Logs, beyond_noise, inside, names_of

POINTS = 1200  # of a curve at most, and
ALL_POINTS = 30_000  # of all joints together
LARGE = 1e4  # condition number of a motion that showed little


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
    fit = Logs(found, as_logs(data, found.model))
    new = None if held_out is None else Logs(found, as_logs(held_out, found.model))
    shown, which = (
        (fit, "the data of the fit") if new is None else (new, "held-out data")
    )
    sections = [
        ("Summary", _summary(found, fit, new)),
        ("Joints", _joints(found, shown, which)),
        ("Noise", noise_table(found, fit)),
        *([("Validation", validation_table(found, new))] if new else []),
        ("Parameters", parameters_table(found)),
        ("Base parameters", base_table(found)),
        ("Physical consistency", physical_table(found)),
        ("Convergence", convergence(found)),
    ]
    name = found.model.name
    lead = (
        f'<p class="soft">{fit.samples} samples in {len(fit.logs)} '
        f"{'log' if len(fit.logs) == 1 else 'logs'}, {fit.seconds:.4g} s in all.</p>"
    )
    return page(f"Identification of {name}", sections, lead)


def _summary(found, fit: Logs, new: Logs | None) -> str:
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


def _held_out_in_words(found, new: Logs) -> str:
    ratio = new.rms(new.residual) / np.asarray(found.noise)
    worst = float(np.nanmax(ratio)) if np.isfinite(ratio).any() else np.nan
    good = "as good as the noise lets it be"
    return (
        f"On held-out data the error is at most {worst:.3g} times the noise of a "
        f"joint: {good if worst <= CLOSE else 'above the noise'}."
    )


def _span(x: np.ndarray) -> str:
    x = x[np.isfinite(x)]
    if not len(x):
        return "nothing"
    low, high = float(x.min()), float(x.max())
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"


def _joints(found, logs: Logs, which: str) -> str:
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


def _figure(found, logs: Logs, j: int, name: str, unit: str, at, band) -> str:
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
    held = inside(logs.residual[:, j], wide)
    return (
        f'<figure class="joint">{svg}<figcaption><b>{escape(name)}</b>: residual '
        f"{number(rms, 3)} {unit}, root mean square; {held} of the samples within "
        f"±1.96 σ of the noise, {number(float(found.noise[j]), 3)} {unit}</figcaption>"
        "</figure>"
    )
