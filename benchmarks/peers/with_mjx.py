"""MJX: the stages of MuJoCo in JAX."""

from . import with_mujoco
from .states import MUJOCO
from .with_jax import Peer


def build(options):
    from mujoco import mjx

    there = with_mujoco.load(options.urdf, options.floating)
    model = mjx.put_model(there)
    rest = mjx.make_data(model)

    def inverse(q, qd, x):
        data = rest.replace(qpos=q, qvel=qd, qacc=x)
        return mjx.inverse(model, data).qfrc_inverse

    def forward(q, qd, x):
        data = rest.replace(qpos=q, qvel=qd, qfrc_applied=x)
        return mjx.forward(model, data).qacc

    def mass(q):
        return mjx.full_m(model, mjx.fwd_position(model, rest.replace(qpos=q)))

    names = with_mujoco.joint_names(there, options.floating)
    return Peer(tuple(names), inverse, forward, mass, MUJOCO)
