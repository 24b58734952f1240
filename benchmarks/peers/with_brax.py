"""Brax, generalized pipeline: forward dynamics as it makes a step, without constraints.

Brax has no inverse dynamics with accelerations: its bias forces and mass matrix are put
together.
"""

from . import with_mujoco
from .states import MUJOCO
from .with_jax import Peer


def build(options):
    from brax import kinematics
    from brax.generalized import dynamics, mass
    from brax.generalized.base import State
    from brax.io import mjcf

    there = with_mujoco.load(options.urdf, options.floating)
    system = mjcf.load_model(there)

    def state(q, qd):
        x, xd = kinematics.forward(system, q, qd)
        return dynamics.transform_com(system, State.init(q, qd, x, xd))

    def inverse(q, qd, x):
        s = state(q, qd)
        return mass.matrix(system, s) @ x - dynamics.forward(system, s, 0 * x)

    def forward(q, qd, x):
        s = mass.matrix_inv(system, state(q, qd), 0)
        return s.mass_mx_inv @ dynamics.forward(system, s, x)

    def mass_matrix(q):
        return mass.matrix(system, state(q, 0 * q[-system.qd_size() :]))

    names = with_mujoco.joint_names(there, options.floating)
    return Peer(tuple(names), inverse, forward, mass_matrix, MUJOCO)
