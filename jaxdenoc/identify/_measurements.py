"""Measurements: samples of a motion with the torques that went with it."""

from collections.abc import Callable, Iterable
from itertools import pairwise

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from .._batched import batched
from .._errors import ModelError
from .._types import Number, Numbers
from ..dynamics import forward_dynamics
from ..model import Model
from ..simulate import Trajectory

_accelerations = batched(forward_dynamics, in_axes=(None, 0, 0, 0))  # compiled once
Host = np.ndarray | Array  # NumPy's, and JAX's inside of a program


class Measurements(eqx.Module):
    """Samples of a motion, one row per time, and how much each torque counts.

    All numbers are finite. A torque that is missing, or that belongs to a sample not
    to be trusted, is there with weight 0; others have weight 1, or what was given:
    a torque with weight w counts like w² of them. The arrays are NumPy's, in double
    precision whatever JAX is set to, because times of a long log need it.

        data[100:200]           a part of it
        fit, held = data.split()    to fit, and to validate
        data.pieces()           the parts within which no time is missing
    """

    t: Float[Host, " k"]
    q: Float[Host, "k q"]
    qd: Float[Host, "k v"]
    qdd: Float[Host, "k v"]
    tau: Float[Host, "k v"]
    weight: Float[Host, "k v"]

    def __init__(
        self,
        t: Numbers,
        q: Numbers,
        qd: Numbers,
        qdd: Numbers,
        tau: Numbers,
        weight: Numbers | None = None,
    ):
        """`weight` is one row per sample, numbers or truth values; one if not given.

        Where it is zero, `tau` may be NaN, and zero is kept.
        """
        given = {"q": q, "qd": qd, "qdd": qdd, "tau": tau}
        self.t = _numbers("t", t, 1)
        if not len(self.t):
            raise ModelError("The measurements have no samples. Give at least one.")
        tables = {name: _numbers(name, x, 2) for name, x in given.items()}
        if weight is None:
            tables["weight"] = np.ones_like(tables["tau"])
        else:
            tables["weight"] = _numbers("weight", weight, 2)
        _check_shapes(len(self.t), tables)
        missing = (tables["weight"] == 0) & ~np.isfinite(tables["tau"])
        tables["tau"] = np.where(missing, 0.0, tables["tau"])
        _check_finite("t", self.t[:, None])
        for name, x in tables.items():
            _check_finite(name, x)
        _check_weight(tables["weight"])
        _check_times(self.t)
        self.q, self.qd, self.qdd = (tables[name] for name in ("q", "qd", "qdd"))
        self.tau, self.weight = tables["tau"], tables["weight"]

    @classmethod
    def of(cls, motion: Trajectory, model: Model) -> "Measurements":
        """The sound samples of one motion, with the accelerations of its torques.

        They are those of `forward_dynamics` of the model: exact, with no filter.
        """
        if np.ndim(motion.t) != 1:
            raise ModelError(
                f"The trajectory is a batch of {len(motion.t)} motions. Give one: "
                "jax.tree.map(lambda x: x[k], trajectory)."
            )
        sound = np.asarray(motion.status.sound)
        state = [np.asarray(x)[sound] for x in (motion.q, motion.qd, motion.tau)]
        if not len(state[0]):
            raise ModelError("No sample of the trajectory is sound.")
        q, qd, tau = state
        qdd = _accelerations(model, q, qd, tau)
        return cls(np.asarray(motion.t)[sound], q, qd, qdd, tau)

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        missing = int(np.sum(np.asarray(self.weight) == 0))
        return (
            f"Measurements({len(self)} samples of {self.tau.shape[1]} joints, "
            f"{self.t[0]:.6g} s to {self.t[-1]:.6g} s, {missing} torques do not count)"
        )

    def __getitem__(self, index: slice | int | Numbers) -> "Measurements":
        """The samples of a slice, of a mask, or of rising numbers."""
        if not isinstance(index, slice) and np.ndim(index) == 0:
            raise ModelError(
                "Give a slice, a mask or numbers; for one, data[k : k + 1]."
            )
        at = index if isinstance(index, slice) else np.asarray(index)
        return Measurements(*(np.asarray(x)[at] for x in jax.tree.leaves(self)))

    def split(self, held_out: Number = 0.2) -> tuple["Measurements", "Measurements"]:
        """What to fit and what to hold out: the last part of the time, in one piece."""
        if not 0 < held_out < 1:
            raise ModelError(f"held_out is {held_out}; give a fraction from 0 to 1.")
        first = round(len(self) * (1 - held_out))
        if not 0 < first < len(self):
            raise ModelError(f"{len(self)} samples are too few to hold {held_out} out.")
        return self[:first], self[first:]

    def pieces(self, longest: Number | None = None) -> list["Measurements"]:
        """The parts between gaps in time; by default, gaps of 1.5 median steps."""
        return [self[part] for part in runs(np.asarray(self.t), longest)]

    def counts(self) -> np.ndarray:
        """Of every joint, how many torques count."""
        return np.sum(np.asarray(self.weight) != 0, axis=0)


