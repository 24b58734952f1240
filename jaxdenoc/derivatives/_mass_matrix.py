"""How the mass matrix changes: ∂ℳ/∂q_i, ℳ̇, and θ̇ᵀ ℳ_q θ̇."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._jit import jitted
from .._tiles import in_tiles
from .._types import Joints, Position, Square
from ..dynamics import check_state, coriolis_matrix
from ..dynamics._pairs import to_common_point, twists_there
from ..model import Model, Rows, carried
from ..recursion import bodies, composite_inertias, posture, tip_to_base, twists
from ..spatial import Twist, Wrench


@jitted()
def mass_matrix_sensitivity(model: Model, q: Position) -> Float[Array, "v v v"]:
    """∂ℳ/∂q_i for every i, as `[i]` [J&R Identity 6.3; MATH 7.3].

    With all joint axes S in base axes about one point, M̃ the composite inertias there
    and `hi` between `lo` and the base, or `lo` itself, ℳ_{hi,lo} = S_hi · M̃_lo S_lo and

        ∂ℳ_{hi,lo}/∂q_i = (S_hi × S_i) · M̃_lo S_lo                   i from lo up to hi
                        = (S_hi × S_i) · M̃_i S_lo
                        + (S_lo × S_i) · M̃_i S_hi                     i beyond lo

    and zero otherwise. For a free base q_i means the direction of qd_i, along which the
    whole robot moves rigidly: its six slices are zero.
    """
    check_state(model, q=q)
    return _sensitivity(model, q)


@in_tiles
def _sensitivity(model, q):
    rows = model.rows
    here = posture(model, q)
    _, Mc = composite_inertias(here.phi, bodies(model).inertia(here.R), rows.tree)
    there = to_common_point(here)
    S = twists_there(there, here.H)
    Mc = Mc.shifted(there)

    one, other = _expand(S, -1), _expand(S, -2)
    X = one.cross(other)  # [hi, i] = S_hi × S_i
    F = _expand(Mc, -2) @ one  # [lo, i] = M̃_i S_lo
    own = Mc @ S  # [lo] = M̃_lo S_lo

    within, beyond = _regions(rows)
    # [i, hi, lo]; `within` and `beyond` have hi before lo
    near = _dot(own, X, lambda a: a[None, None, :], lambda b: b.T[:, :, None])
    far = _dot(F, X, lambda a: a.T[:, None, :], lambda b: b.T[:, :, None])
    far = far + far.transpose(0, 2, 1)
    half = jnp.where(within, near, 0.0) + jnp.where(beyond, far, 0.0)
    diagonal = np.eye(len(rows.link), dtype=bool)[None]
    full = half + jnp.where(diagonal, 0.0, half.transpose(0, 2, 1))
    for axis in range(3):
        full = jnp.moveaxis(rows.to_velocities(jnp.moveaxis(full, axis, 0)), 0, axis)
    return full


def _regions(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Where [i, hi, lo] takes which of the two forms.

    i must belong to a joint strictly beyond that of hi: a joint's own columns are
    constant in the axes that it turns.
    """
    up = rows.tree.ancestry  # [j, i]: j is i or between i and the base
    same = np.equal.outer(rows.link, rows.link)
    after = up & ~same  # [hi, i]: i strictly beyond hi
    related = up[None, :, :]  # hi is lo or between lo and the base
    to_lo = (up | same)[:, None, :]  # i is between lo and the base
    within = related & after.T[:, :, None] & to_lo
    beyond = related & after.T[:, None, :]
    return within, beyond


def _expand(x, axis):
    return jax.tree.map(lambda a: jnp.expand_dims(a, axis), x)


def _dot(f: Wrench, V: Twist, left, right):
    total = 0.0
    for a, b in zip(
        (f.n.x, f.n.y, f.n.z, f.f.x, f.f.y, f.f.z),
        (V.w.x, V.w.y, V.w.z, V.v.x, V.v.y, V.v.z),
        strict=True,
    ):
        total = total + left(a) * right(b)
    return total


@jitted()
def mass_matrix_rate(model: Model, q: Position, qd: Joints) -> Square:
    """ℳ̇ = C + Cᵀ along θ̇ [MATH 3.3]."""
    check_state(model, q=q, qd=qd)
    C = coriolis_matrix(model, q, qd)
    return C + C.T


@jitted()
def mass_matrix_form(model: Model, q: Position, qd: Joints) -> Joints:
    """θ̇ᵀ (∂ℳ/∂q_i) θ̇ for every i, in O(n) [J&R 6.16; MATH 7.3].

    2 H Ṽ* φ M V: with h the momentum of everything outboard, h = φ M V,

        2 (V⁺_i × H_i) · h_i ,   V⁺ = φ* V_parent

    Half of it is the gradient of the kinetic energy at constant θ̇.
    """
    check_state(model, q=q, qd=qd)
    return _form(model, q, qd)


@in_tiles
def _form(model, q, qd):
    rows = model.rows
    here = posture(model, q)
    phi, H = here.phi, here.H
    rates = rows.from_velocities(qd)
    V = twists(phi, H, rates, rows.tree)
    momentum = bodies(model).inertia(here.R) @ V

    def step(total, link):
        phi, h = link
        total = total + h
        return phi.wrench(total), total

    zero = Wrench.zeros(rates[0])
    _, h = tip_to_base(step, zero, (phi, momentum), rows.tree)
    arriving = V - H * rates
    return rows.to_velocities(2 * carried(model) * (h @ arriving.cross(H.twist)))
