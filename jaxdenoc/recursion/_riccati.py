"""Inward: articulated bodies. The Riccati sweep of Jain and Rodriguez, and Saha's M̂.

The links' own inertias are turned into base axes within the step, from R, and not
before it: ten numbers a link fewer to keep for a whole batch.
"""

import equinox as eqx

from .._types import Joints, Scalar
from ..model import Model, carried
from ..spatial import ArticulatedInertia, Screw, Wrench
from ._kinematics import Body, Posture, bodies
from ._sweep import tip_to_base


def eliminate(P: ArticulatedInertia, H: Screw, armature) -> tuple:
    """One joint taken out of an articulated body [J&R Alg 4.1; Saha 1997 21-23].

    F  = P H*
    D  = H F + armature
    P⁺ = P - F D⁻¹ F*              which is P - G D G*, with G = F D⁻¹
    """
    F = P @ H
    D = F @ H + armature
    return F, D, P.minus_outer(F * (1 / D), F)


class Articulated(eqx.Module):
    """What the Riccati sweep finds, one row per velocity."""

    P: ArticulatedInertia  # of everything outboard, its joints left to move
    F: Wrench  # P H*
    D: Scalar  # H P H*
    W: ArticulatedInertia  # crf(H) P⁺ and its transpose: the rate of P⁺ at θ̇ = 1

    @property
    def G(self) -> Wrench:
        return self.F * (1 / self.D)


def riccati(model: Model, here: Posture) -> Articulated:
    """P, D and G of every joint, with P = M + Σ φ P⁺ φ* over the children."""

    def step(total, link):
        phi, H, R, body, armature, carried = link
        P = total + body.inertia(R)
        F, D, P_plus = eliminate(P, H, armature)
        W = P_plus.carried_by(H * carried)
        return P_plus.shifted(phi), Articulated(P, F, D, W)

    armature = model.rows.from_velocities(model.armature)
    links = here.phi, here.H, here.R, bodies(model), armature, carried(model)
    zero = ArticulatedInertia.zeros(armature[0])
    return tip_to_base(step, zero, links, here.tree)[1]


def innovations(
    here: Posture, body: Body, f: Wrench | None, tau: Joints, armature: Joints
) -> tuple[Joints, Joints, Wrench]:
    """ê = D⁻¹ e, D and G: the Riccati sweep with the bias on board [MATH 6.1, 6.2].

        P  = M + Σ φ P⁺ φ* ,   z = f + Σ φ z⁺   over the children
        e  = τ - H z
        z⁺ = z + G e

    `f` is what the links need at θ̈ = 0, so e is Saha's φ = τ - C θ̇ carried along;
    without it the sweep solves U e = τ.
    """

    def step(total, link):
        P, z = total
        phi, H, R, body, f, tau, armature = link
        F, D, P = eliminate(P + body.inertia(R), H, armature)
        z = z if f is None else z + f
        e = (tau - z @ H) / D
        return (P.shifted(phi), phi.wrench(z + F * e)), (e, D, F * (1 / D))

    links = here.phi, here.H, here.R, body, f, tau, armature
    zero = ArticulatedInertia.zeros(tau[0]), Wrench.zeros(tau[0])
    return tip_to_base(step, zero, links, here.tree)[1]
