"""Inward: articulated bodies. The Riccati sweep of Jain and Rodriguez, and Saha's M̂."""

from .._types import Joints
from ..model import Tree
from ..spatial import ArticulatedInertia, RigidInertia, Screw, Shift, Wrench
from ._sweep import tip_to_base


def eliminate(P: ArticulatedInertia, H: Screw, armature) -> tuple:
    """One joint taken out of an articulated body [J&R Alg 4.1; Saha 1997 21-23].

    D  = H P H* + armature
    G  = P H* / D
    P⁺ = P - G D G*
    """
    PH = P @ H
    D = PH @ H + armature
    G = PH * (1 / D)
    return D, G, P.minus_outer(G, PH)


def factors(
    phi: Shift, H: Screw, M: RigidInertia, armature: Joints, tree: Tree
) -> tuple[Joints, Wrench]:
    """D and G of every joint, with P = M + Σ φ P⁺ φ* over the children."""

    def step(total, link):
        phi, H, M, armature = link
        D, G, P = eliminate(total + M, H, armature)
        return P.shifted(phi), (D, G)

    zero = ArticulatedInertia.zeros(M.m[0])
    return tip_to_base(step, zero, (phi, H, M, armature), tree)[1]


def innovations(
    phi: Shift,
    H: Screw,
    M: RigidInertia,
    f: Wrench,
    tau: Joints,
    armature: Joints,
    tree: Tree,
) -> tuple[Joints, Wrench]:
    """ê = D⁻¹ e and G: the Riccati sweep with the bias on board [MATH 6.1, 6.2].

        P  = M + Σ φ P⁺ φ* ,   z = f + Σ φ z⁺   over the children
        e  = τ - H z
        z⁺ = z + G e

    `f` is what the links need at θ̈ = 0, so e is Saha's φ = τ - C θ̇ carried along.
    """

    def step(total, link):
        P, z = total
        phi, H, M, f, tau, armature = link
        D, G, P = eliminate(P + M, H, armature)
        z = z + f
        e = tau - z @ H
        return (P.shifted(phi), phi.wrench(z + G * e)), (e / D, G)

    zero = ArticulatedInertia.zeros(tau[0]), Wrench.zeros(tau[0])
    return tip_to_base(step, zero, (phi, H, M, f, tau, armature), tree)[1]
