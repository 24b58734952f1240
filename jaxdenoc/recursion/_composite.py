"""Inward: composite bodies, everything outboard of a joint taken as one rigid body."""

from ..model import Tree
from ..spatial import RigidInertia, Shift
from ._sweep import tip_to_base


def composite_inertias(
    phi: Shift, M: RigidInertia, tree: Tree
) -> tuple[RigidInertia, RigidInertia]:
    """M̃ of every link, and of the whole about the base's origin [Saha 1999 23b].

    M̃ = M + Σ φ M̃ φ*   over the children
    """

    def step(total, link):
        phi, M = link
        M = total + M
        return M.shifted(phi), M

    return tip_to_base(step, RigidInertia.zeros(M.m[0]), (phi, M), tree)
