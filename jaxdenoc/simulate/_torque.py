"""Joint forces in time: what `simulate` takes for them, as one kind of function."""

from collections.abc import Callable
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .._errors import ModelError
from .._types import Joints, Position
from ..dynamics import check_state
from ..model import Model

Torque = Callable[[Float[Array, ""], Position, Joints], Joints]
KINDS = ("linear", "hold", "cubic")


class TorqueTable(eqx.Module):
    """Joint forces `tau`, one row for each of the times `t`, and what is between them.

    "linear" joins the rows by lines, "hold" keeps a row until the time of the next, and
    "cubic" is once differentiable: at each time it has the slope of the parabola
    through the row and its neighbours. Before the first time and after the last, the
    first row and the last one stay. A function of (t, q, qd), so that `simulate` and
    `rollout` take it as they take a policy; its leaves are the times and the rows, by
    which the motion can be differentiated.
    """

    t: Float[Array, " k"]
    tau: Float[Array, "k v"]
    kind: Literal["linear", "hold", "cubic"] = eqx.field(static=True)

    def __init__(self, t, tau, kind: Literal["linear", "hold", "cubic"] = "linear"):
        tau = jnp.asarray(tau)
        t = jnp.asarray(t, tau.dtype)
        if kind not in KINDS:
            raise ValueError(f"kind is '{kind}'; it can be {', '.join(KINDS)}.")
        if t.ndim != 1 or tau.ndim != 2 or len(t) != len(tau) or len(t) < 2:
            raise ModelError(
                f"t has shape {t.shape} and tau {tau.shape}. Give two or more times, "
                "and one row of joint forces for each."
            )
        self.t, self.tau, self.kind = _in_order(t), tau, kind

    @property
    def jumps(self) -> Float[Array, " jumps"] | None:
        """The times at which the joint forces jump."""
        return self.t[1:] if self.kind == "hold" else None

    def __call__(self, t, q, qd) -> Float[Array, " forces"]:
        last = len(self.t) - 1
        k = jnp.searchsorted(self.t, t, side="right") - 1
        if self.kind == "hold":
            return self.tau[jnp.clip(k, 0, last)]
        k = jnp.clip(k, 0, last - 1)
        h, step = self.t[k + 1] - self.t[k], self.tau[k + 1] - self.tau[k]
        s = jnp.clip((t - self.t[k]) / h, 0, 1)
        line = self.tau[k] + s * step
        if self.kind == "linear" or last == 1:
            return line
        ahead, behind = h * self._slope(k) - step, step - h * self._slope(k + 1)
        return line + s * (1 - s) * ((1 - s) * ahead + s * behind)

    def _slope(self, k) -> Float[Array, " forces"]:
        """At row k, of the parabola through it and its neighbours."""
        middle = jnp.clip(k, 1, len(self.t) - 2)
        a, b, c = (self.t[middle + i] for i in (-1, 0, 1))
        x, y, z = (self.tau[middle + i] for i in (-1, 0, 1))
        first, second = (y - x) / (b - a), (z - y) / (c - b)
        return first + (second - first) / (c - a) * (2 * self.t[k] - a - b)


def _in_order(t: Float[Array, " k"]) -> Float[Array, " k"]:
    message = "The times of a table must increase. Sort its rows by time."
    if isinstance(t, Tracer):
        return eqx.error_if(t, ~jnp.all(jnp.diff(t) > 0), message)
    late = np.flatnonzero(~(np.diff(np.asarray(t)) > 0))
    if len(late):
        k = int(late[0])
        raise ModelError(f"t[{k}] = {t[k]} and t[{k + 1}] = {t[k + 1]}. {message}")
    return t


def as_function(model: Model, tau: Torque | Joints | None, dtype) -> Torque:
    """`tau` as a function of (t, q, qd), whatever it was given as."""
    if tau is None:
        return lambda t, q, qd: jnp.zeros(model.nv, dtype)
    if not callable(tau):
        check_state(model, tau=tau)
        return lambda t, q, qd: jnp.asarray(tau, dtype)
    shapes = [jax.ShapeDtypeStruct(s, dtype) for s in ((), (model.nq,), (model.nv,))]
    check_state(model, tau=jax.eval_shape(tau, *shapes))
    return tau
