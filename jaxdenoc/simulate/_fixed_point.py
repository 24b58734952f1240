"""z = F(z) by iteration to the last bit, differentiated by what it solves."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from .._moves import moving

MOST = 60  # iterations; a step that needs more is too long for its motion
Vector = Float[Array, " k"]


def fixed_point(
    function: Callable[[Any, Vector], Vector], args: Any, guess: Vector
) -> tuple[Vector, Bool[Array, ""]]:
    """z with z = F(args, z), and whether it was found.

    Iterates until a change is small, and from then on until rounding has the last word:
    invariants of an implicit step hold as well as its equations do. The derivative is
    that of the equation, (1 - ∂F/∂z) dz = dF.
    """

    @jax.custom_jvp
    def solve(args, guess):
        return _iterate(partial(function, args), guess)

    def rule(at, tangents):
        args, _ = at
        z, solved = solve(*at)
        moves, slopes = moving(args, tangents[0])
        along = jax.linearize(lambda x: function(moves.put(args, x), z), moves.of(args))
        slope = jax.jacfwd(partial(function, args))(z)
        dz = jnp.linalg.solve(jnp.eye(z.size, dtype=z.dtype) - slope, along[1](slopes))
        return (z, solved), (dz, jax.custom_derivatives.zero_from_primal(solved))

    solve.defjvp(rule, symbolic_zeros=True)
    return solve(args, lax.stop_gradient(guess))


def _iterate(function: Callable[[Vector], Vector], z: Vector):
    eps = jnp.finfo(z.dtype).eps
    enough = jnp.asarray(eps**0.75, z.dtype)

    def going(state):
        _, change, before, count = state
        return (count < MOST) & ((change > enough) | ((change > 0) & (change < before)))

    def again(state):
        z, change, _, count = state
        new = function(z)
        size = jnp.max(jnp.abs(new))
        largest = jnp.max(jnp.abs(new - z)) / jnp.where(size > 0, size, 1)
        return new, largest, change, count + 1

    far = jnp.full((), jnp.inf, z.dtype)
    z, change, *_ = lax.while_loop(going, again, (z, far, far, 0))
    return z, change <= enough
