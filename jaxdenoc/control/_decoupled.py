"""Decoupled control in the diagonalised rates ν [J&R §8; MATH 7.6].

In ν̇ + C(θ, ν) = ε the Coriolis term does no work, νᵀ C = 0, so that a law for ε
acts on the energy ½ νᵀν as if every ν_i were a unit mass of its own.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._errors import ModelError
from .._jit import precise
from .._types import Joints, Position, Square
from ..dynamics import (
    factorize,
    frame_pose,
    gravity_forces,
    jacobian,
    kinetic_energy,
)
from ..model import Model
from ..spatial import Vec3, skew

Gain = Float[Array, ""] | Float[Array, " v"]


class RateFeedback(eqx.Module):
    """ε = -c ν, with gravity cancelled: `rate_feedback` makes one."""

    model: Model
    gain: Gain
    cancel_gravity: bool = eqx.field(static=True, default=True)

    def __call__(self, t, q: Position, qd: Joints) -> Joints:
        f = factorize(self.model, q)
        tau = f.joint_torques(-self.gain * f.total_rates(qd))
        return tau + gravity_forces(self.model, q) if self.cancel_gravity else tau


def rate_feedback(model: Model, gain, *, cancel_gravity: bool = True) -> RateFeedback:
    """Brakes the robot: ε = -c ν, that is τ = -m c mᵀ θ̇ [J&R Control 8.1].

    The kinetic energy falls as d/dt ½ νᵀν = -νᵀ c ν: for one `gain` c for all rates,
    exactly as e^{-2ct}, whatever the robot and its motion (friction in the joints, if
    the model has any, brakes further). A gain per rate, (nv,), is a diagonal c.
    """
    return RateFeedback(model, _gain(model, gain), cancel_gravity)


class SetPoint(eqx.Module):
    """Draws a link to a pose: `set_point` makes one."""

    model: Model
    target: Float[Array, "4 4"]
    weight: Float[Array, "12 12"]
    rate_gain: Gain
    link: int | str = eqx.field(static=True)

    def error(self, q: Position) -> Float[Array, "12"]:
        """e = Ŷ - Y(q), where Y stacks the link's position and its three axes."""
        return _stacked(self.target) - _stacked(frame_pose(self.model, q, self.link))

    @precise
    def lyapunov(self, q: Position, qd: Joints) -> Float[Array, ""]:
        """½ νᵀν + ½ eᵀ W e, which falls along every motion under this law."""
        e = self.error(q)
        return kinetic_energy(self.model, q, qd) + e @ self.weight @ e / 2

    @precise
    def __call__(self, t, q: Position, qd: Joints) -> Joints:
        f = factorize(self.model, q)
        braking = f.joint_torques(-self.rate_gain * f.total_rates(qd))
        R = frame_pose(self.model, q, self.link)[:3, :3]
        J = jacobian(self.model, q, self.link)
        drawing = J.T @ (_rates(R).T @ (self.weight @ self.error(q)))
        return braking + drawing + gravity_forces(self.model, q)


def set_point(
    model: Model,
    target,
    *,
    link: int | str | None = None,
    weight=1.0,
    rate_gain=1.0,
) -> SetPoint:
    """Draws a link or frame to the pose `target`, 4×4 in base axes [J&R Control 8.2].

        ε = -c₁ ν + ℓ Jᵀ B W e ,   e = Ŷ - Y ,   Ẏ = Bᵀ V_link

    with gravity cancelled: the corrected form of the printed law (MATH 14, J17).
    `weight` is a number, 12 of them (position, then the three axes) or a symmetric
    positive 12×12 matrix. ½ νᵀν + ½ eᵀWe falls at the rate -νᵀ c₁ ν, and the robot
    comes to rest where Jᵀ B W e = 0: at the target, unless an arm gets stuck in a
    singular posture or the target is out of its reach. `link` is the last one if not
    given.
    """
    dtype = model.mass.dtype
    target = jnp.asarray(target, dtype)
    if target.shape != (4, 4):
        raise ModelError(f"target has shape {target.shape}. Give a 4×4 pose.")
    weight = jnp.asarray(weight, dtype)
    if weight.ndim < 2:
        weight = jnp.diag(jnp.broadcast_to(weight, (12,)))
    if weight.shape != (12, 12):
        raise ModelError(
            f"weight has shape {weight.shape}. Give a number, 12 numbers or a 12×12 "
            "matrix."
        )
    link = model.n_links - 1 if link is None else link
    return SetPoint(model, target, weight, _gain(model, rate_gain), link)


def _gain(model: Model, gain) -> Gain:
    gain = jnp.asarray(gain, model.mass.dtype)
    if gain.shape not in ((), (model.nv,)):
        raise ModelError(
            f"A gain has shape {gain.shape}. Give one number, or {model.nv}, one for "
            f"each rate of model '{model.name}'."
        )
    return gain


def _stacked(pose: Float[Array, "4 4"]) -> Float[Array, "12"]:
    """Position, then the three axes, one after the other."""
    return jnp.concatenate([pose[:3, 3], pose[:3, :3].T.ravel()])


def _rates(R: Square) -> Float[Array, "12 6"]:
    """Bᵀ with Ẏ = Bᵀ V: ȯ = R v, and the axis R e_k changes by -(R e_k)~ R ω."""
    turn = [-skew(Vec3.of(R[:, k])).array @ R for k in range(3)]
    blocks = [[jnp.zeros_like(R), R], *([x, jnp.zeros_like(R)] for x in turn)]
    return jnp.block(blocks)
