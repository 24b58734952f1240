"""Roll, pitch and yaw, the angles that URDF writes rotations in."""

from collections.abc import Sequence

import numpy as np


def rotation(rpy: Sequence[float]) -> np.ndarray:
    """About the fixed axes x, y, z in turn: R = Rz(yaw) Ry(pitch) Rx(roll)."""
    roll, pitch, yaw = rpy
    return _about(2, yaw) @ _about(1, pitch) @ _about(0, roll)


def angles(R: np.ndarray) -> tuple[float, float, float]:
    """Roll, pitch and yaw of a rotation.

    Each angle is read off what the ones before it leave over. That is exact to
    rounding even where roll and yaw turn about one axis, at pitch = ±90°.
    """
    yaw = np.arctan2(R[1, 0], R[0, 0])
    R = _about(2, -yaw) @ R
    pitch = np.arctan2(-R[2, 0], R[0, 0])
    R = _about(1, -pitch) @ R
    return float(np.arctan2(R[2, 1], R[1, 1])), float(pitch), float(yaw)


def _about(axis: int, angle: float) -> np.ndarray:
    j, k = (axis + 1) % 3, (axis + 2) % 3
    R = np.eye(3)
    R[j, j] = R[k, k] = np.cos(angle)
    R[k, j] = np.sin(angle)
    R[j, k] = -R[k, j]
    return R
