"""Diagonalised dynamics: the sweeps behind ν̇ + C(θ, ν) = ε [J&R §7, §8; MATH 7].

"Local" rates are those of components that move along with the link. A row of a joint
of several degrees of freedom has no frame of its own but its link's, so it carries
nothing along (`carried` is zero there), and all below holds for it as it stands.
"""

import equinox as eqx

from .._types import Joints, Scalar
from ..model import Model, Tree, carried
from ..spatial import ArticulatedInertia, Screw, Shift, Twist, Vec3, Wrench
from ._kinematics import Posture, bodies
from ._sweep import base_to_tip, tip_to_base


class Motion(eqx.Module):
    """What the rates ξ mean for the links, one row per velocity."""

    qd: Joints
    arriving: Twist  # V⁺, of the row's place before its own joint moves it
    f: Wrench  # that the links need at ν̇ = 0 of all rows: MATH 3.1 at θ̈ = 0
    pull: Scalar  # G* a⁺, what velocities alone add to ξ̇


def motion(
    model: Model,
    here: Posture,
    G: Wrench,
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
        phi, H, R, body, carried, G, xi, fext = link
        arriving = phi.twist(V)
        qd = xi - G @ arriving
        a = phi.twist(a) + arriving.cross(H * (qd * carried))
        V = arriving + H * qd
        needed = a if weight is None else Twist(a.w, a.v - weight)
        f = body.wrench(R, V, needed)
        if fext is not None:
            f = f - Wrench(R @ fext.n, R @ fext.f)
        return (V, a), Motion(qd, arriving, f, G @ a)

    start = Twist.zeros(xi[0]), Twist.zeros(xi[0])
    links = here.phi, here.H, here.R, bodies(model), carried(model), G, xi, fext
    return base_to_tip(step, start, links, here.tree)


def inertia_rate(
    Pd: ArticulatedInertia, P: ArticulatedInertia, H: Screw, D, G: Wrench, vJ: Twist
) -> tuple[Wrench, ArticulatedInertia]:
    """Ṗ H*, and what Ṗ passes on to the parent, still about this link's origin.

        τ̄ Ṗ τ̄* + W + Wᵀ ,   W = crf(v_J) P⁺                         [MATH 7.a]

    With k = Ṗ H* - ½ (H Ṗ H*) G the first of these is Ṗ - G k* - k G*.
    """
    PdH = Pd @ H
    k = PdH - G * ((PdH @ H) / 2)
    P_plus = P.minus_outer(G, G * D)
    return PdH, Pd.minus_both(G, k).plus(P_plus.carried_by(vJ))


def inertia_rates(
    phi: Shift,
    H: Screw,
    P: ArticulatedInertia,
    D: Joints,
    G: Wrench,
    vJ: Twist,
    tree: Tree,
) -> ArticulatedInertia:
    """Ṗ of every row, the local rate of the articulated inertia [J&R Alg 6.1]."""

    def step(Pd, link):
        phi, H, P, D, G, vJ = link
        _, rest = inertia_rate(Pd, P, H, D, G, vJ)
        return rest.shifted(phi), Pd

    zero = ArticulatedInertia.zeros(D[0])
    return tip_to_base(step, zero, (phi, H, P, D, G, vJ), tree)[1]


def accelerations(
    here: Posture,
    carried: Joints,
    P: ArticulatedInertia,
    D: Joints,
    G: Wrench,
    now: Motion,
    tau: Joints,
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
        phi, H, P, D, G, carried, now, tau = link
        z = z + now.f
        e = tau - z @ H
        PdH, rest = inertia_rate(Pd, P, H, D, G, H * (now.qd * carried))
        rate = PdH @ H
        slope = PdH @ now.arriving - rate * (G @ now.arriving)  # H Ṗ τ̄* V⁺
        xi_dot = (e + slope) / D + now.pull
        return (rest.shifted(phi), phi.wrench(z + G * e)), (xi_dot, rate)

    zero = ArticulatedInertia.zeros(D[0]), Wrench.zeros(D[0])
    links = here.phi, here.H, P, D, G, carried, now, tau
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
