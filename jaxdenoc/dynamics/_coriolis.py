"""The matrix C of C θ̇, in the two forms that matter."""

from typing import Literal

from .._jit import jitted
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
from ._pairs import ancestors, descendants, to_common_point, twists_there
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
    if form not in ("christoffel", "saha"):
        raise ValueError(f"form is '{form}'; it can be 'christoffel' or 'saha'.")
    check_state(model, q=q, qd=qd)
    rows = model.rows
    tree = rows.tree
    here = posture(model, q)
    H = here.H
    V = twists(here.phi, H, rows.from_velocities(qd), tree)
    V = rows.from_links(
        rows.to_links(V)
    )  # the axes of one joint all move with its link
    _, Mc = composite_inertias(here.phi, bodies(model).inertia(here.R), tree)
    Bc = composite_rates(here.phi, momentum_rates(model, here, V, form), tree)
    Hd = V.cross(H.twist)

    there = to_common_point(here)
    S, Sd = twists_there(there, H), twists_there(there, Hd)
    outer_j = ancestors(tree, S, there.wrench(Bc @ H + Mc @ Hd))
    outer_i = descendants(tree, there.wrench(Mc @ H), Sd)
    turning = Bc.transposed(H)
    outer_i = outer_i + descendants(tree, Wrench(turning, turning * 0), S)
    return rows.to_velocities(rows.to_velocities(outer_j + outer_i).T).T


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
