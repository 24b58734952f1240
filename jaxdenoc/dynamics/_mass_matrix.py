"""The generalised inertia matrix."""

import jax.numpy as jnp

from .._jit import jitted
from .._types import Position, Square
from ..model import Model
from ..recursion import bodies, composite_inertias, posture
from ._pairs import ancestors, to_common_point, twists_there
from ._state import check_state


@jitted()
def mass_matrix(model: Model, q: Position) -> Square:
    """ℳ = H φ M φ* H*, with the joints' armature on its diagonal.

    Composite bodies [Saha 1999 23-24; MATH 4]: with the wrench F_i = M̃_i H_i of link
    i's composite body, ℳ_ji = H_j F_i for every j between i and the base.
    """
    check_state(model, q=q)
    rows = model.rows
    here = posture(model, q)
    M = bodies(model).inertia(here.R)
    _, composite = composite_inertias(here.phi, M, rows.tree)
    there = to_common_point(here)
    F = there.wrench(composite @ here.H)
    upper = ancestors(rows.tree, twists_there(there, here.H), F)
    full = upper + jnp.triu(upper, 1).T
    return rows.to_velocities(rows.to_velocities(full).T) + jnp.diag(model.armature)
