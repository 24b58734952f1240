"""Logs of robots, read from files."""

import os
from collections.abc import Mapping
from pathlib import Path
from warnings import warn

import numpy as np

from .._errors import ModelError, ModelWarning
from .._types import Number
from ..model import Model
from ._columns import OTHERS, Column, columns_of, coordinate_names
from ._measurements import Measurements, runs
from ._plausible import doubts
from ._smooth import filled, rates, usual_cutoff
from ._table import Table, opened, some_of

ENDS = 3  # periods of the cutoff, in which a filter knows too little of one side
GAP = 10  # median steps, the longest gap that is filled
FEWEST = 8  # samples of a run


def read_measurements(
    path: str | os.PathLike,
    model: Model,
    *,
    columns: Mapping[str, str] | None = None,
    units: Mapping[str, str] | None = None,
    cutoff: Number | None = None,
    gap: Number | None = None,
    motion: int | None = None,
) -> Measurements:
    """A log from a CSV, NPZ or Parquet file, for this robot.

    Columns are known by their names: t or time; and q, pos or position, qd, vel or
    velocity, qdd or acc, tau, torque or effort, before or after the name of a joint
    (`q_elbow`, `elbow.position`) or before its number (`q_0`, or `q_1` to `q_n`); as
    `Trajectory.to_csv` and `save` write them, too. For other names `columns` says what
    they are: {"Achse 1": "q_joint1"}. Units are SI, or what stands in brackets after a
    name (`q_elbow [deg]`), or what `units` says of a quantity or of a column: {"q":
    "deg", "t": "ms"}. What is not used, and numbers that look as if they were in
    another unit, are told in a warning.

    Velocities and accelerations that were not measured come from a filter without
    delay (`_smooth.py`), of this `cutoff` in Hz; by default it follows the spectrum of
    the positions, and `inf` is for no filter. What was measured stays as it is.
    Samples within three periods of the cutoff from the ends, where a filter knows one
    side only, have weight 0. So do torques that are missing, and samples whose motion
    was missing and was interpolated. Where it was missing for longer than `gap` seconds
    (ten median steps if not given), or a log stood still for so long, samples are
    left out, and what is before and after is filtered apart. `motion` is the number of
    the one to read, of a file that has a batch.
    """
    table = opened(Path(path))
    used, unused = columns_of(table.path.name, table.names, model, columns, units)
    _require(table, used, model)
    arrays = _arrays(table, used, model)
    _one_motion(table, arrays, motion)
    t = arrays["t"]
    _check_times(table, t)
    said = [f"columns were not used: {', '.join(some_of(unused))}"] if unused else []
    said += doubts(used, arrays, model)

    longest = _longest(t, gap)
    weight = np.isfinite(arrays["tau"]).astype(float)
    arrays["tau"] = np.where(weight > 0, arrays["tau"], 0.0)
    lost = np.zeros(len(t), bool)
    for name in {"q", "qd", "qdd"} & arrays.keys():
        arrays[name], guessed, gone = filled(t, arrays[name], longest)
        weight[guessed] = 0
        lost |= gone
    if model.floating_base:
        p = arrays["q"][:, 3:7]
        arrays["q"][:, 3:7] = p / np.linalg.norm(p, axis=1, keepdims=True)
    kept = np.flatnonzero(~lost)
    whole = {name: x[kept] for name, x in arrays.items()} | {"weight": weight[kept]}
    found, dropped = _by_runs(whole, longest, cutoff)
    if dropped + lost.sum():
        said.append(f"{dropped + lost.sum()} samples were left out, in or between gaps")
    if not len(found["t"]):
        table.refuse(
            "no part of it is long enough to be filtered. Give a longer log, a longer "
            "gap, or a higher cutoff."
        )
    if said:
        _say(table, said)
    names = ("t", "q", "qd", "qdd", "tau", "weight")
    return Measurements(*(found[name] for name in names))


def _require(table: Table, used: list[Column], model: Model) -> None:
    """All of q; all or none of the rates; and some of the torques."""
    have = {(c.quantity, c.index) for c in used}
    if ("t", 0) not in have:
        table.refuse(f"it has no column of times, such as t. {_has(table)}")
    for quantity, names in coordinate_names(model).items():
        missing = [s for k, s in enumerate(names) if (quantity, k) not in have]
        if not missing:
            continue
        none = len(missing) == len(names)
        if quantity == "tau":
            if none:
                table.refuse(
                    f"it has no torques, such as tau_{names[0]}. {_has(table)}"
                )
            continue
        if quantity == "q" or not none:
            table.refuse(
                f"it has no column {quantity}_{missing[0]}, or by another name that is "
                f"known. Say with columns= which one it is, or hold the joint still "
                f"with jd.lock. {_has(table)}"
            )
        if quantity == "qd" and model.floating_base:
            table.refuse("velocities of a free base must be measured: qd_ is missing.")


def _has(table: Table) -> str:
    return f"Its columns are {', '.join(some_of(table.names))}."


