"""The condition number along a motion, without eigenvalues."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import Position, Scalar
from ..dynamics import factorize
from ..model import Model
from ._ratios import condition_number, diagonal_ratio, mass_matrix_diagonal


class ConditionMonitor(eqx.Module):
    """The scaled diagonal ratio δ_s = α δ, which is κ where the motion began [MATH 8].

    Good to some per cent near the first configuration, and off by a factor of about
    three in a large swing of a short chain.
    """

    alpha: Scalar
    safe: bool = eqx.field(static=True, default=False)

    @classmethod
    def start(
        cls,
        model: Model,
        q0: Position,
        *,
        safe: bool = False,
        method: Literal["eigenvalues", "lanczos"] = "eigenvalues",
    ) -> "ConditionMonitor":
        """α = κ / δ at q0, with the κ and the δ of these options."""
        kappa = condition_number(model, q0, method=method)
        return cls(kappa / diagonal_ratio(model, q0, safe=safe), safe)

    def estimate(self, model: Model, q: Position) -> Float[Array, ""]:
        """κ at q, about, in O(n)."""
        return self.alpha * diagonal_ratio(model, q, safe=self.safe)


class Condition(eqx.Module):
    """What a monitored motion tells of its mass matrix, one row per time watched."""

    t: Float[Array, "*batch m"]
    diagonal_ratio: Float[Array, "*batch m"]  # δ, of the first and the last joint
    safe_ratio: Float[Array, "*batch m"]  # of the largest and the smallest on it
    pivot_ratio: Float[Array, "*batch m"]  # ρ, of the D of ℳ = U D Uᵀ
    estimate: Float[Array, "*batch m"]  # δ_s = α δ: κ, about


def along(
    model: Model, t: Float[Array, " k"], q: Float[Array, "k q"], every: int
) -> Condition:
    """The condition at the first sample and at every `every`-th after it."""
    t, q = t[::every], q[::every]
    alpha = ConditionMonitor.start(model, q[0], method="lanczos").alpha

    def at(q):
        diagonal, D = mass_matrix_diagonal(model, q), factorize(model, q).D
        delta = diagonal[0] / diagonal[-1]
        return delta, _spread(diagonal), _spread(D), alpha * delta

    return Condition(t, *jax.vmap(at)(q))


def stride(monitor: bool | int, default: int) -> int:
    """Every how many samples `monitor` asks for; 0 is never."""
    every = default if monitor is True else int(monitor)
    if every < 0:
        raise ValueError(
            f"monitor is {monitor}; it can be True, False or every how many samples."
        )
    return every


def _spread(x):
    return jnp.max(x) / jnp.min(x)
