"""Inverse dynamics from its three sweeps, whichever way these are done."""

from collections.abc import Callable

from .._types import Joints
from ..spatial import Wrench
from ._state import at_joints


def newton_euler_by(
    posture: Callable, wrenches: Callable, joint_forces: Callable
) -> Callable[..., Joints]:
    """τ of (model, q, θ̇, θ̈, f_ext), with `None` for zero: where the links are, which
    wrenches their motion needs, and what these ask of the joints [MATH 3.1]."""

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

    return newton_euler
