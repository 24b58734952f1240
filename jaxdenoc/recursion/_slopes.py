"""How joint forces change with the motion: the six-vectors of which every entry of the
Jacobians of inverse dynamics is a product [MATH 10.2].

All of it is in base axes about one point for the whole robot, the origin of link 0, so
that sums over links are plain sums. What does not travel along the links is done in
loops of its own (`lax.map`): within a loop XLA computes a number again for every result
that needs it, from one loop to the next it keeps it.
"""

import equinox as eqx
import jax.numpy as jnp
from jax import lax

from .._types import Joints, Scalar
from ..model import Model, carried
from ..spatial import (
    Mat3,
    RigidInertia,
    Screw,
    Shift,
    Sym3,
    Twist,
    Vec3,
    Wrench,
    outer,
    rotate,
    skew,
    skew_times,
)
from ._kinematics import Body, Posture, bodies
from ._sweep import base_to_tip, tip_to_base


class MomentumRate(eqx.Module):
    """B = [[A, 0], [-p̃, 0]] of a body: what turning frames add to M V̇ [MATH 3.3]."""

    A: Mat3
    p: Vec3

    @classmethod
    def of(cls, body: Body, V: Twist) -> "MomentumRate":
        """½ (V ×* M - M V × + crfb(M V)) of a body in base axes.

            p = m v_c ,   A = -ω̃ Σ - c̃ p̃ = (c·p) 1 - p cᵀ - ω̃ Σ ,   Σ = ½ tr(I) 1 - I

        with Σ for ½ (ω̃ I - I ω̃ - (I ω)~), as ω̃ I + I ω̃ = ((tr(I) 1 - I) ω)~.
        """
        c, I = body.c, body.I_C
        p = (V.v + V.w.cross(c)) * body.m
        half = (I.xx + I.yy + I.zz) * 0.5
        S = Sym3(half - I.xx, -I.xy, -I.xz, half - I.yy, -I.yz, half - I.zz)
        d, o = c @ p, c.x * 0
        dot = Mat3(Vec3(d, o, o), Vec3(o, d, o), Vec3(o, o, d))
        return cls(dot - outer(p, c) - skew_times(V.w, S.mat), p)

    @classmethod
    def zeros(cls, like: Scalar) -> "MomentumRate":
        o = Vec3.zeros(like)
        return cls(Mat3(o, o, o), o)

    def __add__(self, b):
        return MomentumRate(self.A + b.A, self.p + b.p)

    def __matmul__(self, V: Twist | Screw) -> Wrench:
        return Wrench(self.A @ V.w, V.w.cross(self.p))

    def transposed(self, V: Twist | Screw) -> Vec3:
        """The angular part of Bᵀ V; the linear part is zero."""
        return self.A.T @ V.w + self.p.cross(V.v)

    def shifted(self, phi: Shift) -> "MomentumRate":
        """φ B φ*: A - l̃ p̃ = A - p lᵀ + (l·p) 1, and the same p."""
        return MomentumRate(self.A - skew_times(phi.l, skew(self.p)), self.p)


class Axes(eqx.Module):
    """The joint axes, and how they are carried along, one row per velocity."""

    S: Twist
    first: Twist  # Ψ̇ = V_p × S
    second: Twist  # Ψ̈ = a_p × S + V_p × Ψ̇
    both: Twist  # Ψ̇ + Ṡ , Ṡ = V × S


class Slopes(eqx.Module):
    """Of row i: with j between it and the base, what entries (j, i) and (i, j) are of.

    ∂τ_j/∂q_i = S_j · q        ∂τ_i/∂q_j = B · Ψ̇_j + M · Ψ̈_j
    ∂τ_j/∂q̇_i = S_j · qd       ∂τ_i/∂q̇_j = B · S_j + M · (Ψ̇_j + Ṡ_j)
    ∂τ_j/∂q̈_i = S_j · M
    """

    q: Wrench
    qd: Wrench
    B: Vec3  # its linear part is zero
    M: Wrench


def slopes(
    model: Model, here: Posture, qd: Joints, qdd: Joints, fext: Wrench | None
) -> tuple[Axes, Slopes]:
    """The axes and the slopes of all rows [MATH 10.2].

        q = 2 B̃ Ψ̇ + M̃ Ψ̈ + S ×* f̃       qd = 2 B̃ S + M̃ (Ψ̇ + Ṡ)
        B = 2 B̃ᵀ S                        M  = M̃ S

    with M̃, B̃ and f̃ of all bodies from the row on. Of a free base, V_p is zero and a_p
    minus gravity for all of its rows, and S ×* f̃ is left out between them.
    """
    tree, own = here.tree, carried(model)
    o = here.o - Vec3(here.o.x[0], here.o.y[0], here.o.z[0])

    def place(row):  # axes and bodies about the common point
        H, R, o, body = row
        S = Twist(H.w, H.v - H.w.cross(o))
        return S, Body(body.m, o + R @ body.c, rotate(R, body.I_C))

    S, body = lax.map(place, (here.H, here.R, o, bodies(model)))
    rest = Twist.zeros(qd[0])
    fall = Twist(rest.w, Vec3.of(model.gravity) * -jnp.ones_like(qd[0]))

    def outward(parent, row):
        V, a = parent
        S, own, qd, qdd = row
        first = V.cross(S) * own
        now = V + S * qd, a + S * qdd + first * qd
        return now, (first, a, *now)

    first, a_p, V, a = base_to_tip(outward, (rest, fall), (S, own, qd, qdd), tree)

    def carry(row):
        S, first, a_p, V, V_link, own, qd = row
        second = (a_p * own + fall * (1 - own)).cross(S) + (V - S * qd).cross(first)
        return Axes(S, first, second, first + V_link.cross(S))

    V_link = model.rows.from_links(model.rows.to_links(V))
    axes = lax.map(carry, (S, first, a_p, V, V_link, own, qd))

    def inward(total, row):
        M, B, f = total
        body, V, a, R, o, fext = row
        M = M + RigidInertia.of(body.m, body.c, body.I_C)
        total = M, B + MomentumRate.of(body, V), f + _wrench(body, V, a, R, o, fext)
        return total, total

    zero = (x.zeros(qd[0]) for x in (RigidInertia, MomentumRate, Wrench))
    links = body, V, a, here.R, o, fext
    composite = tip_to_base(inward, tuple(zero), links, tree)[1]

    def multiply(row):
        (M, B, f), x, own = row
        q = (B @ x.first) * 2 + M @ x.second + x.S.cross_wrench(f) * own
        return Slopes(q, (B @ x.S) * 2 + M @ x.both, B.transposed(x.S) * 2, M @ x.S)

    return axes, lax.map(multiply, (composite, axes, own))


def _wrench(body: Body, V: Twist, a: Twist, R: Mat3, o: Vec3, fext) -> Wrench:
    """M a + V ×* M V - f_ext of a body in base axes, as Newton and Euler have it."""
    c, I, w = body.c, body.I_C, V.w
    f = (a.v + a.w.cross(c) + w.cross(V.v + w.cross(c))) * body.m
    n = I @ a.w + w.cross(I @ w) + c.cross(f)
    if fext is None:
        return Wrench(n, f)
    push = R @ fext.f
    return Wrench(n - R @ fext.n - o.cross(push), f - push)
