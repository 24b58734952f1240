"""Energies, the mass centre, the momentum about it."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._jit import jitted
from .._types import Joints, Position
from ..model import Model
from ..recursion import bodies, posture, twists
from ..spatial import Vec3
from ._state import check_state


@jitted()
def kinetic_energy(model: Model, q: Position, qd: Joints) -> Float[Array, ""]:
    """½ Σ V* M V over the links, and ½ armature θ̇²: ½ θ̇ᵀ ℳ θ̇."""
    check_state(model, q=q, qd=qd)
    here = posture(model, q)
    V = twists(here.phi, here.H, model.rows.from_velocities(qd), here.tree)
    M = bodies(model).inertia(here.R)
    return (jnp.sum((M @ V) @ V) + model.armature @ qd**2) / 2


@jitted()
def potential_energy(model: Model, q: Position) -> Float[Array, ""]:
    """-Σ m g·c, zero when the mass centre is at the base's origin."""
    check_state(model, q=q)
    return -jnp.sum(model.mass) * (model.gravity @ center_of_mass(model, q))


@jitted()
def center_of_mass(model: Model, q: Position) -> Float[Array, "3"]:
    """The mass centre of the moving links, base axes."""
    check_state(model, q=q)
    here = posture(model, q)
    M = bodies(model).inertia(here.R)
    return _sum(here.o * M.m + M.h) / jnp.sum(model.mass)


@jitted()
def centroidal_momentum(model: Model, q: Position, qd: Joints) -> Float[Array, "6"]:
    """Angular momentum about the mass centre, then linear momentum, base axes."""
    check_state(model, q=q, qd=qd)
    here = posture(model, q)
    V = twists(here.phi, here.H, model.rows.from_velocities(qd), here.tree)
    M = bodies(model).inertia(here.R)
    L = M @ V
    centre = _sum(here.o * M.m + M.h) / jnp.sum(model.mass)
    about_centre = L.n + (here.o - Vec3.of(centre[None])).cross(L.f)
    return jnp.concatenate([_sum(about_centre), _sum(L.f)])


def _sum(x: Vec3) -> Float[Array, "3"]:
    return jnp.sum(x.array, axis=0)
