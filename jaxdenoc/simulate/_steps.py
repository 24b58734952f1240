"""Steps: the state from t to t + h, under joint forces that hold still meanwhile.

An integrator says in which rates x its steps are made, θ̇ or the ν of Jain and
Rodriguez, and how one step goes. In ν the kinetic energy is ½ νᵀν and the Coriolis term
does no work, νᵀC = 0, which is what the last three of them are made to keep [MATH 12].
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._types import Joints, Position
from ..dynamics import (
    diagonal_coriolis_matrix,
    diagonal_motion,
    factorize,
    forward_dynamics,
    gravity_forces,
    resistance,
)
from ..model import Model, configuration_rate, integrate
from ..spatial import _quaternion as quaternion
from ._fixed_point import fixed_point

NODES, WEIGHTS = np.polynomial.legendre.leggauss(5)


class Integrator(NamedTuple):
    """`step(model, q, x, tau, h)` gives q, x and whether its equations were solved."""

    begin: Callable[..., Any]  # (model, q, θ̇) -> x
    rates: Callable[..., Any]  # (model, q, x) -> θ̇
    step: Callable[..., Any]


def semi_implicit(model: Model, q, qd, tau, h):
    """θ̇₁ = θ̇ + h θ̈(θ, θ̇) ,   θ₁ = θ + h θ̇₁."""
    qd = qd + h * forward_dynamics(model, q, qd, tau)
    return integrate(model, q, h * qd), qd, True


def rk4(model: Model, q, qd, tau, h):
    """Runge and Kutta's of fourth order, with τ held.

    A loop over the four stages, weights 1 2 2 1 and halves of a step between them, so
    that forward dynamics stands once in the program.
    """

    def stage(carry, coefficients):
        (dq, dqd), (sum_q, sum_qd) = carry
        ahead, weight = coefficients
        q1, qd1 = q + ahead * dq, qd + ahead * dqd
        dq = configuration_rate(model, q1, qd1)
        dqd = forward_dynamics(model, q1, qd1, tau)
        return ((dq, dqd), (sum_q + weight * dq, sum_qd + weight * dqd)), None

    zero = jnp.zeros_like(q), jnp.zeros_like(qd)
    ahead = jnp.array([0, 0.5, 0.5, 1], q.dtype) * h
    weights = jnp.array([1, 2, 2, 1], q.dtype) * (h / 6)
    (_, (dq, dqd)), _ = lax.scan(stage, (zero, zero), (ahead, weights))
    return _unit(model, q + dq), qd + dqd, True


def _unit(model: Model, q: Position) -> Position:
    """q with the quaternion of a free base back on the sphere."""
    if not model.floating_base:
        return q
    return jnp.concatenate([q[:3], quaternion.normalized(q[3:7]), q[7:]])


def cayley(model: Model, q, nu, tau, h):
    """Half a kick, a free flight that turns ν, half a kick.

    The flight is an explicit midpoint rule for θ and A, and Cayley's rotation of ν,

        (1 + ½hA) ν_m = ν₀ ,   ν₁ = 2 ν_m - ν₀ = (1 + ½hA)⁻¹ (1 - ½hA) ν₀

    which keeps ½ νᵀν, because A = A(θ_m, ν_m) is skew. Kicks are by ε.
    """
    nu = _kick(model, q, nu, tau, h / 2)
    qd, slope = diagonal_motion(model, q, nu, None)
    halfway = integrate(model, q, h / 2 * qd)
    A = diagonal_coriolis_matrix(model, halfway, nu + h / 2 * slope)
    middle = jnp.linalg.solve(jnp.eye(model.nv, dtype=q.dtype) + h / 2 * A, nu)
    q = integrate(model, q, h * factorize(model, halfway).joint_rates(middle))
    return q, _kick(model, q, 2 * middle - nu, tau, h / 2), True


def _kick(model: Model, q, nu, tau, h) -> Joints:
    """ν̇ = ε(θ, ν) for a time h at constant θ; friction makes ε depend on ν."""
    f, weight = factorize(model, q), gravity_forces(model, q)

    def eps(nu):
        drag = resistance(model, f.joint_rates(nu))
        return f.working_moments(tau - weight - drag)

    return nu + h * eps(nu + h / 2 * eps(nu))


def implicit_midpoint(model: Model, q, nu, tau, h):
    """(θ₁, ν₁) = (θ₀, ν₀) + h (θ̇, ν̇)(θ_m, ν_m), the mean of both ends in the middle.

    It keeps ½ νᵀν in free motion, a quadratic invariant.
    """
    return _by_middle(_held, model, q, nu, tau, h)


def energy(model: Model, q, nu, tau, h):
    """The same with a discrete gradient of the potential, which keeps ½ νᵀν + U:

        ∇̄U = ∫ ∇U(θ₀ + sΔ) ds ,   0 < s < 1 ,   Δ = θ₁ - θ₀ ,   so ∇̄U·Δ = U(θ₁) - U(θ₀)

    The mean along the step has no difference of nearly equal energies in it, and no
    division by ‖Δ‖², which make the gradient through the middle [MATH 12] noisy near
    rest. It is taken at Gauss's five points: exact to rounding for turns of a radian.
    """

    return _by_middle(_of_mean_weight, model, q, nu, tau, h)


def _held(model: Model, q, tau, half) -> Joints:
    return tau


def _of_mean_weight(model: Model, q, tau, half) -> Joints:
    """What makes `tau` and the weight at θ_m the same as `tau` and the mean weight.

    The third of the five points is θ_m.
    """
    along = jnp.asarray(NODES + 1, q.dtype)[:, None] * half[None]
    weight = jax.vmap(lambda d: gravity_forces(model, integrate(model, q, d)))(along)
    return tau + weight[2] - jnp.asarray(WEIGHTS / 2, q.dtype) @ weight


def _by_middle(forces: Callable, model: Model, q, nu, tau, h):
    """Solves θ_m = θ₀ + ½h θ̇(θ_m, ν_m), ν_m = ν₀ + ½h ν̇(θ_m, ν_m), then goes on.

    The unknowns are ½h θ̇ in units of h, which are those of a rate, and ν_m. What acts
    at θ_m is `forces(model, θ₀, τ, θ_m - θ₀)`.
    """

    def again(at, middle):
        model, q, nu, tau, h = at
        half, nu_m = h * middle[: model.nv], middle[model.nv :]
        there = integrate(model, q, half)
        acting = forces(model, q, tau, half)
        qd, nu_dot = diagonal_motion(model, there, nu_m, acting)
        return jnp.concatenate([qd / 2, nu + h / 2 * nu_dot])

    guess = jnp.concatenate([factorize(model, q).joint_rates(nu) / 2, nu])
    middle, solved = fixed_point(again, (model, q, nu, tau, h), guess)
    half, nu_m = h * middle[: model.nv], middle[model.nv :]
    return integrate(model, q, 2 * half), 2 * nu_m - nu, solved


def _same(model: Model, q, x) -> Joints:
    return x


def _to_nu(model: Model, q, qd) -> Joints:
    return factorize(model, q).total_rates(qd)


def _from_nu(model: Model, q, nu) -> Joints:
    return factorize(model, q).joint_rates(nu)


INTEGRATORS = {
    "semi_implicit": Integrator(_same, _same, semi_implicit),
    "rk4": Integrator(_same, _same, rk4),
    "cayley": Integrator(_to_nu, _from_nu, cayley),
    "implicit_midpoint": Integrator(_to_nu, _from_nu, implicit_midpoint),
    "energy": Integrator(_to_nu, _from_nu, energy),
}
