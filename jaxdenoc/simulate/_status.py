"""What became of a motion: sound to the end, or stopped, at which step and why."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .._types import Joints, Position
from ..model import Model

REASONS = (
    "ran to the end",
    "left the finite numbers",
    "left its limits",
    "needed more iterations or steps than allowed",
    "met the event",
)
SOUND, NOT_FINITE, OUT_OF_LIMITS, NOT_SOLVED, EVENT = range(5)


class Status(eqx.Module):
    """What became of a motion; as an array, for every sample whether it is sound.

    A motion that stops keeps its last sound state in all samples after it. `step` is
    the number of the step that went wrong (that leads from sample `step` to the next),
    `joint` the number of the joint, `reason` the place in `REASONS`: -1, -1 and 0 where
    nothing went wrong.
    """

    sound: Bool[Array, "*batch k"]
    step: Int[Array, "*batch"]
    joint: Int[Array, "*batch"]
    reason: Int[Array, "*batch"]

    @property
    def ok(self) -> Bool[Array, "*batch"]:
        """Whether the motion ran to its end; of a batch, one for each."""
        return self.reason == SOUND

    def describe(self, model: Model) -> str | list[str]:
        """In words; of a batch, a list of them."""
        rows = [np.ravel(x) for x in (self.reason, self.step, self.joint)]
        found = [_words(model, *map(int, row)) for row in zip(*rows, strict=True)]
        return found if np.ndim(self.reason) else found[0]

    def all(self) -> Bool[Array, ""]:
        """Whether all samples are sound."""
        return jnp.all(self.sound)

    def any(self) -> Bool[Array, ""]:
        """Whether any sample is sound."""
        return jnp.any(self.sound)

    def __getitem__(self, index) -> Array:
        return self.sound[index]

    def __len__(self) -> int:
        return len(self.sound)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.sound.shape

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return np.array(self.sound, dtype=dtype)

    def __jax_array__(self) -> Array:
        return self.sound


def _words(model: Model, reason: int, step: int, joint: int) -> str:
    where = f": joint '{model.joint_names[joint]}'" if joint >= 0 else ""
    when = f" at step {step}" if step >= 0 else ""
    return f"{REASONS[reason]}{when}{where}"


def status_of(q: Float[Array, "*batch k q"], qd: Float[Array, "*batch k v"]) -> Status:
    """The status of samples of which only the numbers are known."""
    if q.ndim > 2:
        return jax.vmap(status_of)(q, qd)
    wrong = jax.vmap(not_finite)(q, qd)
    bad = jnp.any(wrong, axis=1)
    some, first = jnp.any(bad), jnp.argmax(bad)
    return Status(
        ~bad,
        jnp.where(some, jnp.maximum(first - 1, 0), -1).astype(jnp.int32),
        jnp.where(some, jnp.argmax(wrong[first]), -1).astype(jnp.int32),
        jnp.where(some, NOT_FINITE, SOUND).astype(jnp.int32),
    )


def not_finite(q: Position, qd: Joints) -> Bool[Array, " n"]:
    """Of every joint, whether any of its numbers is infinite or none at all.

    Or so large that its fourth power is: then velocity products and their derivatives
    are, though the number is not yet.
    """
    huge = jnp.asarray(jnp.finfo(q.dtype).max ** 0.25, q.dtype)
    q, qd = ~(jnp.abs(q) < huge), ~(jnp.abs(qd) < huge)
    if q.size == qd.size:
        return q | qd
    base = jnp.any(q[:7]) | jnp.any(qd[:6])
    return jnp.concatenate([base[None], q[7:] | qd[6:]])


def out_of_limits(model: Model, q: Position) -> Bool[Array, " n"]:
    """Of every joint, whether it is beyond its limits; a free base has none."""
    if not model.floating_base:
        return (q < model.q_lower) | (q > model.q_upper)
    beyond = (q[7:] < model.q_lower[6:]) | (q[7:] > model.q_upper[6:])
    return jnp.concatenate([jnp.zeros(1, bool), beyond])
