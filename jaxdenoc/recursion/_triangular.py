"""Products and solves with U and Uᵀ, one sweep each [MATH 6.1; J&R Tables 2 and 3]."""

from .._types import Columns
from ..model import Tree
from ..spatial import Screw, Shift, Twist, Wrench
from ._sweep import base_to_tip, tip_to_base


def solve_U(phi: Shift, H: Screw, G: Wrench, b: Columns, tree: Tree) -> Columns:
    """e with U e = b, that is e = (1 - H ψ K) b.

    z  = Σ φ z⁺   over the children
    e  = b - H z
    z⁺ = z + G e
    """

    def step(z, link):
        phi, H, G, b = link
        e = b - z @ H
        return phi.wrench(z + G * e), e

    return tip_to_base(step, Wrench.zeros(b[0]), (phi, H, G, b), tree)[1]


def solve_UT(
    phi: Shift, H: Screw, G: Wrench, e: Columns, tree: Tree, base: Twist | None = None
) -> Columns:
    """x with Uᵀ x = e, the base at rest or accelerated.

    a⁺ = φ* a_parent
    x  = e - G* a⁺
    a  = a⁺ + H* x
    """

    def step(a, link):
        phi, H, G, e = link
        a = phi.twist(a)
        x = e - G @ a
        return a + H * x, x

    root = Twist.zeros(e[0]) if base is None else base
    return base_to_tip(step, root, (phi, H, G, e), tree)


def times_U(phi: Shift, H: Screw, G: Wrench, e: Columns, tree: Tree) -> Columns:
    """b = U e = (1 + H φ K) e: `solve_U` turned round.

    z  = Σ φ z⁺   over the children
    b  = e + H z
    z⁺ = z + G e
    """

    def step(z, link):
        phi, H, G, e = link
        return phi.wrench(z + G * e), e + z @ H

    return tip_to_base(step, Wrench.zeros(e[0]), (phi, H, G, e), tree)[1]


def times_UT(phi: Shift, H: Screw, G: Wrench, x: Columns, tree: Tree) -> Columns:
    """e = Uᵀ x: `solve_UT` turned round.

    a⁺ = φ* a_parent
    e  = x + G* a⁺
    a  = a⁺ + H* x
    """

    def step(a, link):
        phi, H, G, x = link
        a = phi.twist(a)
        return a + H * x, x + G @ a

    return base_to_tip(step, Twist.zeros(x[0]), (phi, H, G, x), tree)
