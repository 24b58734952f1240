"""frax: its vectorised recursion for inverse dynamics; forward by solving with ℳ."""

import tempfile
from pathlib import Path

from . import robot
from .names import GRAVITY
from .states import MUJOCO
from .with_jax import Peer


def build(options):
    import jax.numpy as jnp

    there = _load(options)
    up = jnp.array([0.0, 0.0, GRAVITY, 0.0, 0.0, 0.0])

    def inverse(q, qd, x):
        return there.rnea(q, qd, x, up, None)

    def forward(q, qd, x):
        return there.forward_dynamics(q, qd, x, None)

    names = tuple(there.joint_names)[6 if options.floating else 0 :]
    return Peer(names, inverse, forward, there.mass_matrix, MUJOCO)


def _load(options):
    from frax import Robot

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "robot.urdf"
        root = robot.with_inertias(robot.plain(options.urdf))
        file.write_text(robot.text(root))
        base = "quaternion" if options.floating else None
        return Robot(str(file), floating_base=base)