def _arrays(table: Table, used: list[Column], model: Model) -> dict[str, np.ndarray]:
    """The quantities in SI units, one row per sample, NaN where there is no number."""
    numbers = table.read([c.name for c in used])
    if len(numbers) < 4:
        table.refuse(f"it has {len(numbers)} samples: too few for a motion.")
    for c, x in zip(used, numbers.T, strict=True):
        wrong = np.flatnonzero(np.isinf(x))
        if len(wrong):
            table.refuse("the number is infinite.", int(wrong[0]), c.name)
    arrays = {}
    for quantity, names in coordinate_names(model).items():
        own = [(c, x) for c, x in zip(used, numbers.T, strict=True)
               if c.quantity == quantity]  # fmt: skip
        if own:
            arrays[quantity] = np.full((len(numbers), len(names)), np.nan)
            for c, x in own:
                arrays[quantity][:, c.index] = x * c.factor
    for c, x in zip(used, numbers.T, strict=True):
        if c.quantity in ("t", *OTHERS):
            arrays[c.quantity] = x * c.factor
    return arrays


def _one_motion(
    table: Table, arrays: dict[str, np.ndarray], motion: int | None
) -> None:
    """Leaves the sound samples of one motion in `arrays`, and their rows in `table`."""
    number, sound = (arrays.pop(name, None) for name in reversed(OTHERS))
    keep = np.ones(len(arrays["t"]), bool)
    if number is not None:
        there = np.unique(number)
        if motion is None and len(there) > 1:
            table.refuse(
                f"it has {len(there)} motions. Say which: motion={there[0]:g}."
            )
        keep &= number == (there[0] if motion is None else motion)
    elif motion is not None:
        table.refuse("it has no column 'motion' to choose by.")
    if sound is not None:
        keep &= sound != 0
    if keep.sum() < 4:
        table.refuse(f"it has {keep.sum()} sound samples of the motion: too few.")
    if not keep.all():
        table.rows = table.rows[keep]
        for name, x in arrays.items():
            arrays[name] = x[keep]


def _check_times(table: Table, t: np.ndarray) -> None:
    missing = np.flatnonzero(np.isnan(t))
    if len(missing):
        table.refuse("the time is missing.", int(missing[0]))
    late = np.flatnonzero(np.diff(t) <= 0)
    if len(late):
        i = int(late[0]) + 1
        if t[i] == t[i - 1]:
            table.refuse(f"the time {t[i]:.12g} s is there twice.", i)
        table.refuse(
            f"the time {t[i]:.12g} s comes after {t[i - 1]:.12g} s. Sort the rows.", i
        )


def _longest(t: np.ndarray, gap: Number | None) -> float:
    if gap is None:
        gap = GAP * float(np.median(np.diff(t)))
    if not gap > 0:
        raise ModelError(f"gap is {gap}; give a time in seconds.")
    return gap * (1 + 1e-9)  # a gap of just so many steps, rounded, is as long as it


def _by_runs(whole: dict[str, np.ndarray], longest: float, cutoff: Number | None):
    """Rates that were not measured, run by run; and how many samples are too few."""
    t = whole["t"]
    names = ("t", "q", "qd", "qdd", "tau", "weight")
    derive = [name for name in ("qd", "qdd") if name not in whole]
    parts = runs(t, longest) if len(t) else []
    if not derive:
        return {name: whole[name] for name in names}, 0
    cutoff = _cutoff(whole, parts, cutoff)
    found, dropped = [], 0
    for part in parts:
        run = {name: x[part] for name, x in whole.items()}
        if len(run["t"]) < FEWEST or np.ptp(run["t"]) <= 2 * ENDS / cutoff:
            dropped += len(run["t"])
        else:
            found.append(_completed(run, cutoff))
    joined = {s: np.concatenate([run[s] for run in found]) for s in names if found}
    return joined or {"t": np.zeros(0)}, dropped


def _cutoff(whole, parts: list[slice], given: Number | None) -> float:
    if given is not None:
        if not given > 0:
            raise ModelError(
                f"cutoff is {given}; give a frequency in Hz, or inf for none."
            )
        return float(given)
    best = max(parts, key=lambda part: part.stop - part.start, default=slice(0, 0))
    if best.stop - best.start < FEWEST:
        return np.inf
    return usual_cutoff(whole["t"][best], whole["q"][best])


def _completed(run: dict[str, np.ndarray], cutoff: float) -> dict[str, np.ndarray]:
    t = run["t"]
    if "qd" in run:
        (run["qdd"],) = rates(t, run["qd"], cutoff, 1)
    else:
        found = rates(t, run["q"], cutoff, 1 if "qdd" in run else 2)
        run |= dict(zip(("qd", "qdd"), found, strict=False))
    end = ENDS / cutoff
    run["weight"][(t < t[0] + end) | (t > t[-1] - end)] = 0
    return run


def _say(table: Table, said: list[str]) -> None:
    warn(f"{table.path.name}: {'; '.join(said)}.", ModelWarning, stacklevel=3)
