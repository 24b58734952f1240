"""The Jacobians of inverse and of forward dynamics, in closed form and in O(n²)."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import PyTree

from .._jit import jitted
from .._tiles import in_tiles
from .._types import Columns, Joints, Position, Spatial, Square
from ..dynamics import check_state
from ..dynamics._pairs import Table, in_order
from ..dynamics._state import resistance
from ..model import Model, Rows
from ..recursion import (
    Axes,
    Slopes,
    bodies,
    innovations,
    posture,
    slopes,
    solve_U,
    solve_UT,
    wrenches,
)
from ..spatial import Wrench

LONG = 48  # rows; from there on ℳ⁻¹ X by sweeps for each column is less than a product


@jitted()
def inverse_dynamics_derivatives(
    model: Model, q: Position, qd: Joints, qdd: Joints, fext: Spatial | None = None
) -> tuple[Square, Square, Square]:
    """∂τ/∂q, ∂τ/∂θ̇ and ∂τ/∂θ̈ = ℳ of `inverse_dynamics` [MATH 10.2].

    Friction, armature and external wrenches (fixed in body axes) are in them. For a
    free base column i of the first is along the direction of qd_i, as `integrate` goes:
    its tangent space, six columns, and not the seven numbers of its pose.
    """
    check_state(model, q=q, qd=qd, qdd=qdd, fext=fext)
    return _inverse(model, q, qd, qdd, fext)


@jitted()
def forward_dynamics_derivatives(
    model: Model, q: Position, qd: Joints, tau: Joints, fext: Spatial | None = None
) -> tuple[Square, Square, Square]:
    """∂θ̈/∂q, ∂θ̈/∂θ̇ and ∂θ̈/∂τ = ℳ⁻¹ of `forward_dynamics` [MATH 10.1, 10.2].

        ∂θ̈/∂q = -ℳ⁻¹ ∂τ/∂q ,   ∂θ̈/∂θ̇ = -ℳ⁻¹ ∂τ/∂θ̇   of inverse dynamics at θ̈

    For a free base the first is along its tangent space, as in
    `inverse_dynamics_derivatives`.
    """
    check_state(model, q=q, qd=qd, tau=tau, fext=fext)
    return _forward(model, q, qd, tau, fext)


def _inverse_rows(model, q, qd, qdd, fext):
    rows = model.rows
    external = None if fext is None else rows.from_bodies(Wrench.of(fext))
    rates = rows.from_velocities(qd), rows.from_velocities(qdd)
    of_links = slopes(model, posture(model, q), *rates, external)
    return rows, *of_links, *_at_joints(model, qd)


def _at_joints(model, qd) -> tuple[Joints, Joints]:
    """What the joints add to the diagonals of ∂τ/∂θ̇ and of ℳ, in row order."""
    _, drag = jax.jvp(lambda qd: resistance(model, qd), (qd,), (jnp.ones_like(qd),))
    return model.rows.from_velocities(drag), model.rows.from_velocities(model.armature)


def _inverse_tables(of_rows):
    rows, *rest = of_rows
    return tuple(in_order(rows, x) for x in _tables(rows, *rest))


_inverse = in_tiles(_inverse_rows, finish=_inverse_tables)


def _forward_rows(model, q, qd, tau, fext):
    """As in `forward_dynamics`, and then inverse dynamics at the θ̈ that was found."""
    rows = model.rows
    here = posture(model, q)
    external = None if fext is None else rows.from_bodies(Wrench.of(fext))
    rates = rows.from_velocities(qd)
    f = wrenches(model, here, rates, None, external)
    driving = rows.from_velocities(tau - resistance(model, qd))
    drag, armature = _at_joints(model, qd)
    e, D, G = innovations(here, bodies(model), f, driving, armature)
    qdd = solve_UT(here.phi, here.H, G, e, rows.tree)
    of_links = slopes(model, here, rates, qdd, external)
    return (rows, *of_links, drag, armature), (here.phi, here.H, D, G)


def _forward_tables(of_rows):
    (rows, *rest), factors = of_rows
    slopes = _tables(rows, *rest)[:2]
    phi, H, D, G = jax.tree.map(lambda x: x[:, None], factors)  # for all columns

    def solve(X):  # ℳ⁻¹ X, Saha's three steps
        e = solve_U(phi, H, G, X, rows.tree)
        return solve_UT(phi, H, G, e / D, rows.tree)

    one = jnp.eye(len(D), dtype=D.dtype)
    inverse = solve(one.reshape(one.shape + (1,) * (D.ndim - 2)) * jnp.ones_like(D))
    short = len(D) < LONG
    slopes = _product(inverse, slopes) if short else jax.tree.map(solve, slopes)
    dq, dqd = jax.tree.map(lambda X: in_order(rows, -X), slopes)
    return dq, dqd, in_order(rows, inverse)


_forward = in_tiles(_forward_rows, finish=_forward_tables)


def _tables(
    rows: Rows, axes: Axes, slopes: Slopes, drag: Columns, armature: Columns
) -> tuple[Table, Table, Table]:
    """The products of `Slopes`, for all pairs of which one is the other's ancestor."""
    pairs, places = _pairs(rows)

    def entries(pair):
        i, j, same = pair
        s, drag_i, armature_i = _at((slopes, drag, armature), i)
        x = _at(axes, j)
        M = s.M @ x.S + armature_i * same
        low = s.B @ x.first.w + s.M @ x.second
        rate = s.B @ x.S.w + s.M @ x.both + drag_i * same
        return (low, rate, M), (s.q @ x.S, s.qd @ x.S, M)

    i, j, same = pairs
    pairs = jnp.asarray(i), jnp.asarray(j), jnp.asarray(same, drag.dtype)
    low, high = lax.map(entries, pairs)
    found = [
        jnp.concatenate([x, y, jnp.zeros_like(x[:1])])
        for x, y in zip(low, high, strict=True)
    ]
    # a loop, because XLA takes the numbers of x[places] one by one
    full = lax.map(lambda k: _at(found, k), jnp.asarray(places))
    n = len(rows.link)
    dq, dqd, M = (x.reshape(n, n, *x.shape[1:]) for x in full)
    return dq, dqd, M


@cache
def _pairs(rows: Rows) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """All (i, j) with j between i and the base, or i itself; and where they stand.

    For each place of the matrix, row by row: the number of its entry (i, j), or of its
    entry (j, i) behind all of those, or of a zero behind these.
    """
    j, i = (x.astype(np.int32) for x in np.nonzero(rows.tree.ancestry))
    n, count = len(rows.link), len(i)
    places = np.full((n, n), 2 * count, np.int32)
    places[j, i] = count + np.arange(count)
    places[i, j] = np.arange(count)
    return (i, j, i == j), places.ravel()


def _at(tree: PyTree, k) -> PyTree:
    """Row k, of a number that only the running program knows."""
    take = lax.dynamic_index_in_dim
    return jax.tree.map(lambda x: take(x, k, 0, keepdims=False), tree)


def _product(A: Table, Xs: tuple[Table, ...]) -> tuple[Table, ...]:
    """A X for each X, in loops: XLA has no matrix product within one piece of code."""

    def row(a):
        def add(total, k):
            a, Xs = k
            return jax.tree.map(lambda t, X: t + a[None] * X, total, Xs), None

        return lax.scan(add, jax.tree.map(lambda X: jnp.zeros_like(X[0]), Xs), (a, Xs))[
            0
        ]

    return lax.map(row, A)
