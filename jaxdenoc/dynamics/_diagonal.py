"""Diagonalised Lagrangian dynamics, ν̇ + C(θ, ν) = ε [J&R; MATH 7]."""

import jax.numpy as jnp

from .._jit import jitted
from .._tiles import in_tiles
from .._types import Joints, Position, Spatial
from ..model import Model
from ..recursion import accelerations, motion, posture, riccati
from ..spatial import Vec3, Wrench
from ._state import check_state, resistance


@jitted("normalized")
def diagonal_acceleration(
    model: Model,
    q: Position,
    nu: Joints,
    tau: Joints,
    fext: Spatial | None = None,
    *,
    normalized: bool = True,
) -> Joints:
    """ν̇ of given joint forces, ν̇ = ε - C(θ, ν), in O(n): the forward dynamics of ν.

    Gravity, friction and external wrenches are in it, as in `forward_dynamics`, and no
    sweep for the joint accelerations is: two inward sweeps, two outward [J&R Alg 8.1,
    in the form of MATH 7.b, which holds for every joint]. With `normalized=False` the
    rates are ξ and the result ξ̇. The joint rates are `factorize(model, q).joint_rates`.
    """
    check_state(model, q=q, nu=nu, tau=tau, fext=fext)
    if normalized:
        return _normalized(model, q, nu, tau, fext)
    return _plain(model, q, nu, tau, fext)[0]


@jitted("normalized")
def diagonal_coriolis(
    model: Model, q: Position, nu: Joints, *, normalized: bool = True
) -> Joints:
    """C(θ, ν) of ν̇ + C = ε, quadratic in ν and orthogonal to it: νᵀ C = 0.

    [J&R Identity 7.1, Algorithm 7.1; MATH 7.4]. With `normalized=False` it is that of
    D ξ̇ + C(θ, ξ) = κ [J&R 7.10], where ξᵀ C = ½ ξᵀ Ḋ ξ is not zero.
    """
    check_state(model, q=q, nu=nu)
    if normalized:
        return -_normalized(model, q, nu, None, None)
    xi_dot, D = _plain(model, q, nu, None, None)
    return -D * xi_dot


@in_tiles
def _normalized(model, q, nu, tau, fext) -> Joints:
    return _motion_of_nu(model, q, nu, tau, fext)[1]


@in_tiles
def diagonal_motion(model: Model, q, nu, tau) -> tuple[Joints, Joints]:
    """θ̇ and ν̇ of a state (θ, ν): both sides of what an integrator in ν needs.

    Without joint forces (`None`) the robot moves freely, and weightless.
    """
    return _motion_of_nu(model, q, nu, tau, None)


def _motion_of_nu(model, q, nu, tau, fext) -> tuple[Joints, Joints]:
    """ν = D^½ ξ, so ν̇ = D^½ ξ̇ + ½ D^{-½} Ḋ ξ."""
    D, xi, xi_dot, rate, qd = _both(model, q, nu, tau, fext, True)
    nu_dot = jnp.sqrt(D) * xi_dot + rate * xi / jnp.sqrt(D) / 2
    return model.rows.to_velocities(qd), model.rows.to_velocities(nu_dot)


@in_tiles
def _plain(model, q, xi, tau, fext) -> tuple[Joints, Joints]:
    D, _, xi_dot, *_ = _both(model, q, xi, tau, fext, False)
    return model.rows.to_velocities(xi_dot), model.rows.to_velocities(D)


def _both(model, q, rates, tau, fext, normalized):
    """D, ξ, ξ̇, Ḋ, θ̇ in row order; without joint forces, weight is left out too."""
    rows = model.rows
    here = posture(model, q)
    found = riccati(model, here)
    D = found.D
    xi = rows.from_velocities(rates)
    xi = xi / jnp.sqrt(D) if normalized else xi
    weight = None if tau is None else Vec3.of(model.gravity)
    external = None if fext is None else rows.from_bodies(Wrench.of(fext))
    now = motion(model, here, found, xi, weight, external)
    if tau is None:
        driving = jnp.zeros_like(xi)
    else:
        qd = rows.to_velocities(now.qd)
        driving = rows.from_velocities(tau - resistance(model, qd))
    xi_dot, rate = accelerations(here, found, now, driving)
    return D, xi, xi_dot, rate, now.qd
