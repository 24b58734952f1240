"""Rows of an array by numbers that are known beforehand, without a gather.

XLA takes the numbers of `x[indices]` one by one, which for a batch costs more than the
arithmetic that is done with them. The indices that occur here come in runs: neighbours
in order, or in reverse. Each run is a slice.
"""

from collections.abc import Sequence
from functools import cache

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array

MOST_RUNS = 32  # beyond which the slices would be more program than they are worth


def take(x: Array, indices: Sequence[int] | np.ndarray) -> Array:
    """`x[indices]` along the first axis."""
    runs = _runs(tuple(int(i) for i in indices))
    if len(runs) > MOST_RUNS:
        return x[np.asarray(indices)]
    parts = []
    for low, high, backward in runs:
        part = x if (low, high) == (0, len(x)) else x[low:high]
        parts.append(lax.rev(part, (0,)) if backward else part)
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts)


@cache
def _runs(indices: tuple[int, ...]) -> tuple[tuple[int, int, bool], ...]:
    """(first, behind the last, whether in reverse) of every run."""
    runs: list[list[int]] = []
    for i in indices:
        run = runs[-1] if runs else []
        ahead = i - run[-1] if run else 0
        if abs(ahead) == 1 and (len(run) == 1 or ahead == run[-1] - run[-2]):
            run.append(i)
        else:
            runs.append([i])
    return tuple((min(r), max(r) + 1, r[0] > r[-1]) for r in runs)
