"""JaxSim: its recursions, with its state object built in the call.

Building it makes more than the dynamics need, which XLA leaves out. JaxSim reads URDF
by a program of Gazebo's; given SDF it does not need that.
"""

from . import robot
from .names import GRAVITY
from .states import LINEAR_FIRST
from .with_jax import Peer


def build(options):
    import jax.numpy as jnp
    import jaxsim.api as js

    model = js.model.JaxSimModel.build_from_model_description(
        robot.as_sdf(robot.plain(options.urdf), options.floating),
        is_urdf=False,
        gravity=GRAVITY,
    )
    floating = options.floating

    def state(q, qd):
        velocity = {"velocity_representation": js.common.VelRepr.Body}
        base = {}
        if floating:
            base = {"base_position": q[:3], "base_quaternion": q[3:7]}
            base |= {"base_linear_velocity": qd[:3], "base_angular_velocity": qd[3:6]}
            q, qd = q[7:], qd[6:]
        joints = {"joint_positions": q, "joint_velocities": qd}
        return js.data.JaxSimModelData.build(model, **joints, **base, **velocity)

    def whole(base, joints):
        return jnp.concatenate([base, joints]) if floating else joints

    def inverse(q, qd, x):
        x = (
            {"base_acceleration": x[:6], "joint_accelerations": x[6:]}
            if floating
            else {"joint_accelerations": x}
        )
        return whole(*js.model.inverse_dynamics(model, state(q, qd), **x))

    def forward(q, qd, x):
        push = {"joint_forces": x}
        if floating:
            on_links = jnp.zeros((model.number_of_links(), 6), x.dtype).at[0].set(x[:6])
            push = {"joint_forces": x[6:], "link_forces": on_links}
        return whole(*js.model.forward_dynamics_aba(model, state(q, qd), **push))

    def mass(q):
        rest = jnp.zeros(model.dofs() + (6 if floating else 0), q.dtype)
        M = js.model.free_floating_mass_matrix(model, state(q, rest))
        return M if floating else M[6:, 6:]

    return Peer(tuple(model.joint_names()), inverse, forward, mass, LINEAR_FIRST)
