"""The tables of a report, and the curve of convergence."""

from html import escape

import numpy as np

from ._charts import Panel, chart, thinned
from ._page import number, table
from ._reported import BEYOND, CLOSE, TIMES, Logs, beyond_noise, inside, names_of

SOURCES = {
    "data": "torques show it by itself",
    "shared": "torques show it in a sum with others only",
    "prior": "torques do not show it; it stays as it was",
}


def noise_table(found, fit: Logs) -> str:
    counts = np.sum(np.isfinite(fit.residual), axis=0)
    left, size = fit.rms(fit.residual), fit.rms(fit.measured)
    rows = [
        [escape(name), number(found.noise[j]), number(left[j]), number(size[j]),
         number(100 * left[j] / size[j], 3), str(counts[j])]
        for j, name in enumerate(found.model.velocity_names)
    ]  # fmt: skip
    head = ["joint", "noise σ", "residual", "torque", "residual [%]", "samples"]
    return table("Noise of the joints", head, rows) + (
        '<p class="soft">Root mean squares, in N·m or N; the residual is in per cent '
        "of the torque.</p>"
    )


def validation_table(found, new: Logs) -> str:
    left, size = new.rms(new.residual), new.rms(new.measured)
    rows = []
    for j, name in enumerate(found.model.velocity_names):
        ratio = left[j] / found.noise[j]
        kind = "good" if ratio <= CLOSE else "bad"
        cell = f'<span class="{kind}">{number(ratio, 3)}</span>'
        held = inside(new.residual[:, j], TIMES * float(found.noise[j]))
        rows.append([escape(name), number(left[j]), cell, held,
                     number(100 * left[j] / size[j], 3)])  # fmt: skip
    head = ["joint", "error", "error / noise", "within ±1.96 σ", "of the torque [%]"]
    words = f"<p>{new.samples} samples that were not used for the fit.</p>"
    return words + table("Prediction of held-out data", head, rows)


def parameters_table(found) -> str:
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


def base_table(found) -> str:
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


def physical_table(found) -> str:
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


def convergence(found) -> str:
    history = np.asarray(found.history, float).ravel()
    words = f"<p>{found.iterations} iterations.</p>"
    if len(history) < 2:
        return (
            words + "<p>The result is in closed form: there is nothing to follow.</p>"
        )
    shown = thinned(history, 1200)
    y = np.where(history > 0, np.log10(np.where(history > 0, history, 1)), np.nan)
    panel = Panel("log₁₀ of the loss", 130)
    panel.curves = [(shown, y[shown], "one")]
    text = f"The loss from {history[0]:.4g} to {history[-1]:.4g}"
    svg = chart([panel], (0.0, len(history) - 1.0), "Convergence", text, "iteration")
    return f"{words}<figure>{svg}<figcaption>{escape(text)}.</figcaption></figure>"
