"""Diagonalised dynamics: the sweeps behind ν̇ + C(θ, ν) = ε [J&R §7, §8; MATH 7].

"Local" rates are those of components that move along with the link. A row of a joint
of several degrees of freedom has no frame of its own but its link's, so it carries
nothing along (`carried` is zero there), and all below holds for it as it stands.

F = P H* is kept instead of G = F D⁻¹, and the divisions by D are done in the steps. On
a CPU, XLA computes cheap arithmetic anew for every number that depends on it, but not a
division: θ̇, e and k below are then computed once each, which halves the whole.
"""

import equinox as eqx

from .._types import Joints, Scalar
from ..model import Model, Tree, carried
from ..spatial import ArticulatedInertia, Screw, Shift, Twist, Vec3, Wrench
from ._kinematics import Posture, bodies
from ._riccati import Articulated
from ._sweep import base_to_tip, tip_to_base


class Motion(eqx.Module):
    """What the rates ξ mean for the links, one row per velocity."""

    qd: Scalar
    arriving: Twist  # V⁺, of the row's place before its own joint moves it
    f: Wrench  # that the links need where no rate changes: MATH 3.1 at θ̈ = 0
    pull: Scalar  # D G* a⁺, what velocities alone add to D ξ̇


def motion(
    model: Model,
    here: Posture,
    found: Articulated,
    xi: Joints,
    weight: Vec3 | None,
    fext: Wrench | None,
) -> Motion:
    """θ̇, V and the bias wrenches from ξ [J&R Table 2, right; MATH 3.1].

        V⁺ = φ* V_parent ,   θ̇ = ξ - G* V⁺ ,   V = V⁺ + H θ̇
        a  = φ* a_parent + V⁺ × H θ̇
        f  = M (a - g) + V ×* M V - f_ext

    `weight` is gravity, or None for none.
    """

    def step(parent, link):
        V, a = parent
        phi, H, R, body, carried, D, F, xi, fext = link
        arriving = phi.twist(V)
        qd = (xi * D - F @ arriving) / D
        a = phi.twist(a) + arriving.cross(H * (qd * carried))
        V = arriving + H * qd
        needed = a if weight is None else Twist(a.w, a.v - weight)
        f = body.wrench(R, V, needed)
        if fext is not None:
            f = f - Wrench(R @ fext.n, R @ fext.f)
        return (V, a), Motion(qd, arriving, f, F @ a)

    start = Twist.zeros(xi[0]), Twist.zeros(xi[0])
    links = here.phi, here.H, here.R, bodies(model), carried(model)
    links = *links, found.D, found.F, xi, fext
    return base_to_tip(step, start, links, here.tree)


def inertia_rate(Pd: ArticulatedInertia, H: Screw, D, F: Wrench, W) -> tuple:
    """Ṗ H*, Ḋ = H Ṗ H*, and τ̄ Ṗ τ̄* + W, which goes on to the parent [MATH 7.a].

    With k = D⁻¹ (Ṗ H* - ½ Ḋ G), τ̄ Ṗ τ̄* is Ṗ - F k* - k F*.
    """
    PdH = Pd @ H
    rate = PdH @ H
    k = (PdH - F * (rate / (2 * D))) / D
    return PdH, rate, Pd.minus_both(F, k).plus(W)


def accelerations(
    here: Posture, found: Articulated, now: Motion, tau: Joints
) -> tuple[Joints, Joints]:
    """ξ̇ and Ḋ, in the spirit of two-sweep forward dynamics [J&R Alg 8.1; MATH 7.b].

        z  = f + Σ φ z⁺ ,   e = τ - H z ,   z⁺ = z + G e
        Ṗ  = Σ φ (τ̄ Ṗ τ̄* + W + Wᵀ) φ*
        Ḋ  = H Ṗ H*
        ξ̇  = D⁻¹ (e + H Ṗ τ̄* V⁺) + G* a⁺

    because ξ = Uᵀ θ̇, of which Uᵀ θ̈ = D⁻¹ e and U̇ᵀ θ̇ = Ġ* V⁺ + G* a⁺, and
    Ġ = τ̄ Ṗ H* D⁻¹.
    """

    def step(total, link):
        Pd, z = total
        phi, H, D, F, W, now, tau = link
        z = z + now.f
        e = (tau - z @ H) / D
        PdH, rate, Pd = inertia_rate(Pd, H, D, F, W * now.qd)
        slope = PdH @ now.arriving - rate * (F @ now.arriving) / D  # H Ṗ τ̄* V⁺
        xi_dot = e + (slope + now.pull) / D
        return (Pd.shifted(phi), phi.wrench(z + F * e)), (xi_dot, rate)

    zero = ArticulatedInertia.zeros(tau[0]), Wrench.zeros(tau[0])
    links = here.phi, here.H, found.D, found.F, found.W, now, tau
    return tip_to_base(step, zero, links, here.tree)[1]


def inertia_rates(here: Posture, found: Articulated, qd: Joints) -> ArticulatedInertia:
    """Ṗ of every row, the local rate of the articulated inertia [J&R Alg 6.1]."""

    def step(Pd, link):
        phi, H, D, F, W, qd = link
        *_, rest = inertia_rate(Pd, H, D, F, W * qd)
        return rest.shifted(phi), Pd

    zero = ArticulatedInertia.zeros(qd[0])
    links = here.phi, here.H, found.D, found.F, found.W, qd
    return tip_to_base(step, zero, links, here.tree)[1]


def twist_fields(phi: Shift, H: Screw, G: Wrench, xi: Joints, tree: Tree) -> tuple:
    """V⁺ and V of every row, V = ψ* H* ξ [MATH 7.1].

    V⁺ = φ* V_parent ,   V = V⁺ + H (ξ - G* V⁺)
    """

    def step(V, link):
        phi, H, G, xi = link
        arriving = phi.twist(V)
        V = arriving + H * (xi - G @ arriving)
        return V, (arriving, V)

    return base_to_tip(step, Twist.zeros(xi[0]), (phi, H, G, xi), tree)
