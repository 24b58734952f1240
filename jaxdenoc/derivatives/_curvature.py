"""Is there a change of coordinates that makes the mass matrix the identity everywhere?

Only where the Riemann curvature of the kinetic energy vanishes [J&R §2; MATH 7.7].
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._errors import ModelError
from .._jit import jitted
from .._types import Position
from ..dynamics import check_state, mass_matrix
from ..model import Model, random_state
from ._mass_matrix import mass_matrix_sensitivity

Symbols = Float[Array, "v v v"]


@jitted()
def christoffel_symbols(model: Model, q: Position) -> tuple[Symbols, Symbols]:
    """Of the first kind, [ij, k], and of the second, Γ^l_ij as `[l, i, j]`.

    [ij, k] = ½ (∂_i ℳ_jk + ∂_j ℳ_ik - ∂_k ℳ_ij) ,   Γ^l_ij = Σ_k (ℳ⁻¹)_lk [ij, k]
    """
    _needs_coordinates(model, q)
    first = _first_kind(mass_matrix_sensitivity(model, q))
    second = jnp.einsum("lk,ijk->lij", jnp.linalg.inv(mass_matrix(model, q)), first)
    return first, second


@jitted()
def riemann_curvature(model: Model, q: Position) -> Float[Array, "v v v v"]:
    """The curvature R_hijk of the metric ℳ(q) [J&R 2.5; MATH 7.7].

        R_hijk = ½ (∂²ℳ_hk/∂i∂j + ∂²ℳ_ij/∂h∂k - ∂²ℳ_hj/∂i∂k - ∂²ℳ_ik/∂h∂j)
               + Σ_l Γ^l_ij [hk, l] - Γ^l_ik [hj, l]

    n²(n²-1)/12 of its components are independent. First derivatives of ℳ are in closed
    form, second ones are those by forward mode.
    """
    _needs_coordinates(model, q)
    # d2[a, b, i, j] = ∂²ℳ_ij / ∂q_a ∂q_b
    d2 = jnp.moveaxis(jax.jacfwd(mass_matrix_sensitivity, 1)(model, q), -1, 0)
    first, second = christoffel_symbols(model, q)
    bends = (
        jnp.einsum("ijhk->hijk", d2)
        + jnp.einsum("hkij->hijk", d2)
        - jnp.einsum("ikhj->hijk", d2)
        - jnp.einsum("hjik->hijk", d2)
    )
    turns = jnp.einsum("lij,hkl->hijk", second, first)
    turns = turns - jnp.einsum("lik,hjl->hijk", second, first)
    return bends / 2 + turns


@jitted()
def curvature_scale(model: Model, q: Position) -> Float[Array, ""]:
    """max |R| over max |ℳ|: zero where the robot is flat."""
    return jnp.max(jnp.abs(riemann_curvature(model, q))) / jnp.max(
        jnp.abs(mass_matrix(model, q))
    )


def globally_diagonalizable(
    model: Model, *, samples: int = 8, tolerance: float | None = None, seed: int = 0
) -> Bool[Array, ""]:
    """Whether coordinates ϑ exist with ∂ϑ/∂q = mᵀ, in which the dynamics are ϑ̈ = ε.

    They do, locally, just where the curvature is zero [J&R Lemma 2.1], which is looked
    at in `samples` random configurations. Few robots have them: a sliding table, a
    point mass in polar coordinates, but no ordinary arm.
    """
    keys = jax.random.split(jax.random.key(seed), samples)
    q = jax.vmap(lambda key: random_state(model, key)[0])(keys)
    _needs_coordinates(model, q[0])
    if tolerance is None:
        tolerance = 1e4 * float(jnp.finfo(q.dtype).eps)
    scales = jax.vmap(lambda q: curvature_scale(model, q))(q)
    return jnp.all(scales < tolerance)


def _first_kind(dM: Symbols) -> Symbols:
    """[ij, k] from `dM[i]` = ∂ℳ/∂q_i."""
    return (dM + dM.transpose(1, 0, 2) - dM.transpose(1, 2, 0)) / 2


def _needs_coordinates(model: Model, q) -> None:
    check_state(model, q=q)
    if model.floating_base:
        raise ModelError(
            f"Model '{model.name}' has a free base, whose velocities are not the rates "
            "of coordinates, so its mass matrix is not a metric over q. Load it with "
            "floating_base=False."
        )
