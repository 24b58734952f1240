"""Inward: joint forces from the wrenches on the links."""

from .._types import Joints
from ..model import Tree
from ..spatial import Screw, Shift, Wrench
from ._sweep import tip_to_base


def joint_forces(phi: Shift, H: Screw, f: Wrench, tree: Tree) -> Joints:
    """The joint forces of a wrench on every link, τ = H φ f (Nᵀ w) [Saha 1999 30].

    f = f_link + Σ φ f   over the children
    τ = H f
    """

    def step(total, link):
        phi, H, f = link
        total = total + f
        return phi.wrench(total), total @ H

    return tip_to_base(step, Wrench.zeros(f.n.x[0]), (phi, H, f), tree)[1]
