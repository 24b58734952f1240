"""What goes wrong in a step, and how it stays where it happened."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree as jt
from jaxtyping import Array, Bool, Int, PyTree

from .._linear import Pair, linear
from .._moves import moving
from ..model import Model
from ._status import (
    NOT_FINITE,
    NOT_SOLVED,
    OUT_OF_LIMITS,
    SOUND,
    not_finite,
    out_of_limits,
)


class Fault(eqx.Module):
    """The first thing that went wrong: step, joint and reason, as in `Status`."""

    step: Int[Array, ""]
    joint: Int[Array, ""]
    reason: Int[Array, ""]

    @property
    def none(self) -> Bool[Array, ""]:
        return self.reason == SOUND

    @classmethod
    def at_start(cls, q, x) -> "Fault":
        sound = cls(*(jnp.asarray(x, jnp.int32) for x in (-1, -1, SOUND)))
        lost = _first(not_finite(q, x))
        reason = jnp.where(lost < 0, SOUND, NOT_FINITE).astype(jnp.int32)
        return sound.then(jnp.zeros((), jnp.int32), reason, lost)

    def after(self, k, model: Model, before, q, x, solved, limits: str) -> "Fault":
        """This one, or if there was none, what step k to (q, x) found."""
        lost, beyond = _first(not_finite(q, x)), jnp.full((), -1, jnp.int32)
        if limits == "freeze":
            left = out_of_limits(model, q) & ~out_of_limits(model, before)
            beyond = _first(left)
        reason = jnp.where(beyond < 0, SOUND, OUT_OF_LIMITS)
        reason = jnp.where(lost < 0, reason, NOT_FINITE)
        reason = jnp.where(solved, reason, NOT_SOLVED).astype(jnp.int32)
        joint = jnp.where(solved, jnp.where(lost < 0, beyond, lost), -1)
        return self.then(k, reason, joint)

    def then(self, k, reason, joint) -> "Fault":
        first = self.none & (reason != SOUND)
        new = Fault(k, joint, reason)
        return jt.map(lambda a, b: jnp.where(first, a, b), new, self)


def _first(flags: Bool[Array, " n"]) -> Int[Array, ""]:
    """The number of the first that is set, or -1."""
    left = jnp.arange(flags.size, 0, -1, dtype=jnp.int32)
    most = jnp.max(jnp.where(flags, left, 0))
    return jnp.where(most > 0, flags.size - most, -1).astype(jnp.int32)


def guarded(step: Callable) -> Callable:
    """`step`, whose derivative is zero where its result is not finite.

    A robot that went wrong is left out by a `where`. That alone would not do for
    derivatives: zero times what is not a number is not a number, and summed over a
    batch, as the gradient of what all robots share is, it would be that of all.
    """

    @jax.custom_jvp
    def run(*args):
        return step(*args)

    def rule(at, tangents):
        moves, slopes = moving(at, tangents)

        def along(leaves):
            q, x, solved = step(*moves.put(at, leaves))
            return (q, x), solved

        out, push, solved = jax.linearize(along, moves.of(at), has_aux=True)
        sound = _first(not_finite(*out)) < 0
        found = _if(sound, push(_if(sound, slopes)))
        return (*out, solved), (*found, jax.custom_derivatives.zero_from_primal(solved))

    run.defjvp(rule, symbolic_zeros=True)
    return run


def _if(sound: Bool[Array, ""], slopes: PyTree) -> PyTree:
    """The slopes, or zeros. A linear map, so that only `sound` is kept of it."""

    def masked(sound, slopes):
        return jt.map(lambda t: jnp.where(sound, t, jnp.zeros_like(t)), slopes)

    return linear(Pair(masked, masked), sound, slopes, like=slopes)
