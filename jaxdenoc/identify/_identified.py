"""What `identify` returns: a robot, how sure its numbers are, and what they rest on."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from statistics import NormalDist
from typing import Any

import jax
import numpy as np

from .._errors import ModelError
from .._npz import Format
from ..io import restore, save
from ..model import Model
from ._base_parameters import BaseParameters
from ._coordinates import moved
from ._fit import Fit, torques
from ._measurements import Measurements
from ._parameters import Parameters, all_values, in_double
from ._spread import spread

FORMAT = Format(
    "jaxdenoc.Identified", 1, "about", "an identified robot", "`Identified.save`"
)


@dataclass(frozen=True)
class Identified(Fit):
    """A robot from measurements.

    model           the prior with what was found
    parameters      names of what was free
    values, prior_values, covariance    of them, in SI units; the turns of a placement
                    are those from the prior's
    sources         of each: "data", if the data show it by itself; "shared", if only in
                    a sum with others; "prior", if not at all
    base, base_values, base_covariance      the combinations that torques show
    noise           the standard deviation of each joint's torque; NaN if none counts
    state_noise     (2, nv), of positions and rates, where a rollout was compared
    residual        root mean square of each joint's residual torque
    history         the loss, iteration by iteration
    remarks         what there is to know besides

    The covariance is Laplace's, (JᵀJ)⁻¹ of residuals and prior rows, carried to the
    parameters by their slopes; with `physical=False` that of `LeastSquares`.
    """

    model: Model
    prior: Model
    parameters: tuple[str, ...]
    values: np.ndarray
    prior_values: np.ndarray
    covariance: np.ndarray
    sources: tuple[str, ...]
    base: BaseParameters
    base_values: np.ndarray
    base_covariance: np.ndarray
    noise: np.ndarray
    state_noise: np.ndarray | None
    residual: np.ndarray
    history: np.ndarray
    iterations: int
    remarks: tuple[str, ...]
    columns: np.ndarray  # of the regressor: the first of the parameters
    places: np.ndarray  # of placements, six numbers a joint: the rest

    @property
    def base_parameters(self) -> BaseParameters:
        return self.base

    def predict(self, data: Measurements) -> np.ndarray:
        """The torques that the robot needs for the motion, (k, nv)."""
        return torques(self._geometry, data, self.every)

    def interval(
        self, data: Measurements, level: float | int = 0.95
    ) -> tuple[np.ndarray, np.ndarray]:
        """Between which torques a measurement lies so often, (k, nv) each.

            τ̂ ± z √(y cov yᵀ + σ²)

        with y the slopes of a torque by the parameters, and σ the joint's noise.
        """
        if not 0 < level < 1:
            raise ModelError(f"level is {level}; give a probability, such as 0.95.")
        z = NormalDist().inv_cdf((1 + level) / 2)
        middle = self.predict(data)
        own = spread(self._geometry, data, self.every, self)
        half = z * np.sqrt(own + np.nan_to_num(self.noise) ** 2)
        return middle - half, middle + half

    def validate(
        self, held_out: Measurements | Sequence[Measurements]
    ) -> dict[str, np.ndarray]:
        """How well torques that were not used are predicted, for every joint.

        rms, that beside the noise (1 is as good as can be), that of the prior, and the
        part of the torques that lies in their 95 % intervals.
        """
        one = isinstance(held_out, Measurements)
        logs = [held_out] if one else list(held_out)
        if not logs:
            raise ModelError("held_out holds no measurements. Give at least one log.")
        before = all_values(self.prior)
        off, old, inside = [], [], []
        for log in logs:
            off.append(self.residuals(log))
            counts = np.asarray(log.weight) > 0
            plain = np.asarray(log.tau) - torques(self.prior, log, before)
            old.append(np.where(counts, plain, np.nan))
            low, high = self.interval(log)
            within = (low <= log.tau) & (log.tau <= high)
            inside.append(np.where(counts, within, np.nan))
        rms = _mean(np.concatenate(off) ** 2) ** 0.5
        return {
            "rms": rms,
            "ratio": rms / self.noise,
            "prior": _mean(np.concatenate(old) ** 2) ** 0.5,
            "covered": _mean(np.concatenate(inside)),
        }

    def report(self, path, data, held_out=None) -> None:
        """All of it as one page of HTML."""
        from ._report import write_report

        write_report(self, path, data, held_out)

    def save(self, path: str | os.PathLike) -> None:
        """One `.npz` file, and the two models beside each other in it."""
        about, arrays = {}, {}
        for name, value in _flat(self).items():
            is_array = isinstance(value, np.ndarray)
            (arrays if is_array else about)[name] = value
        for name in ("model", "prior"):
            arrays[name] = _packed(getattr(self, name))
        FORMAT.write(path, about, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Identified":
        """What `save` wrote."""
        about, arrays = FORMAT.read(path)
        models = {name: _unpacked(arrays.pop(name)) for name in ("model", "prior")}
        found: dict[str, Any] = {k: _tuple(v) for k, v in {**about, **arrays}.items()}
        base = {k.removeprefix("base."): v for k, v in found.items() if "base." in k}
        of = Parameters(base.pop("names"), base.pop("columns"))
        own = {f.name for f in fields(cls)}
        every: dict[str, Any] = {k: v for k, v in found.items() if k in own}
        every = {"state_noise": None, **every, **models}
        return cls(**every, base=BaseParameters(of, **base))

    @cached_property
    def _geometry(self) -> Model:
        return placed(self.prior, self.places, self._offsets)

    @property
    def _offsets(self) -> np.ndarray:
        k = len(self.columns)
        return self.values[k:] - self.prior_values[k:]

    @cached_property
    def every(self) -> np.ndarray:
        """The values of all columns, those of the prior where they were not free."""
        every = all_values(self.prior)
        every[self.columns] = self.values[: len(self.columns)]
        return every


def placed(model: Model, places: np.ndarray, offsets: np.ndarray) -> Model:
    """The model in double precision with these numbers of placements moved."""
    model = in_double(model)
    if not len(places):
        return model
    six = np.zeros(6 * model.n_links)
    six[places] = offsets
    with jax.enable_x64(True):
        return moved(model, six.reshape(-1, 6))


def _flat(found: Identified) -> dict[str, Any]:
    base = {f"base.{f.name}": getattr(found.base, f.name) for f in fields(found.base)}
    of = base.pop("base.parameters")
    base |= {"base.names": list(of.names), "base.columns": of.columns}
    skip = {"model", "prior", "base"}
    own = {f.name: getattr(found, f.name) for f in fields(found) if f.name not in skip}
    return {k: v for k, v in (own | base).items() if v is not None}


def _packed(model: Model) -> np.ndarray:
    """A model's own archive, as bytes."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        save(model, Path(folder) / "model.npz")
        return np.frombuffer((Path(folder) / "model.npz").read_bytes(), np.uint8)


def _unpacked(data: np.ndarray) -> Model:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        (Path(folder) / "model.npz").write_bytes(data.tobytes())
        return restore(Path(folder) / "model.npz")


def _tuple(x):
    return tuple(x) if isinstance(x, list) else x


def _mean(x: np.ndarray) -> np.ndarray:
    counts = np.sum(~np.isnan(x), axis=0)
    return np.where(counts > 0, np.nansum(x, axis=0) / np.maximum(counts, 1), np.nan)
