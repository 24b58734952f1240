"""The two laws that everything else is compared with."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Joints, Position
from ..dynamics import check_state, gravity_forces, inverse_dynamics
from ..model import Model, difference
from ._decoupled import Gain, _gain


class ComputedTorque(eqx.Module):
    """Inverse dynamics of a corrected acceleration: `computed_torque` makes one."""

    model: Model
    reference: Callable
    kp: Gain
    kd: Gain

    def __call__(self, t, q: Position, qd: Joints) -> Joints:
        goal, rate, acceleration = self.reference(t)
        behind = difference(self.model, q, goal)
        qdd = acceleration + self.kp * behind + self.kd * (rate - qd)
        return inverse_dynamics(self.model, q, qd, qdd)


def computed_torque(model: Model, reference: Callable, *, kp, kd) -> ComputedTorque:
    """Follows `reference`: the error obeys ë + kd ė + kp e = 0, joint by joint.

    `reference(t)` gives q alone, from which rates and accelerations are taken by
    autodiff, or (q, qd, qdd). Robots with a free base need the latter.
    """
    sample = jax.eval_shape(reference, jnp.zeros((), model.mass.dtype))
    if isinstance(sample, tuple):
        check_state(model, q=sample[0], qd=sample[1], qdd=sample[2])
        return ComputedTorque(model, reference, _gain(model, kp), _gain(model, kd))
    check_state(model, q=sample, qd=sample)

    def with_rates(t):
        def rate(t):
            return jax.jvp(reference, (t,), (jnp.ones_like(t),))

        (q, qd), (_, qdd) = jax.jvp(rate, (t,), (jnp.ones_like(t),))
        return q, qd, qdd

    return ComputedTorque(model, with_rates, _gain(model, kp), _gain(model, kd))


class PDGravity(eqx.Module):
    """Springs and dampers at the joints, weightless: `pd_gravity` makes one."""

    model: Model
    goal: Position
    kp: Gain
    kd: Gain

    def __call__(self, t, q: Position, qd: Joints) -> Joints:
        behind = difference(self.model, q, self.goal)
        return self.kp * behind - self.kd * qd + gravity_forces(self.model, q)


def pd_gravity(model: Model, goal: Position, *, kp, kd) -> PDGravity:
    """τ = kp (goal - q) - kd θ̇ + gravity: comes to rest at `goal` from anywhere."""
    goal = jnp.asarray(goal, model.mass.dtype)
    check_state(model, q=goal)
    return PDGravity(model, goal, _gain(model, kp), _gain(model, kd))
