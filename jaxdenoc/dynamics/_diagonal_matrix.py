"""The skew matrix of the diagonalised Coriolis term, C(θ, ν) = A(θ, ν) ν."""

import jax
import jax.numpy as jnp

from .._jit import jitted
from .._types import Joints, Position, Square
from ..model import Model, carried
from ..recursion import bodies, inertia_rates, posture, riccati, twist_fields
from ._state import check_state


@jitted()
def diagonal_coriolis_matrix(model: Model, q: Position, nu: Joints) -> Square:
    """A with C(θ, ν) = A ν and Aᵀ = -A: the Coriolis term does no work, by form.

    For integrators that keep ½ νᵀν, and for passivity [J&R Identity 7.1; MATH 7.4]:

        A = ½ B (E_ψ Γ - Γ E_ψ* - W + Wᵀ + 2 crfb(M V)) B* ,   B = D^{-½} H ψ

    with W = crf(v_J) P and Γ = Ṗ + W + Wᵀ. Column b of B* is the field of twists V_b
    that ν_b = 1 alone gives the links, so entry (a, b) is a sum over the links of
    products with V_a and V_b, half of which makes A = T - Tᵀ:

        T_ab = ½ Σ (τ̄* V_a⁺)ᵀ Γ V_b - V_aᵀ W V_b + V_aᵀ (V_b ×* M V)
    """
    check_state(model, q=q, nu=nu)
    rows = model.rows
    here, body = posture(model, q), bodies(model)
    phi, H, tree = here.phi, here.H, here.tree
    found = riccati(model, here)
    P, G, size = found.P, found.G, jnp.sqrt(found.D)

    arriving, V = twist_fields(phi, H, G, rows.from_velocities(nu) / size, tree)
    h = body.inertia(here.R) @ V
    qd = rows.from_velocities(nu) / size - G @ arriving
    vJ = H * (qd * carried(model))
    Pd = inertia_rates(here, found, qd)

    def of_unit(xi):
        arriving, V = twist_fields(phi, H, G, xi, tree)
        WV = vJ.cross_wrench(P @ V)
        GV = Pd @ V + WV - P @ vJ.cross(V)  # Γ V
        WV = V.cross_wrench(h) - WV
        Y = arriving - H * (G @ arriving)  # τ̄* V⁺
        return V.array, Y.array, GV.array, WV.array

    V, Y, GV, WV = jax.vmap(of_unit)(jnp.diag(1 / size))
    n = len(rows.link)
    V, Y, GV, WV = (x.reshape(n, -1) for x in (V, Y, GV, WV))
    T = (Y @ GV.T + V @ WV.T) / 2
    A = T - T.T
    return rows.to_velocities(rows.to_velocities(A).T).T
