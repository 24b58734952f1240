"""Forward dynamics."""

from typing import Literal

import jax
import jax.numpy as jnp
import jax.tree as jt
from jax.scipy.linalg import cho_factor, cho_solve

from .._jit import jitted
from .._moves import moving
from .._rules import closed_rules
from .._tiles import in_tiles
from .._types import Joints, Position, Spatial
from ..model import Model
from ..recursion import bodies, innovations, posture, solve_UT, wrenches
from ..spatial import Wrench
from ._inverse import inverse_dynamics, joint_forces_of
from ._mass_matrix import mass_matrix
from ._solve import Elimination, solve_mass_matrix
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
        run = _closed if closed_rules() else _in_tiles
        return run(model, q, qd, tau, fext)
    if method == "dense":
        bias = inverse_dynamics(model, q, qd, jnp.zeros_like(qd), fext)
        return cho_solve(cho_factor(mass_matrix(model, q)), tau - bias)
    raise ValueError(f"method is '{method}'; it can be 'recursive' or 'dense'.")


def _with_elimination(model, q, qd, tau, fext) -> tuple[Joints, Elimination]:
    """Outward the bias wrenches; inward U e = τ - bias, ê = D⁻¹ e; outward Uᵀ θ̈ = ê."""
    rows = model.rows
    here = posture(model, q)
    external = None if fext is None else rows.from_bodies(Wrench.of(fext))
    f = wrenches(model, here, rows.from_velocities(qd), None, external)
    driving = rows.from_velocities(tau - resistance(model, qd))
    armature = rows.from_velocities(model.armature)
    e, D, G = innovations(here, bodies(model), f, driving, armature)
    qdd = rows.to_velocities(solve_UT(here.phi, here.H, G, e, rows.tree))
    return qdd, Elimination(here.phi, here.H, D, G)


def _recursive(model, q, qd, tau, fext) -> Joints:
    return _with_elimination(model, q, qd, tau, fext)[0]


_in_tiles = in_tiles(_recursive)
_both_in_tiles = in_tiles(_with_elimination)


@jax.custom_jvp
def _closed(*args) -> Joints:
    return _in_tiles(*args)


@jax.custom_jvp
def _both(*args) -> tuple[Joints, Elimination]:
    return _both_in_tiles(*args)


def _rule(at, tangents):
    """By the implicit function τ = ID(θ, θ̇, θ̈) [MATH 10.1].

        dθ̈ = ℳ⁻¹ (dτ - dID)   at constant θ̈

    with the factors that forward dynamics has found. They are not differentiated: the
    derivative of ℳ⁻¹, for second order, is again one by the implicit function.
    """
    moves, slopes = moving(at, tangents)
    qdd, found = _both(*at)

    def residual(leaves):
        model, q, qd, tau, fext = moves.put(at, leaves)
        return tau - joint_forces_of(model, q, qd, qdd, fext)

    _, slope = jax.jvp(residual, (moves.of(at),), (slopes,))
    model, q, *_ = at
    return (qdd, found), solve_mass_matrix(model, q, found, slope)


def _rule_of_closed(at, tangents):
    (qdd, _), slope = _rule(at, tangents)
    return qdd, slope


def _rule_of_both(at, tangents):
    out, slope = _rule(at, tangents)
    return out, (slope, jt.map(jnp.zeros_like, out[1]))


_closed.defjvp(_rule_of_closed, symbolic_zeros=True)
_both.defjvp(_rule_of_both, symbolic_zeros=True)
