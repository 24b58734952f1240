"""Configurations: the neutral one, random ones, and steps between them.

A free base makes the configuration space curved: q has a quaternion, and a step `dq`
is a body twist, as `qd` is.
"""

import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, PRNGKeyArray

from .._jit import jitted
from .._types import Joints, Position
from ..spatial import _quaternion as quaternion
from ._model import Model


def neutral(model: Model) -> Position:
    """Zero, and the identity for a free base."""
    q = jnp.zeros(model.nq, model.mass.dtype)
    return q.at[3].set(1.0) if model.floating_base else q


@jitted()
def integrate(model: Model, q: Position, dq: Joints) -> Position:
    """q moved by dq: q + dq, and for a free base its pose times exp(dq)."""
    if not model.floating_base:
        return q + dq
    turn, slide = quaternion.exponential(dq[:3], dq[3:6])
    p = quaternion.normalized(q[3:7])
    return jnp.concatenate(
        [
            q[:3] + quaternion.rotate(p, slide),
            quaternion.normalized(quaternion.multiply(p, turn)),
            q[7:] + dq[6:],
        ]
    )


@jitted()
def difference(model: Model, q0: Position, q1: Position) -> Joints:
    """The dq that `integrate` needs to go from q0 to q1."""
    if not model.floating_base:
        return q1 - q0
    back = quaternion.conjugate(quaternion.normalized(q0[3:7]))
    turn = quaternion.multiply(back, quaternion.normalized(q1[3:7]))
    w, v = quaternion.logarithm(turn, quaternion.rotate(back, q1[:3] - q0[:3]))
    return jnp.concatenate([w, v, q1[7:] - q0[7:]])


@jitted()
def configuration_rate(model: Model, q: Position, qd: Joints) -> Position:
    """dq/dt for the velocities qd: qd itself, but for a free base."""
    if not model.floating_base:
        return qd
    p = q[3:7]
    spin = quaternion.multiply(p, jnp.concatenate([jnp.zeros_like(qd[:1]), qd[:3]]))
    travel = quaternion.rotate(quaternion.normalized(p), qd[3:6])
    return jnp.concatenate([travel, spin / 2, qd[6:]])


@jitted()
def random_state(model: Model, key: PRNGKeyArray | Array) -> tuple[Position, Joints]:
    """q within the limits (2π or 2 m wide where they are open), qd standard normal."""
    of_q, of_base, of_qd = jr.split(key, 3)
    dtype = model.mass.dtype
    qd = jr.normal(of_qd, (model.nv,), dtype)
    sliding = [k == "prismatic" for k in model.joint_kinds]
    reach = jnp.where(jnp.array(sliding), 1.0, jnp.pi).astype(dtype)
    if model.floating_base:
        reach = jnp.concatenate([jnp.ones(6, dtype), reach[1:]])
    low, high = model.q_lower, model.q_upper
    has_low, has_high = jnp.isfinite(low), jnp.isfinite(high)
    lower = jnp.where(has_low, low, jnp.where(has_high, high - 2 * reach, -reach))
    upper = jnp.where(has_high, high, jnp.where(has_low, low + 2 * reach, reach))
    q = lower + (upper - lower) * jr.uniform(of_q, (model.nv,), dtype)
    if model.floating_base:
        p = quaternion.normalized(jr.normal(of_base, (4,), dtype))
        q = jnp.concatenate([q[:3], p, q[6:]])
    return q, qd
