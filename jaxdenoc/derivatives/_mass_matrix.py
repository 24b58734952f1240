"""How the mass matrix changes: ∂ℳ/∂q_i, ℳ̇, and θ̇ᵀ ℳ_q θ̇."""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._jit import jitted
from .._tiles import in_tiles
from .._types import Joints, Position, Square
from ..dynamics import check_state, coriolis_matrix
from ..dynamics._pairs import to_common_point, twists_there
from ..model import Model, Rows, carried
from ..recursion import bodies, composite_inertias, posture, tip_to_base, twists
from ..spatial import Wrench


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
    S, Mc = twists_there(there, here.H), Mc.shifted(there)
    own = Mc @ S

    # loops and no broadcasts, so that every number stays a lane of the batch
    def along(link):  # ∂ℳ/∂q_i
        S_i, M_i, within, beyond = link
        turned = lax.map(lambda S: (S.cross(S_i), M_i @ S), S)  # S_a × S_i , M̃_i S_a

        def row(a):
            X_a, F_a, own_a, within, within_T, beyond = a

            def entry(b):
                X_b, F_b, own_b, ab, ba, far = b
                near = own_b @ X_a * ab + own_a @ X_b * ba
                return near + (F_b @ X_a + F_a @ X_b) * far

            return lax.map(entry, (*turned, own, within, within_T, beyond))

        return lax.map(row, (*turned, own, within, within.T, beyond))

    within, beyond = (jnp.asarray(x, q.dtype) for x in _regions(rows))
    dM = lax.map(along, (S, Mc, within, beyond))
    for axis in range(3):
        dM = jnp.moveaxis(rows.to_velocities(jnp.moveaxis(dM, axis, 0)), 0, axis)
    return dM


def _regions(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Where entry (a, b) of ∂ℳ/∂q_i takes which of the two forms, as [i, a, b].

    `within` has a as hi and b as lo, `beyond` is the same for both orders. i must
    belong to a joint strictly beyond that of hi: a joint's own columns are constant in
    the axes that it turns.
    """
    up = rows.tree.ancestry  # [j, i]: j is i or between i and the base
    after = (up & ~np.equal.outer(rows.link, rows.link)).T  # [i, hi]
    return after[:, :, None] & up[:, None, :], after[:, :, None] & after[:, None, :]


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
