"""`jit` for the public functions, so that a call outside of one is fast too.

A sweep is a `lax.scan` over a function made in the call. Called outside of `jit`, JAX
would compile it again every time; compiled once with what is around it, a second call
takes microseconds. Inside another `jit` it is inlined and changes nothing.

Accelerators multiply matrices in fewer digits than their numbers have, unless they are
asked not to; within these functions they are asked.
"""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

import jax

F = TypeVar("F", bound=Callable)


def jitted(*static: str) -> Callable[[F], F]:
    """`jax.jit` with these arguments static, and the signature kept for editors."""
    return lambda function: jax.jit(  # type: ignore[return-value]
        precise(function), static_argnames=static, inline=True
    )


def precise(function: F) -> F:
    """The same, with all matrix products in it in full precision."""

    @wraps(function)
    def with_all_digits(*args, **named):
        with jax.default_matmul_precision("highest"):
            return function(*args, **named)

    return with_all_digits  # type: ignore[return-value]
