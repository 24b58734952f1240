"""Forward dynamics."""

from collections.abc import Callable
from functools import cache, partial
from typing import Literal

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve

from .._jit import jitted
from .._linear import Pair, with_rule
from .._moves import Moves
from .._rules import closed_rules
from .._tiles import in_tiles
from .._types import Joints, Position, Spatial
from ..model import Model
from ..recursion import (
    bodies,
    given,
    innovations,
    lifted,
    on_manifold,
    posture,
    solve_U,
    solve_UT,
    wrenches,
)
from ..spatial import Wrench
from ._inverse import (
    gradient_of_work,
    inverse_dynamics,
    joint_forces_of,
    newton_euler,
)
from ._mass_matrix import mass_matrix
from ._parallel import chosen, forward_dynamics_parallel
from ._solve import solve, three_steps
from ._state import at_joints, check_state, resistance


@jitted("method", "refine")
def forward_dynamics(
    model: Model,
    q: Position,
    qd: Joints,
    tau: Joints,
    fext: Spatial | None = None,
    *,
    method: Literal["recursive", "parallel", "dense", "auto"] = "recursive",
    refine: int = 0,
) -> Joints:
    """The joint accelerations of given joint forces, θ̈ = ℳ⁻¹ (τ - C θ̇ - gravity).

    "recursive" is Saha's U D Uᵀ scheme in O(n), three sweeps that never form ℳ
    [Saha 1999 §5.2; MATH 6.1]. "parallel" makes each sweep a scan of depth O(log n),
    for one long robot on a wide machine [MATH 9]; it cannot do massless links. "dense"
    makes ℳ and takes its Cholesky factor, O(n³). "auto" is the one of the first two
    that was found to be faster for a robot of this length, alone or in a batch.
    Derivatives go by the recursion always.

    `refine` times θ̈ is corrected by what inverse dynamics finds wrong with it,
    θ̈ += ℳ⁻¹ (τ - ID(θ̈)), which helps where links differ by orders of magnitude, and
    can cost digits on long chains of equal ones [MATH 9.4].
    """
    check_state(model, q=q, qd=qd, tau=tau, fext=fext)
    if refine < 0:
        raise ValueError(f"refine is {refine}; it is a number of corrections.")
    if method == "dense":
        return _dense(model, q, qd, tau, fext, refine)
    if method not in ("recursive", "parallel", "auto"):
        names = "'recursive', 'parallel', 'dense' or 'auto'"
        raise ValueError(f"method is '{method}'; it can be {names}.")
    closed, plain = _way(chosen(method, "forward", model), refine)
    return (closed if closed_rules() else plain)(model, q, qd, tau, fext)


def _dense(model, q, qd, tau, fext, refine) -> Joints:
    """ℳ and its Cholesky factor."""
    factor, qdd = cho_factor(mass_matrix(model, q)), jnp.zeros_like(qd)
    for _ in range(1 + refine):
        left = tau - inverse_dynamics(model, q, qd, qdd, fext)
        qdd = qdd + cho_solve(factor, left)
    return qdd


def _recursive(model, q, qd, tau, fext, refine=0) -> Joints:
    """Outward the bias wrenches; inward U e = τ - bias, ê = D⁻¹ e; outward Uᵀ θ̈ = ê.

    Weight comes in with the last sweep, as an acceleration of the base. Among the
    wrenches its sum would grow inward, for G and D⁻¹ to take most of it away again:
    two digits of a long chain in float32.
    """
    rows = model.rows
    here = posture(model, q)
    external = None if fext is None else rows.from_bodies(Wrench.of(fext))
    rates = rows.from_velocities(qd)
    f = wrenches(model, here, rates, None, external, weight=False)
    driving = rows.from_velocities(tau - resistance(model, qd))
    armature = rows.from_velocities(model.armature)
    e, D, G = innovations(here, bodies(model), f, driving, armature)
    base = lifted(model, rates)
    qdd = rows.to_velocities(solve_UT(here.phi, here.H, G, e, rows.tree, base))
    for _ in range(refine):
        left = rows.from_velocities(tau - newton_euler(model, q, qd, qdd, fext))
        e = solve_U(here.phi, here.H, G, left, rows.tree) / D
        more = solve_UT(here.phi, here.H, G, e, rows.tree)
        qdd = qdd + rows.to_velocities(more)
    return qdd


@cache
def _way(method: str, refine: int) -> tuple[Callable, Callable]:
    """Forward dynamics with the closed rule, and without."""
    scans = partial(forward_dynamics_parallel, refine=refine)
    if method == "parallel":
        run = in_tiles(scans)
    else:
        sweeps = partial(_recursive, refine=refine)
        run = in_tiles(sweeps, alone=scans if method == "auto" else None)
    return with_rule(run, _derivative, keep=lambda at, qdd: (at, qdd)), run


@cache
def _derivative(moves: Moves) -> Pair:
    """By the implicit function τ = ID(θ, θ̇, θ̈) [MATH 10.1]: at constant θ̈,

        dθ̈ = ℳ⁻¹ (dτ - dID)

    Each map twice: as one program, and as a composition of what has its own rule.

    The second is never run; its derivative is what second order needs.
    """
    return Pair(
        in_tiles(partial(_tangent, moves), like=partial(_tangent_by_rules, moves)),
        in_tiles(partial(_adjoint, moves), like=partial(_adjoint_by_rules, moves)),
    )


def _tangent(moves: Moves, at, slopes: list) -> Joints:
    """ℳ⁻¹ (dτ - dID)."""
    (model, q, *_), qdd = args, _ = at

    def residual(leaves):
        model, q, qd, tau, fext = moves.put(args, leaves)
        return tau - newton_euler(on_manifold(model), q, qd, qdd, fext)

    _, slope = jax.jvp(residual, (moves.of(args),), (slopes,))
    return three_steps(model, q, slope)


def _adjoint(moves: Moves, at, cotangent: Joints) -> list:
    """The gradient of μᵀ (τ - ID) for μ = ℳ⁻¹ λ.

    The inward half of the solve is a Riccati sweep; the outward half is the sweep for
    the virtual twists of μ, which the gradient needs anyway.
    """
    (model, held, *_), qdd = args, _ = at
    rows = model.rows

    def arguments(leaves):
        model, q, qd, tau, fext = moves.put(args, leaves)
        model = on_manifold(model)
        return given(model, q, qd, qdd, fext, held), at_joints(model, qd, qdd) - tau

    here, b = posture(model, held), rows.from_velocities(-cotangent)
    armature = rows.from_velocities(model.armature)
    e, _, G = innovations(here, bodies(model), None, b, armature)
    return gradient_of_work(model, here, arguments, moves.of(args), e, G)


def _tangent_by_rules(moves: Moves, at, slopes: list) -> Joints:
    (model, q, *_), _ = at
    residual, leaves = _residual(moves, at)
    return solve(model, q, jax.jvp(residual, (leaves,), (slopes,))[1])


def _adjoint_by_rules(moves: Moves, at, cotangent: Joints) -> list:
    (model, q, *_), _ = at
    residual, leaves = _residual(moves, at)
    return jax.vjp(residual, leaves)[1](solve(model, q, cotangent))[0]


def _residual(moves: Moves, at):
    args, qdd = at

    def residual(leaves):
        model, q, qd, tau, fext = moves.put(args, leaves)
        return tau - joint_forces_of(model, q, qd, qdd, fext)

    return residual, moves.of(args)
