"""How badly conditioned the mass matrix is, exactly and by what is cheap to have."""

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._jit import jitted
from .._types import Joints, Position
from ..dynamics import check_state, factorize, mass_matrix
from ..model import Model
from ..recursion import bodies, composite_inertias, posture
from ._lanczos import extreme_eigenvalues


@jitted("method", "steps")
def condition_number(
    model: Model,
    q: Position,
    *,
    method: Literal["eigenvalues", "lanczos"] = "eigenvalues",
    steps: int = 16,
) -> Float[Array, ""]:
    """κ = λ_max / λ_min of ℳ, the largest magnification of a relative error by ℳ⁻¹.

    "eigenvalues" makes ℳ and is O(n³); where rounding hides λ_min, as in float32 from
    κ of 10⁷ on, it is infinite. "lanczos" is `extreme_eigenvalues`: a few O(n) products
    and solutions, a little low for long robots, and right in float32 too.

    It compares what the joints have in common only: between a metre and a radian it
    depends on the units. And it is not the error of the O(n) solution, which knows ℳ by
    its factors [MATH 8, 9.4].
    """
    if method not in ("eigenvalues", "lanczos"):
        raise ValueError(f"method is '{method}'; it can be 'eigenvalues' or 'lanczos'.")
    if method == "lanczos":
        low, high = extreme_eigenvalues(model, q, steps=steps)
    else:
        found = jnp.linalg.eigvalsh(mass_matrix(model, q))
        low, high = found[0], found[-1]
    return jnp.where(low > 0, high / jnp.where(low > 0, low, 1), jnp.inf)


@jitted()
def mass_matrix_diagonal(model: Model, q: Position) -> Joints:
    """The diagonal of ℳ in O(n): H M̃ H*, M̃ the composite body outboard [MATH 4]."""
    check_state(model, q=q)
    here, rows = posture(model, q), model.rows
    _, M = composite_inertias(here.phi, bodies(model).inertia(here.R), here.tree)
    return rows.to_velocities((M @ here.H) @ here.H) + model.armature


@jitted("safe")
def diagonal_ratio(
    model: Model, q: Position, *, safe: bool = False
) -> Float[Array, ""]:
    """δ = ℳ_11 / ℳ_nn in O(n), which follows κ along the motion of a chain of rods.

    `safe=True` takes the largest over the smallest of the diagonal, which κ is never
    below, whatever the robot: ℳ_11 need not be the largest [MATH 8].
    """
    diagonal = mass_matrix_diagonal(model, q)
    if safe:
        return jnp.max(diagonal) / jnp.min(diagonal)
    return diagonal[0] / diagonal[-1]


@jitted("order")
def pivot_ratio(
    model: Model, q: Position, *, order: Literal["reverse", "forward"] = "reverse"
) -> Float[Array, ""]:
    """ρ = max D / min D, never above κ [MATH 8].

    "reverse" has the D of ℳ = U D Uᵀ, in O(n): what the motors feel with all joints
    beyond theirs free. "forward" has the pivots of ordinary elimination, from the base
    on, in O(n³).
    """
    if order not in ("reverse", "forward"):
        raise ValueError(f"order is '{order}'; it can be 'reverse' or 'forward'.")
    if order == "reverse":
        D = factorize(model, q).D
    else:
        D = jnp.diagonal(jnp.linalg.cholesky(mass_matrix(model, q))) ** 2
    return jnp.max(D) / jnp.min(D)
