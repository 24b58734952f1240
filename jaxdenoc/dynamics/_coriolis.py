"""The matrix C of C θ̇, in the two forms that matter."""

from functools import partial
from typing import Literal

from .._jit import jitted
from .._tiles import in_tiles
from .._types import Joints, Position, Square
from ..model import Model, Tree
from ..recursion import (
    MomentumRate,
    Posture,
    bodies,
    composite_inertias,
    posture,
    tip_to_base,
    twists,
)
from ..spatial import Shift, Twist, Wrench, skew, skew_times
from ._pairs import (
    Table,
    ancestors,
    descendants,
    in_order,
    to_common_point,
    twists_there,
)
from ._state import check_state


@jitted("form")
def coriolis_matrix(
    model: Model,
    q: Position,
    qd: Joints,
    *,
    form: Literal["christoffel", "saha"] = "christoffel",
) -> Square:
    """C with C θ̇ = bias - gravity - friction and ℳ̇ - 2C skew.

    "christoffel" is the one of the Christoffel symbols; "saha" is that of the DeNOC
    matrices, C = Nᵀ (M Ṅ + Ṁ N) with Ṁ = [[ω̃ I, 0], [0, 0]] [Saha 1999 25-29]. With
    x the outer one of i and j, of which one is the other's ancestor [MATH 3.3],

        C_ij = H_i* ( B̃_x H_j + M̃_x Ḣ_j ) ,   Ḣ_j = V_j × H_j
    """
    if form not in _IN_TILES:
        raise ValueError(f"form is '{form}'; it can be 'christoffel' or 'saha'.")
    check_state(model, q=q, qd=qd)
    return _IN_TILES[form](model, q, qd)


def _of_rows(form: str, model, q, qd):
    """H, Ḣ, and the wrenches B̃ H + M̃ Ḣ and M̃ H, about one point, and B̃ᵀ H."""
    rows = model.rows
    here = posture(model, q)
    V = twists(here.phi, here.H, rows.from_velocities(qd), here.tree)
    V = rows.from_links(rows.to_links(V))  # all axes of a joint move with its link
    _, Mc = composite_inertias(here.phi, bodies(model).inertia(here.R), here.tree)
    Bc = composite_rates(here.phi, momentum_rates(model, here, V, form), here.tree)
    H, there = here.H, to_common_point(here)
    Hd = V.cross(H.twist)
    of_i = twists_there(there, H), there.wrench(Bc @ H + Mc @ Hd)
    of_j = twists_there(there, Hd), there.wrench(Mc @ H), Bc.transposed(H)
    return rows, of_i, of_j


def _table(of_rows) -> Table:
    rows, (S, F), (Sd, MH, turning) = of_rows
    outer_j = ancestors(rows.tree, S, F)
    outer_i = descendants(rows.tree, MH, Sd)
    outer_i = outer_i + descendants(rows.tree, Wrench(turning, turning * 0), S)
    return in_order(rows, outer_j + outer_i)


_IN_TILES = {
    form: in_tiles(partial(_of_rows, form), finish=_table)
    for form in ("christoffel", "saha")
}


def momentum_rates(model: Model, here: Posture, V: Twist, form: str) -> MomentumRate:
    """B of every body: A = (rate of I_C) - c̃ p̃ and p = m v_c, at the body's origin.

    Christoffel:  rate of I_C = ½ (ω̃ I - I ω̃ - (I ω)~)
    Saha:         rate of I_C = ω̃ I
    """
    body = bodies(model).turned(here.R)
    B = MomentumRate.of(body, V)
    if form == "christoffel":
        return B
    p = B.p
    return MomentumRate(skew_times(V.w, body.I_C.mat) - skew_times(body.c, skew(p)), p)


def composite_rates(phi: Shift, B: MomentumRate, tree: Tree) -> MomentumRate:
    """B̃ = B + Σ φ B̃ φ* over the children."""

    def step(total, link):
        phi, B = link
        B = total + B
        return B.shifted(phi), B

    return tip_to_base(step, MomentumRate.zeros(B.p.x[0]), (phi, B), tree)[1]
