"""Inverse dynamics, and what follows from it."""

from functools import cache, partial
from typing import Literal

import jax
import jax.numpy as jnp
import jax.tree as jt

from .._jit import jitted
from .._linear import Pair, with_rule
from .._moves import Moves
from .._rules import closed_rules
from .._tiles import in_tiles
from .._types import Joints, Position, Spatial
from ..model import Model
from ..recursion import (
    given,
    joint_forces,
    on_manifold,
    posture,
    work_gradient,
    wrenches,
)
from ._newton_euler import newton_euler_by
from ._parallel import chosen, inverse_dynamics_parallel
from ._state import at_joints, check_state


@jitted("method")
def inverse_dynamics(
    model: Model,
    q: Position,
    qd: Joints,
    qdd: Joints,
    fext: Spatial | None = None,
    *,
    method: Literal["recursive", "parallel", "auto"] = "recursive",
) -> Joints:
    """The joint forces of a motion, τ = ℳ θ̈ + C θ̇ + gravity + friction, in O(n).

    Recursive Newton-Euler, which is Saha's RIDIM [Saha 1999 §5.1; MATH 3.1], with
    armature, damping and friction of the joints. `fext`: (n, 6) wrenches on the links,
    body axes, about the body origin. "parallel" has the same numbers from scans of
    depth O(log n) [MATH 9.1]; "auto" is that for one robot so long that it was found
    to be faster, and the recursion otherwise. Derivatives go by the recursion always.
    """
    check_state(model, q=q, qd=qd, qdd=qdd, fext=fext)
    if method not in _WAYS:
        names = ", ".join(f"'{name}'" for name in _WAYS)
        raise ValueError(f"method is '{method}'; it can be {names}.")
    return _by(_WAYS[chosen(method, "inverse", model)], model, q, qd, qdd, fext)


@jitted()
def bias_forces(model: Model, q: Position, qd: Joints) -> Joints:
    """What the joints need at θ̈ = 0: C θ̇ + gravity + friction."""
    check_state(model, q=q, qd=qd)
    return joint_forces_of(model, q, qd, None, None)


@jitted()
def gravity_forces(model: Model, q: Position) -> Joints:
    """What the joints need to hold the robot still, ID(q, 0, 0)."""
    check_state(model, q=q)
    return joint_forces_of(model, q, jnp.zeros(model.nv, q.dtype), None, None)


def joint_forces_of(model, q, qd, qdd, fext) -> Joints:
    """Inverse dynamics, with `None` for zero, by the rules that are in force."""
    return _by(_WAYS["recursive"], model, q, qd, qdd, fext)


def _by(way, *args) -> Joints:
    closed, plain = way
    return (closed if closed_rules() else plain)(*args)


newton_euler = newton_euler_by(posture, wrenches, joint_forces)


@cache
def _derivative(moves: Moves) -> Pair:
    """Forward mode is that of the sweeps, reverse mode the gradient of virtual work."""
    return Pair(in_tiles(partial(_tangent, moves)), in_tiles(partial(_adjoint, moves)))


def _tangent(moves: Moves, at, slopes: list) -> Joints:
    def along(leaves):
        model, *state = moves.put(at, leaves)
        return newton_euler(on_manifold(model), *state)

    return jax.jvp(along, (moves.of(at),), (slopes,))[1]


def _adjoint(moves: Moves, at, mu: Joints) -> list:
    model, held, *_ = at

    def arguments(leaves):
        model, q, qd, qdd, fext = moves.put(at, leaves)
        model = on_manifold(model)
        return given(model, q, qd, qdd, fext, held), at_joints(model, qd, qdd)

    here, rates = posture(model, held), model.rows.from_velocities(mu)
    return gradient_of_work(model, here, arguments, moves.of(at), rates)


def gradient_of_work(model, here, arguments, leaves, e, G=None) -> list:
    """Of μᵀτ, with respect to the leaves of which `arguments` makes what τ is made of:
    what the sweeps are given, and what the joints add by themselves."""
    (rows, _), back = jax.vjp(arguments, leaves)
    of_rows, mu = work_gradient(model, here, rows, e, G)
    return back((of_rows, model.rows.to_velocities(mu)))[0]


def state_gradient(model, q, qd, qdd, fext, mu) -> list:
    """The gradient of μᵀτ with respect to q, θ̇ and θ̈."""
    at = model, q, qd, qdd, fext
    still = jt.map(lambda _: False, at)
    which = jt.leaves((still[0], True, True, True, still[4]))
    return _adjoint(Moves(jt.structure(at), tuple(which)), at, mu)


_RUNS = {
    "recursive": in_tiles(newton_euler),
    "parallel": in_tiles(inverse_dynamics_parallel),
    "auto": in_tiles(newton_euler, alone=inverse_dynamics_parallel),
}
_WAYS = {name: (with_rule(run, _derivative), run) for name, run in _RUNS.items()}
