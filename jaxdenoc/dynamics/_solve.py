"""Solving with the mass matrix, without making it."""

import equinox as eqx
import jax.numpy as jnp
from jax import lax

from .._tiles import in_tiles
from .._types import Joints, Position
from ..model import Model
from ..recursion import bodies, innovations, posture, solve_UT
from ._inverse import joint_forces_of


def solve(model: Model, q: Position, b: Joints) -> Joints:
    """x = ℳ⁻¹ b, differentiated by what it solves: dx = ℳ⁻¹ (db - dℳ x).

    ℳ x is inverse dynamics without velocity and weight [MATH 10.1].
    """

    def times(x):
        weightless = eqx.tree_at(lambda m: m.gravity, model, 0 * model.gravity)
        return joint_forces_of(weightless, q, jnp.zeros_like(x), x, None)

    def once(_, b):
        return _in_tiles(model, q, b)

    return lax.custom_linear_solve(times, b, once, symmetric=True)


def three_steps(model: Model, q: Position, b: Joints) -> Joints:
    """U e = b, then D ê = e, then Uᵀ x = ê [Saha 1999 §5.2; MATH 6.1]."""
    rows, here = model.rows, posture(model, q)
    armature = rows.from_velocities(model.armature)
    e, _, G = innovations(here, bodies(model), None, rows.from_velocities(b), armature)
    return rows.to_velocities(solve_UT(here.phi, here.H, G, e, rows.tree))


_in_tiles = in_tiles(three_steps)
