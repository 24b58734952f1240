"""A motion for a robot to make: as rows, as a function of time, and in files."""

import os
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._npz import Format, write_whole
from .._types import Number, Numbers
from ._fourier import motion
from ._measurements import Measurements

FORMAT = Format("jaxdenoc.excitation", 1, "excitation", "a motion", "`Excitation.save`")
ARRAYS = ("t", "q", "qd", "qdd", "tau", "coefficients")
LIMITS = ("q", "qd", "qdd", "tau")


class Excitation(eqx.Module):
    """A periodic motion, found by `excitation`.

    t, q, qd, qdd, tau      rows of one period; tau is what the model needs for it
    coefficients            [q₀, a, b] of every joint, (v, 1 + 2 harmonics)
    condition, logdet       of the normal matrix of the base parameters for these rows
    margin                  of "q", "qd", "qdd", "tau": what is left of each joint's
                            limit at its worst, as a share of it; never below zero

    It is a function of time that gives q, qd and qdd, which `control.computed_torque`
    takes for a reference, and which goes on period after period.
    """

    t: Float[np.ndarray, " k"]
    q: Float[np.ndarray, "k v"]
    qd: Float[np.ndarray, "k v"]
    qdd: Float[np.ndarray, "k v"]
    tau: Float[np.ndarray, "k v"]
    coefficients: Float[np.ndarray, "v c"]
    period: float = eqx.field(static=True)
    condition: float = eqx.field(static=True)
    logdet: float = eqx.field(static=True)
    margin: dict[str, Float[np.ndarray, " v"]]
    names: tuple[str, ...] = eqx.field(static=True)

    def __call__(self, t: Number | Array) -> tuple[Array, Array, Array]:
        """q, qd and qdd at any time, in the precision of `t`."""
        t = jnp.asarray(t)
        t = t if jnp.issubdtype(t.dtype, jnp.floating) else t.astype(float)
        c = jnp.asarray(self.coefficients, t.dtype)
        rows = motion(c, t.reshape(-1), jnp.asarray(self.period, t.dtype))
        q, qd, qdd = (x.reshape(*t.shape, len(c)) for x in rows)
        return q, qd, qdd

    def __repr__(self) -> str:
        left = min(float(x.min()) for x in self.margin.values())
        return (
            f"Excitation({self.period:g} s, {self.harmonics} harmonics of "
            f"{len(self.names)} joints, condition number {self.condition:.3g}, "
            f"{100 * left:.0f} % or more left of every limit)"
        )

    @property
    def harmonics(self) -> int:
        return self.coefficients.shape[1] // 2

    def measurements(
        self, noise: Number | Numbers = 0.0, seed: int = 0
    ) -> Measurements:
        """The rows as a log would have them, with white noise on the torques."""
        rng = np.random.default_rng(seed)
        tau = self.tau + np.asarray(noise, float) * rng.normal(size=self.tau.shape)
        return Measurements(self.t, self.q, self.qd, self.qdd, tau)

    def save(self, path: str | os.PathLike) -> None:
        """One file `.npz`, there whole or not at all."""
        about = {
            "period": self.period,
            "condition": self.condition,
            "logdet": self.logdet,
            "names": self.names,
        }
        arrays = {name: np.asarray(getattr(self, name)) for name in ARRAYS}
        arrays |= {f"margin_{s}": np.asarray(self.margin[s]) for s in LIMITS}
        FORMAT.write(path, about, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Excitation":
        """What `save` wrote."""
        head, arrays = FORMAT.read(path)
        return cls(
            **{name: arrays[name] for name in ARRAYS},
            period=float(head["period"]),
            condition=float(head["condition"]),
            logdet=float(head["logdet"]),
            margin={s: arrays[f"margin_{s}"] for s in LIMITS},
            names=tuple(head["names"]),
        )

    def to_csv(self, path: str | os.PathLike) -> None:
        """A table with a row per time, for a robot's controller or a spreadsheet.

        Columns are t, and q_, qd_, qdd_ and tau_ with the joints' names behind them.
        """
        head = ["t", *(f"{s}_{joint}" for s in LIMITS for joint in self.names)]
        table = np.column_stack([self.t, self.q, self.qd, self.qdd, self.tau])

        def fill(file):
            np.savetxt(
                file, table, "%.17g", ",", header=",".join(map(_quoted, head)),
                comments="", encoding="utf-8",
            )  # fmt: skip

        write_whole(Path(path), fill)


def _quoted(name: str) -> str:
    """As the csv module would write it."""
    if not set(name) & set(',"\r\n'):
        return name
    return '"' + name.replace('"', '""') + '"'
