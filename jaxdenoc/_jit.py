"""`jit` for the public functions, so that a call outside of one is fast too.

A sweep is a `lax.scan` over a function made in the call. Called outside of `jit`, JAX
would compile it again every time; compiled once with what is around it, a second call
takes microseconds. Inside another `jit` it is inlined and changes nothing.
"""

from collections.abc import Callable
from typing import TypeVar

import jax

F = TypeVar("F", bound=Callable)


def jitted(*static: str) -> Callable[[F], F]:
    """`jax.jit` with these arguments static, and the signature kept for editors."""
    return lambda function: jax.jit(function, static_argnames=static, inline=True)  # type: ignore[return-value]
