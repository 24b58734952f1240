"""adam: written for a floating base, which is held still for an arm.

A fixed base is not offered: its forward dynamics is put together from the joints' part
of the mass matrix and the bias forces. So is inverse dynamics, for want of a recursion
that takes accelerations.
"""

from . import robot
from .names import GRAVITY
from .states import LINEAR_FIRST
from .with_jax import Peer


def build(options):
    import jax.numpy as jnp
    import jax.scipy as jsp
    from adam import Representations
    from adam.jax import KinDynComputations

    floating, first = options.floating, 0 if options.floating else 6
    there = KinDynComputations(
        robot.text(robot.plain(options.urdf)),
        list(options.names),
        dtype=options.dtype,
        gravity=jnp.array([0, 0, -GRAVITY, 0, 0, 0], options.dtype),
    )
    # It names a device in every call of `jnp.asarray`, which jax 0.10 refuses in a jit.
    there.rbdalgos.math.factory._device = None
    there.set_frame_velocity_representation(Representations.BODY_FIXED_REPRESENTATION)

    def split(q, qd):
        """Base transform, joints, base twist, rates."""
        if not floating:
            return jnp.eye(4, dtype=q.dtype), q, jnp.zeros(6, q.dtype), qd
        return _transform(q[:7]), q[7:], qd[:6], qd[6:]

    def mass(q):
        base, joints, _, _ = split(q, q[-len(options.names) :])
        return there.mass_matrix(base, joints)[first:, first:]

    def inverse(q, qd, x):
        return mass(q) @ x + there.bias_force(*split(q, qd))[first:]

    def forward(q, qd, x):
        if floating:
            on_base = {there.rbdalgos.root_link: x[:6]}
            return there.aba(*split(q, qd), x[6:], on_base)
        push = x - there.bias_force(*split(q, qd))[first:]
        return jsp.linalg.solve(mass(q), push, assume_a="pos")

    return Peer(options.names, inverse, forward, mass, LINEAR_FIRST)


def _transform(pose):
    """A homogeneous transform of a position and a quaternion, scalar first."""
    import jax.numpy as jnp

    w, x, y, z = pose[3:]
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y), pose[0]],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x), pose[1]],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y), pose[2]],
        [0.0, 0.0, 0.0, 1.0],
    ]
    return jnp.stack([jnp.stack([jnp.asarray(e, pose.dtype) for e in r]) for r in rows])