def runs(t: np.ndarray, longest: Number | None = None) -> list[slice]:
    """The stretches of times with no step longer than that."""
    steps = np.diff(t)
    if longest is None:
        longest = 1.5 * float(np.median(steps)) if len(steps) else 0.0
    ends = [0, *(np.flatnonzero(steps > longest) + 1), len(t)]
    return [slice(int(a), int(b)) for a, b in pairwise(ends)]


def as_logs(data: "Measurements | Iterable[Measurements]", model: Model) -> list:
    """The logs, one or many, that were found to be of this model."""
    logs = [data] if isinstance(data, Measurements) else list(data)
    if not logs:
        raise ModelError("data holds no measurements. Give at least one log.")
    for log in logs:
        if log.q.shape[1] != model.nq or log.tau.shape[1] != model.nv:
            raise ModelError(
                f"The measurements have {log.q.shape[1]} positions and "
                f"{log.tau.shape[1]} torques a row, but model '{model.name}' has "
                f"nq = {model.nq} and nv = {model.nv}."
            )
    return logs


def _numbers(name: str, given: Numbers, dimensions: int) -> np.ndarray:
    try:
        x = np.array(given, float)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{name} is no table of numbers ({error}).") from error
    if x.ndim != dimensions:
        what = "one number" if dimensions == 1 else "one row of numbers"
        raise ModelError(f"{name} has shape {x.shape}, but needs {what} per sample.")
    return x


def _check_shapes(k: int, tables: dict[str, np.ndarray]) -> None:
    nv = tables["tau"].shape[1]
    for name, x in tables.items():
        wide = x.shape[1] if name == "q" else nv  # a free base has one more in q
        if x.shape != (k, wide):
            raise ModelError(
                f"{name} has shape {x.shape}, but t has {k} samples and tau {nv} "
                f"columns: {name} needs {(k, wide)}."
            )
    if tables["q"].shape[1] not in (nv, nv + 1):
        raise ModelError(
            f"q has {tables['q'].shape[1]} columns and tau {nv}: q needs as many, or "
            "one more for a free base."
        )


def _check_finite(name: str, x: np.ndarray) -> None:
    _refuse(name, x, ~np.isfinite(x), "every number must be finite; ", _missing(name))


def _check_weight(x: np.ndarray) -> None:
    _refuse("weight", x, x < 0, "a weight cannot be negative", lambda i, j: "")


def _missing(name: str) -> Callable[[int, int], str]:
    if name == "tau":
        return lambda i, j: f"give weight[{i}, {j}] = 0 for a torque that is missing"
    return lambda i, j: "leave the sample out, or fill the gap"


def _refuse(name, x, wrong, why, remedy) -> None:
    if wrong.any():
        i, j = map(int, np.argwhere(wrong)[0])
        where = f"row {i}" if name == "t" else f"row {i}, column {j}"
        raise ModelError(f"{name}, {where}: {x[i, j]}; {why}{remedy(i, j)}.")


def _check_times(t: np.ndarray) -> None:
    late = np.flatnonzero(np.diff(t) <= 0)
    if len(late):
        i = int(late[0]) + 1
        what = "is there twice" if t[i] == t[i - 1] else f"comes after {t[i - 1]}"
        raise ModelError(f"t, row {i}: {t[i]} {what}; times must rise.")
