"""Solving with the mass matrix, from factors that are at hand."""

import equinox as eqx
import jax.numpy as jnp
from jax import lax

from .._tiles import in_tiles
from .._types import Joints, Position
from ..model import Model
from ..recursion import solve_U, solve_UT
from ..spatial import Screw, Shift, Wrench
from ._inverse import joint_forces_of


class Elimination(eqx.Module):
    """What is left of a Riccati sweep: enough for Saha's three steps, row by row."""

    phi: Shift
    H: Screw
    D: Joints
    G: Wrench


def solve_mass_matrix(
    model: Model, q: Position, found: Elimination, b: Joints
) -> Joints:
    """x = ℳ⁻¹ b, differentiated by what it solves: dx = ℳ⁻¹ (db - dℳ x).

    ℳ x is inverse dynamics without velocity and weight [MATH 10.1].
    """

    def times(x):
        weightless = eqx.tree_at(lambda m: m.gravity, model, 0 * model.gravity)
        return joint_forces_of(weightless, q, jnp.zeros_like(x), x, None)

    def solve(_, b):
        return three_steps(model.rows, found, b)

    return lax.custom_linear_solve(times, b, solve, symmetric=True)


@in_tiles
def three_steps(rows, found: Elimination, b: Joints) -> Joints:
    """U e = b, then D ê = e, then Uᵀ x = ê [Saha 1999 §5.2; MATH 6.1]."""
    links, tree = (found.phi, found.H, found.G), rows.tree
    e = solve_U(*links, rows.from_velocities(b), tree)
    return rows.to_velocities(solve_UT(*links, e / found.D, tree))
