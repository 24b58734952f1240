"""What a rollout misses of a segment, its slopes, and sums over all segments.

    e_k = [q_k ⊖ q̂_k, θ̇_k - θ̇̂_k] ,   k = 1 … horizon

from the measured start moved by d, with τ held from sample to sample, even or not.
"""

from collections.abc import Callable, Iterator
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._batched import batched
from ..model import Model, difference, integrate
from ..simulate._checkpoint import scan_over_time
from ..simulate._steps import INTEGRATORS
from ._coordinates import Coordinates
from ._segments import Segments

TILE, AT_ONCE = 16, 256  # segments: of one piece, and whose slopes are in memory


def motion(model: Model, q, qd, segment: Segments, integrator: str, substeps: int):
    """q̂ and θ̇̂ after every step."""
    begin, rates, step = INTEGRATORS[integrator]

    def advance(carry, now):
        _, _, (tau, h) = now

        def one(state, _):
            q, x = state
            q1, x1, _ = step(model, q, x, tau, h / substeps)
            return (q1, x1), None

        (q, x), _ = lax.scan(one, carry, length=substeps)
        return (q, x), (q, rates(model, q, x))

    start = q, begin(model, q, qd)
    rows = segment.tau, segment.dt
    return scan_over_time(advance, start, rows, segment.dt.shape[0], "sqrt")[1]


def missed(space: Coordinates, theta, d, segment: Segments, integrator, substeps):
    """e of every step, (h, 2 nv), for parameters θ and a start moved by d."""
    model, v = space.robot(theta), space.model.nv
    segment = Segments(*(jnp.asarray(x) for x in segment))
    q0 = integrate(model, segment.q[0], d[:v])
    q, qd = motion(model, q0, segment.qd[0] + d[v:], segment, integrator, substeps)
    off = jax.vmap(difference, (None, 0, 0))(model, q, segment.q[1:])
    e = jnp.concatenate([off, segment.qd[1:] - qd], axis=1)
    return e * segment.real[:, None]


@cache
def program(what: str, integrator: str, substeps: int) -> Callable:
    """Of a batch of segments: e, or e with its slopes by θ, or by d as well."""

    def one(space, theta, d, segment):
        def e(theta, d):
            return missed(space, theta, d, segment, integrator, substeps)

        if what == "missed":
            return e(theta, d)
        if what == "slopes":
            return e(theta, d), jax.jacfwd(e)(theta, d)
        return e(theta, d), *jax.jacfwd(e, (0, 1))(theta, d)

    return batched(one, in_axes=(None, None, 0, 0), tile=TILE)


def in_parts(size: int) -> Iterator[slice]:
    return (slice(a, min(a + AT_ONCE, size)) for a in range(0, size, AT_ONCE))


def padded(x: np.ndarray, rows: slice) -> np.ndarray:
    """Rows, filled up for one program to serve all."""
    x = x[rows]
    return np.concatenate([x, np.repeat(x[-1:], AT_ONCE - len(x), 0)])


def of_all(what, space, theta, d, cut: Segments, integrator, substeps) -> Iterator:
    """Part by part, the rows, and what `program` gives for them, as NumPy's."""
    run, size = program(what, integrator, substeps), len(cut.dt)
    for rows in in_parts(size):
        few = Segments(*(padded(x, rows) if size > AT_ONCE else x for x in cut))
        starts = padded(d, rows) if size > AT_ONCE else d
        found = run(space, jnp.asarray(theta), starts, few)
        n = rows.stop - rows.start
        yield rows, jax.tree.map(lambda x: np.asarray(x)[:n], found)
