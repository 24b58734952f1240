"""Joints that move nothing, and so have no acceleration."""

import numpy as np

from ..model import Model


def massless_joints(model: Model) -> list[str]:
    """The joints with neither inertia beyond them nor armature: ℳ is singular there.

    For the last link of a branch the test is exact. Further in it asks only whether
    there is any inertia beyond, which can move off the axis.
    """
    mass, com = np.asarray(model.mass, float), np.asarray(model.com, float)
    inertia, axis = np.asarray(model.inertia, float), np.asarray(model.axis, float)
    any_inertia = mass + np.trace(inertia, axis1=1, axis2=2)
    beyond = model.tree.ancestry @ any_inertia - any_inertia  # of the links after i
    armature = np.asarray(model.armature, float)
    names = []
    for i, kind in enumerate(model.joint_kinds):
        if kind in ("revolute", "continuous"):
            arm = np.cross(axis[i], com[i])
            own = axis[i] @ inertia[i] @ axis[i] + mass[i] * arm @ arm
            small = 1e-14 * (np.trace(inertia[i]) + mass[i] * com[i] @ com[i])
        else:
            own, small = (any_inertia if kind == "helical" else mass)[i], 0.0
        k = model.rows.velocity[model.rows.body[i]]
        if own <= small and beyond[i] <= 0 and armature[k] == 0:
            names.append(model.joint_names[i])
    return names
