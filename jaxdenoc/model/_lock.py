"""Joints that stop moving."""

from collections.abc import Mapping
from dataclasses import replace

import equinox as eqx
import numpy as np

from .._errors import ModelError
from .._types import Number
from ._build import build, links_of
from ._check import LIMITS
from ._model import Model


def lock(model: Model, joints: Mapping[str, Number]) -> Model:
    """The model with these joints held at these values: their links become frames.

    The mass of a locked link is merged into its parent. The coordinates of the new
    model are those of the joints that are left, in `joint_names` order.
    """
    unknown = [s for s in joints if s not in model.joint_names]
    if unknown:
        raise ModelError(
            f"Model '{model.name}' has no joint '{unknown[0]}' to lock. Its joints "
            f"are {', '.join(model.joint_names)}."
        )
    links = []
    for link in links_of(model):
        if link.joint_name in joints and link.kind != "fixed":
            if link.kind == "free":
                raise ModelError(
                    f"Joint '{link.joint_name}' is the free base. Load the robot with "
                    "floating_base=False to fix it."
                )
            q = float(joints[link.joint_name])
            R, t = np.asarray(link.rotation), np.asarray(link.translation)
            axis = np.asarray(link.axis)
            slide = {"prismatic": 1.0, "helical": link.pitch}.get(link.kind, 0.0)
            turn = 0.0 if link.kind == "prismatic" else q
            link = replace(
                link,
                kind="fixed",
                rotation=R @ _rodrigues(axis, turn),
                translation=t + R @ axis * (slide * q),
            )
        links.append(link)
    locked = build(
        links,
        gravity=np.asarray(model.gravity, float),
        name=model.name,
        base=model.base_name,
        dtype=model.mass.dtype,
    )
    kept = np.array([model.velocity_names.index(s) for s in locked.velocity_names])

    def by_velocity(m: Model):  # a free base may have these too, which no Link holds
        return m.armature, m.damping, m.friction, *(getattr(m, s) for s in LIMITS)

    numbers = *(x[kept] for x in by_velocity(model)), model.friction_speed
    return eqx.tree_at(lambda m: (*by_velocity(m), m.friction_speed), locked, numbers)


def _rodrigues(axis: np.ndarray, angle: float) -> np.ndarray:
    x, y, z = axis
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K
