"""Inverse dynamics, and what follows from it."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import jax.tree as jt

from .._jit import jitted
from .._linear import Pair, linear
from .._moves import Moves, moving
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
from ..spatial import Wrench
from ._state import check_state, resistance


@jitted()
def inverse_dynamics(
    model: Model, q: Position, qd: Joints, qdd: Joints, fext: Spatial | None = None
) -> Joints:
    """The joint forces of a motion, τ = ℳ θ̈ + C θ̇ + gravity + friction, in O(n).

    Recursive Newton-Euler, which is Saha's RIDIM [Saha 1999 §5.1; MATH 3.1], with
    armature, damping and friction of the joints. `fext`: (n, 6) wrenches on the links,
    body axes, about the body origin.
    """
    check_state(model, q=q, qd=qd, qdd=qdd, fext=fext)
    return joint_forces_of(model, q, qd, qdd, fext)


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
    return (_closed if closed_rules() else _in_tiles)(model, q, qd, qdd, fext)


def newton_euler(model, q, qd, qdd, fext) -> Joints:
    rows = model.rows
    here = posture(model, q)
    f = wrenches(
        model,
        here,
        rows.from_velocities(qd),
        None if qdd is None else rows.from_velocities(qdd),
        None if fext is None else rows.from_bodies(Wrench.of(fext)),
    )
    tau = rows.to_velocities(joint_forces(here.phi, here.H, f, rows.tree))
    return tau + at_joints(model, qd, qdd)


def at_joints(model, qd, qdd) -> Joints:
    drag = resistance(model, qd)
    return drag if qdd is None else model.armature * qdd + drag


_in_tiles = in_tiles(newton_euler)


@jax.custom_jvp
def _closed(model, q, qd, qdd, fext) -> Joints:
    return _in_tiles(model, q, qd, qdd, fext)


def _rule(at, tangents):
    """Forward mode is that of the sweeps, reverse mode the gradient of virtual work."""
    moves, slopes = moving(at, tangents)
    tau = _closed(*at)
    return tau, linear(_derivative(moves), at, slopes, like=tau)


_closed.defjvp(_rule, symbolic_zeros=True)


@cache
def _derivative(moves: Moves) -> Pair:
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
