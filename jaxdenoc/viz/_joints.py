"""Joint coordinates, rates, accelerations and forces against time."""

from __future__ import annotations

import os
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from jax.typing import ArrayLike

from ..model import Model

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Quantity = Literal["position", "rate", "acceleration", "force"]

# what a quantity is called for a joint that turns and for one that slides
NAMES: dict[str, tuple[str, str]] = {
    "position": ("angle [rad]", "displacement [m]"),
    "rate": ("rate [rad/s]", "speed [m/s]"),
    "acceleration": ("acceleration [rad/s²]", "acceleration [m/s²]"),
    "force": ("torque [N·m]", "force [N]"),
}
POSE = ("x", "y", "z", "qw", "qx", "qy", "qz")


class Curve(NamedTuple):
    name: str
    label: str  # of the axis: what it is, and its unit


def joint_panels(
    model: Model,
    t: ArrayLike,
    values: ArrayLike,
    *,
    quantity: Quantity,
    title: str | None = None,
    columns: int = 3,
) -> Figure:
    """One panel per joint: `values` is (samples, joints), a row for each time in `t`.

    For curves of very different size, which would hide one another in one plot.
    """
    t, values, curves = _checked(model, t, values, quantity)
    columns = min(columns, len(curves))
    rows = -(-len(curves) // columns)
    figure = _figure((3.4 * columns, 2.5 * rows + 0.4), title)
    for k, curve in enumerate(curves):
        axes = figure.add_subplot(rows, columns, k + 1)
        axes.plot(t, values[:, k], color=f"C{k % 10}", linewidth=1.6)
        axes.set_title(curve.name, fontsize=10)
        _finish(axes, t, values[:, k], curve.label)
        if k + columns < len(curves):  # another panel stands below, with the same times
            axes.set_xlabel("")
    return figure


def joint_curves(
    model: Model,
    t: ArrayLike,
    values: ArrayLike,
    *,
    quantity: Quantity,
    title: str | None = None,
) -> Figure:
    """All joints together, one plot for each unit, with a legend."""
    t, values, curves = _checked(model, t, values, quantity)
    order = sorted(range(len(curves)), key=lambda k: curves[k].label)
    groups = [list(g) for _, g in groupby(order, key=lambda k: curves[k].label)]
    groups.sort()
    figure = _figure((6.4, 3.6 * len(groups) + 0.4), title)
    for row, group in enumerate(groups):
        axes = figure.add_subplot(len(groups), 1, row + 1)
        for k in group:
            axes.plot(
                t,
                values[:, k],
                color=f"C{k % 10}",
                label=curves[k].name,
                linewidth=1.6,
            )
        _finish(axes, t, values[:, group], curves[group[0]].label)
        axes.legend(frameon=False, ncols=1 + len(group) // 7)
    return figure


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Writes the figure, and the folders on the way to it."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    return path


def _checked(model, t, values, quantity) -> tuple[np.ndarray, np.ndarray, list[Curve]]:
    if quantity not in NAMES:
        raise ValueError(f"quantity is '{quantity}'; it can be {', '.join(NAMES)}.")
    t, values, curves = np.asarray(t), np.asarray(values), _curves(model, quantity)
    if values.shape != (*t.shape, len(curves)) or t.ndim != 1:
        raise ValueError(
            f"values has shape {values.shape}, but {t.shape} times of the "
            f"{quantity} of '{model.name}' need {(*t.shape, len(curves))}."
        )
    return t, values, curves


def _curves(model: Model, quantity: str) -> list[Curve]:
    turning, sliding = NAMES[quantity]
    curves = []
    for joint, kind in zip(model.joint_names, model.joint_kinds, strict=True):
        if kind != "free":
            curves.append(Curve(joint, sliding if kind == "prismatic" else turning))
        elif quantity == "position":
            labels = [sliding] * 3 + ["quaternion"] * 4
            parts = [f"{joint}.{s}" for s in POSE]
            curves += [Curve(*c) for c in zip(parts, labels, strict=True)]
        else:
            parts = model.velocity_names[:6]
            labels = [turning] * 3 + [sliding] * 3
            curves += [Curve(*c) for c in zip(parts, labels, strict=True)]
    return curves


def _figure(size: tuple[float, float], title: str | None) -> Figure:
    # Figure rather than pyplot: needs no display, and leaves no global state behind
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    if title:
        figure.suptitle(title, fontsize=12)
    return figure


def _finish(axes: Axes, t: np.ndarray, values: np.ndarray, label: str) -> None:
    axes.set_xlim(t[0], t[-1])
    if np.ptp(values) < 1e-9 and np.all(np.isfinite(values)):
        middle = float(np.mean(values))  # a constant is a line, not its rounding errors
        axes.set_ylim(middle - 1, middle + 1)
    axes.ticklabel_format(axis="y", scilimits=(-3, 4), useMathText=True)
    axes.set_xlabel("time [s]")
    axes.set_ylabel(label)
    axes.grid(alpha=0.3, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
