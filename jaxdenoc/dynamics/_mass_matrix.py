"""The generalised inertia matrix."""

import jax.numpy as jnp
import numpy as np

from .._jit import jitted
from .._tiles import in_tiles
from .._types import Position, Square
from ..model import Model
from ..recursion import bodies, posture, tip_to_base
from ..spatial import RigidInertia
from ._pairs import (
    Table,
    ancestors,
    in_order,
    strictly,
    to_common_point,
    twists_there,
    where,
)
from ._state import check_state


@jitted()
def mass_matrix(model: Model, q: Position) -> Square:
    """ℳ = H φ M φ* H*, with the joints' armature on its diagonal.

    Composite bodies [Saha 1999 23-24; MATH 4]: with the wrench F_i = M̃_i H_i of link
    i's composite body, ℳ_ji = H_j F_i for every j between i and the base.
    """
    check_state(model, q=q)
    return _in_tiles(model, q)


def _of_rows(model, q):
    """H and F = M̃ H of every row about one point, with M̃ = M + Σ φ M̃ φ*.

    All in the one sweep, and M turned into base axes within it: for a batch, what is
    kept from step to step costs more than the arithmetic.
    """

    def step(total, link):
        phi, H, R, there, body = link
        M = total + body.inertia(R)
        return M.shifted(phi), (twists_there(there, H), there.wrench(M @ H))

    here = posture(model, q)
    links = here.phi, here.H, here.R, to_common_point(here), bodies(model)
    _, (H, F) = tip_to_base(step, RigidInertia.zeros(q[0]), links, here.tree)
    return model.rows, H, F, model.rows.from_velocities(model.armature)


def _table(of_rows) -> Table:
    rows, H, F, armature = of_rows
    upper = ancestors(rows.tree, H, F)
    own = where(np.eye(len(upper), dtype=bool), armature[None] + jnp.zeros_like(upper))
    return in_order(rows, upper + jnp.swapaxes(strictly(upper), 0, 1) + own)


_in_tiles = in_tiles(_of_rows, finish=_table)
