"""A loop over time, and what its reverse mode keeps of it.

Reverse mode needs the states of all steps, last one first. Kept, they are the memory of
the gradient; not kept, they are computed again from some that are.
"""

from collections.abc import Callable
from math import isqrt
from typing import Literal

import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import jax.tree as jt
from jax import lax
from jaxtyping import PyTree

Checkpoint = Literal["sqrt"] | int | None


def scan_over_time(
    advance: Callable, carry: PyTree, rows: PyTree, count: int, checkpoint: Checkpoint
) -> tuple[PyTree, PyTree]:
    """`lax.scan` of `advance(carry, (k, real, row))` over `count` rows.

    `real` is False in steps that only fill up a piece, which must change nothing.
    """
    numbers = jnp.arange(count, dtype=jnp.int32)
    if checkpoint is None:
        return lax.scan(advance, carry, (numbers, jnp.ones(count, bool), rows))
    if checkpoint == "sqrt":
        return _in_pieces(advance, carry, (numbers, rows), count)
    rows = numbers, jnp.ones(count, bool), rows
    return eqxi.scan(advance, carry, rows, kind="checkpointed", checkpoints=checkpoint)


def piece_length(count: int) -> int:
    """√count, rounded up."""
    return isqrt(count - 1) + 1


def _in_pieces(advance, carry, rows, count):
    """√count pieces of √count steps, of which the states between them are kept."""
    size = piece_length(count)
    pieces = -(-count // size)
    real = (jnp.arange(pieces * size) < count).reshape(pieces, size)

    def cut(x):
        last = jnp.broadcast_to(x[-1:], (pieces * size - count, *x.shape[1:]))
        return jnp.concatenate([x, last]).reshape(pieces, size, *x.shape[1:])

    numbers, rows = jt.map(cut, rows)

    @jax.checkpoint
    def piece(carry, rows):
        return lax.scan(advance, carry, rows)

    carry, samples = lax.scan(piece, carry, (numbers, real, rows))

    def joined(y):
        return y.reshape(pieces * size, *y.shape[2:])[:count]

    return carry, jt.map(joined, samples)
