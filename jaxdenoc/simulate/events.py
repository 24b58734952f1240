"""Events: what stops a motion before its end.

An event is a number of (t, q, qd) whose change of sign is looked for after every step
of the solver and at every sample, and then located in the step's interpolation.
"""

from collections.abc import Callable
from typing import Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .._types import Joints, Position
from ..model import Model
from ._status import EVENT, OUT_OF_LIMITS

DIRECTIONS = {None: None, "up": True, "down": False}  # ours to those of diffrax


class Crossing(eqx.Module):
    """Stops where the number `f(t, q, qd)` passes zero.

    `direction` is "up" for a passage from below only, "down" for one from above only.
    A motion that starts at zero goes on to the next passage.
    """

    f: Callable
    direction: Literal["up", "down"] | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if self.direction not in DIRECTIONS:
            raise ValueError(
                f"direction is '{self.direction}'; it can be 'up', 'down' or None."
            )

    reason = EVENT

    def value(self, model: Model, t, q: Position, qd: Joints) -> Float[Array, ""]:
        return self.f(t, q, qd)

    def at_once(self, value: Float[Array, ""]) -> Bool[Array, ""]:
        """Whether a start at which the event has this value stops the motion."""
        return jnp.zeros_like(value, bool)

    def joint(self, model: Model, q: Position, qd: Joints) -> Int[Array, ""]:
        """The joint to blame, or -1."""
        return jnp.array(-1)


class Limit(eqx.Module):
    """Stops where a joint passes a limit: `joint_limit` and `speed_limit` make one."""

    of: Literal["q", "qd"] = eqx.field(static=True)

    reason = OUT_OF_LIMITS
    direction = "up"

    def excess(self, model: Model, q: Position, qd: Joints) -> Float[Array, " joints"]:
        """How far each joint is beyond its limits, -1 of one that has none."""
        free = model.floating_base
        if self.of == "q":
            x, low, high = q[7 * free :], model.q_lower, model.q_upper
        else:
            x, low, high = qd[6 * free :], -model.qd_limit, model.qd_limit
        low, high = low[6 * free :], high[6 * free :]
        under = jnp.where(jnp.isfinite(low), low - x, -1)
        over = jnp.where(jnp.isfinite(high), x - high, -1)
        return jnp.concatenate([-jnp.ones(free, x.dtype), jnp.maximum(under, over)])

    def value(self, model: Model, t, q: Position, qd: Joints) -> Float[Array, ""]:
        return jnp.max(self.excess(model, q, qd))

    def at_once(self, value: Float[Array, ""]) -> Bool[Array, ""]:
        return value > 0

    def joint(self, model: Model, q: Position, qd: Joints) -> Int[Array, ""]:
        return jnp.argmax(self.excess(model, q, qd))


Event = Crossing | Limit


def joint_limit() -> Limit:
    """Stops where a joint passes its `q_lower` or `q_upper`; a free base has none.

    A motion that starts beyond a limit, or at one and on its way out, stops at once.
    """
    return Limit("q")


def speed_limit() -> Limit:
    """Stops where a joint is faster than its `qd_limit`, either way."""
    return Limit("qd")


def as_event(event: Event | Callable) -> Event:
    """A function is its own crossing, either way."""
    return event if isinstance(event, Event) else Crossing(event)
