"""A motion, sampled."""

import csv
import dataclasses
import io
import os
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._errors import ModelError
from .._jit import jitted
from .._npz import Format, write_whole
from ..conditioning import Condition
from ..dynamics import kinetic_energy, potential_energy
from ..model import Model
from ._status import Status, status_of

_FORMAT = Format("jaxdenoc.Trajectory", 1, "about", "a trajectory", "`Trajectory.save`")
_SAMPLES = ("t", "q", "qd", "tau")
_STATUS = ("sound", "step", "joint", "reason")
_WATCHED = tuple(field.name for field in dataclasses.fields(Condition))


class Trajectory(eqx.Module):
    """Samples of a motion: one row per time. Of a batch, one more axis in front."""

    t: Float[Array, "*batch k"]
    q: Float[Array, "*batch k q"]
    qd: Float[Array, "*batch k v"]
    tau: Float[Array, "*batch k v"]  # the joint forces that were applied
    status: Status  # which samples are sound; where and why the motion stopped
    condition: Condition | None  # of the mass matrix, where the motion was monitored

    def __init__(
        self,
        t,
        q,
        qd,
        tau,
        status: Status | None = None,
        condition: Condition | None = None,
    ):
        """`status` is what the numbers say, where it is not given."""
        self.t, self.q, self.qd, self.tau = t, q, qd, tau
        self.status = status_of(q, qd) if status is None else status
        self.condition = condition

    @jitted()
    def energy(self, model: Model) -> Float[Array, "*batch k"]:
        """Kinetic plus potential energy at every sample, of one motion or a batch."""

        def of(q, qd):
            return kinetic_energy(model, q, qd) + potential_energy(model, q)

        return over_samples(of, self.q, self.qd)

    def save(self, path: str | os.PathLike) -> None:
        """Write the motion, or the batch of them, to one `.npz` file.

        The file is there whole or not at all, carries a checksum, and is open to
        others: `numpy.load` finds t, q, qd, tau and the parts of the status in it.
        """
        _FORMAT.write(path, {}, self.arrays())

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Trajectory":
        """The motion that `save` wrote, to the last bit."""
        return cls.of_arrays(_FORMAT.read(path)[1], Path(path).name)

    def arrays(self) -> dict[str, np.ndarray]:
        """The numbers by name, as they are saved."""
        samples = {name: np.asarray(getattr(self, name)) for name in _SAMPLES}
        status = {name: np.asarray(getattr(self.status, name)) for name in _STATUS}
        named = samples | {f"status.{name}": x for name, x in status.items()}
        if self.condition is None:
            return named
        watched = {name: np.asarray(getattr(self.condition, name)) for name in _WATCHED}
        return named | {f"condition.{name}": x for name, x in watched.items()}

    @classmethod
    def of_arrays(cls, arrays: dict[str, np.ndarray], name: str) -> "Trajectory":
        """The motion of what `arrays` gave; others among them are left out."""
        try:
            samples = {s: jnp.asarray(arrays[s]) for s in _SAMPLES}
            parts = {s: jnp.asarray(arrays[f"status.{s}"]) for s in _STATUS}
            condition = None
            if "condition.t" in arrays:
                watched = (jnp.asarray(arrays[f"condition.{s}"]) for s in _WATCHED)
                condition = Condition(*watched)
        except KeyError as error:
            raise ModelError(
                f"{name} holds no {error}, so no whole trajectory. Save it again."
            ) from error
        return cls(**samples, status=Status(**parts), condition=condition)

    def to_csv(self, path: str | os.PathLike, model: Model | None = None) -> None:
        """Write the motion as a table: t, then q, qd and tau of every joint.

        The columns carry the names of the `model`'s joints if it is given, and numbers
        if not; `sound` says 1 for a sample of the motion and 0 for one after its stop.
        A batch gets a first column `motion`, which counts from zero.
        """
        rows = [np.asarray(getattr(self, name)) for name in _SAMPLES]
        rows.append(np.asarray(self.status.sound, int))
        sizes = [x.shape[-1] for x in rows[1:4]]
        names = ["t", *_columns(model, sizes), "sound"]
        batch = rows[0].shape[:-1]
        count = int(np.prod(batch))
        table = [x.reshape(count, -1, *x.shape[len(batch) + 1 :]) for x in rows]
        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow((["motion"] if batch else []) + names)
        for k in range(count):
            for t, q, qd, tau, sound in zip(*(x[k] for x in table), strict=True):
                numbers = [t, *q, *qd, *tau]
                first = [k] if batch else []
                lines.writerow([*first, *map(_shortest, numbers), sound])
        write_whole(Path(path), lambda file: file.write(text.getvalue().encode()))


def _shortest(x: np.floating) -> str:
    """The shortest decimal that is read back as the same number, of its own type."""
    return np.format_float_scientific(x, trim="-") if np.isfinite(x) else str(x)


def _columns(model: Model | None, sizes: list[int]) -> list[str]:
    if model is None:
        return [f"{x}_{k}" for x, n in zip(_SAMPLES[1:], sizes, strict=True)
                for k in range(n)]  # fmt: skip
    of_q = list(model.velocity_names)
    if model.floating_base:
        base = model.joint_names[0]
        parts = ("x", "y", "z", "qw", "qx", "qy", "qz")
        of_q = [f"{base}.{s}" for s in parts] + of_q[6:]
    rates = model.velocity_names
    return [
        *(f"q_{s}" for s in of_q),
        *(f"qd_{s}" for s in rates),
        *(f"tau_{s}" for s in rates),
    ]


def over_samples(f, *rows):
    """`f` of every sample, of one motion or of any batch of them."""
    for _ in range(rows[0].ndim - 1):
        f = jax.vmap(f)
    return f(*rows)
