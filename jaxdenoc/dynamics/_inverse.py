"""Inverse dynamics, and what follows from it."""

import jax.numpy as jnp

from .._jit import jitted
from .._tiles import in_tiles
from .._types import Joints, Position, Spatial
from ..model import Model
from ..recursion import joint_forces, posture, wrenches
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
    return (
        _rigid(model, q, qd, qdd, fext) + model.armature * qdd + resistance(model, qd)
    )


@jitted()
def bias_forces(model: Model, q: Position, qd: Joints) -> Joints:
    """What the joints need at θ̈ = 0: C θ̇ + gravity + friction."""
    check_state(model, q=q, qd=qd)
    return _rigid(model, q, qd, None, None) + resistance(model, qd)


@jitted()
def gravity_forces(model: Model, q: Position) -> Joints:
    """What the joints need to hold the robot still, ID(q, 0, 0)."""
    check_state(model, q=q)
    return _rigid(model, q, jnp.zeros(model.nv, q.dtype), None, None)


@in_tiles
def _rigid(model, q, qd, qdd, fext) -> Joints:
    rows = model.rows
    here = posture(model, q)
    f = wrenches(
        model,
        here,
        rows.from_velocities(qd),
        None if qdd is None else rows.from_velocities(qdd),
        None if fext is None else rows.from_bodies(Wrench.of(fext)),
    )
    return rows.to_velocities(joint_forces(here.phi, here.H, f, rows.tree))
