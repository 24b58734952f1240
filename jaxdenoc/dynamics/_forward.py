"""Forward dynamics."""

from typing import Literal

import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve

from .._jit import jitted
from .._tiles import in_tiles
from .._types import Joints, Position, Spatial
from ..model import Model
from ..recursion import bodies, innovations, posture, solve_UT, wrenches
from ..spatial import Wrench
from ._inverse import inverse_dynamics
from ._mass_matrix import mass_matrix
from ._state import check_state, resistance


@jitted("method")
def forward_dynamics(
    model: Model,
    q: Position,
    qd: Joints,
    tau: Joints,
    fext: Spatial | None = None,
    *,
    method: Literal["recursive", "dense"] = "recursive",
) -> Joints:
    """The joint accelerations of given joint forces, θ̈ = ℳ⁻¹ (τ - C θ̇ - gravity).

    "recursive" is Saha's U D Uᵀ scheme in O(n), three sweeps that never form ℳ
    [Saha 1999 §5.2; MATH 6.1]; "dense" makes ℳ and takes its Cholesky factor, O(n³).
    """
    check_state(model, q=q, qd=qd, tau=tau, fext=fext)
    if method == "recursive":
        return _recursive(model, q, qd, tau, fext)
    if method == "dense":
        bias = inverse_dynamics(model, q, qd, jnp.zeros_like(qd), fext)
        return cho_solve(cho_factor(mass_matrix(model, q)), tau - bias)
    raise ValueError(f"method is '{method}'; it can be 'recursive' or 'dense'.")


@in_tiles
def _recursive(model, q, qd, tau, fext) -> Joints:
    """Outward the bias wrenches; inward U e = τ - bias, ê = D⁻¹ e; outward Uᵀ θ̈ = ê."""
    rows = model.rows
    here = posture(model, q)
    external = None if fext is None else rows.from_bodies(Wrench.of(fext))
    f = wrenches(model, here, rows.from_velocities(qd), None, external)
    driving = rows.from_velocities(tau - resistance(model, qd))
    armature = rows.from_velocities(model.armature)
    e, G = innovations(here, bodies(model), f, driving, armature)
    return rows.to_velocities(solve_UT(here.phi, here.H, G, e, rows.tree))
