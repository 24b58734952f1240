"""The differential equation of motion, in θ̇, ν or ξ."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Joints, Position
from ..dynamics import diagonal_acceleration, factorize, forward_dynamics
from ..model import Model, configuration_rate
from ._torque import Torque


class Motion(eqx.Module):
    """The differential equation, for the state (q, x) where x are the rates."""

    model: Model
    torque: Torque
    rates: Literal["qd", "nu", "xi"] = eqx.field(static=True)

    def __call__(self, t, state, moves):
        """The rates of the state; zero of a motion that was stopped at its start."""
        (q, x), normalized = state, self.rates == "nu"
        q, qd = self.of(state)
        tau = self.torque(t, q, qd)
        if self.rates == "qd":
            xd = forward_dynamics(self.model, q, qd, tau)
        else:
            xd = diagonal_acceleration(self.model, q, x, tau, normalized=normalized)
        rate = configuration_rate(self.model, q, qd), xd
        return jax.tree.map(lambda x: jnp.where(moves, x, 0), rate)

    def state(self, q: Position, qd: Joints):
        if self.rates == "qd":
            return q, qd
        f = factorize(self.model, q)
        return q, f.total_rates(qd, normalized=self.rates == "nu")

    def of(self, state) -> tuple[Position, Joints]:
        q, x = state
        if self.rates == "qd":
            return q, x
        f = factorize(self.model, q)
        return q, f.joint_rates(x, normalized=self.rates == "nu")
