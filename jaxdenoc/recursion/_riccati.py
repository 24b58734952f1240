"""Inward: articulated bodies. The Riccati sweep of Jain and Rodriguez, and Saha's M̂.

The links' own inertias are turned into base axes within the step, from R, and not
before it: ten numbers a link fewer to keep for a whole batch.
"""

from .._types import Joints
from ..spatial import ArticulatedInertia, Screw, Wrench
from ._kinematics import Body, Posture
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


def riccati(
    here: Posture, body: Body, armature: Joints
) -> tuple[ArticulatedInertia, Joints, Wrench]:
    """P, D and G of every joint, with P = M + Σ φ P⁺ φ* over the children."""

    def step(total, link):
        phi, H, R, body, armature = link
        P = total + body.inertia(R)
        D, G, P_plus = eliminate(P, H, armature)
        return P_plus.shifted(phi), (P, D, G)

    links = here.phi, here.H, here.R, body, armature
    zero = ArticulatedInertia.zeros(armature[0])
    return tip_to_base(step, zero, links, here.tree)[1]


def innovations(
    here: Posture, body: Body, f: Wrench, tau: Joints, armature: Joints
) -> tuple[Joints, Wrench]:
    """ê = D⁻¹ e and G: the Riccati sweep with the bias on board [MATH 6.1, 6.2].

        P  = M + Σ φ P⁺ φ* ,   z = f + Σ φ z⁺   over the children
        e  = τ - H z
        z⁺ = z + G e

    `f` is what the links need at θ̈ = 0, so e is Saha's φ = τ - C θ̇ carried along.
    """

    def step(total, link):
        P, z = total
        phi, H, R, body, f, tau, armature = link
        D, G, P = eliminate(P + body.inertia(R), H, armature)
        z = z + f
        e = tau - z @ H
        return (P.shifted(phi), phi.wrench(z + G * e)), (e * (1 / D), G)

    links = here.phi, here.H, here.R, body, f, tau, armature
    zero = ArticulatedInertia.zeros(tau[0]), Wrench.zeros(tau[0])
    return tip_to_base(step, zero, links, here.tree)[1]
