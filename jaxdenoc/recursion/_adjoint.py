"""The gradient of virtual work: reverse mode of inverse dynamics, as two sweeps.

Along virtual rates μ the joint forces τ do the work μᵀτ, whose gradient, with respect
to all that τ depends on, is reverse mode of inverse dynamics [MATH 10.1]. The rates μ
give every link a virtual twist W, so that μᵀτ = Σ W · f over the links.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Joints, Scalar
from ..model import Model, carried
from ..spatial import Twist, Vec3, Wrench, skew_times
from ._given import Given
from ._kinematics import Body, Posture
from ._sweep import base_to_tip, tip_to_base


class VirtualMotion(eqx.Module):
    """The motion of every row, and the virtual one beside it."""

    V: Twist
    a: Twist
    W: Twist
    mu: Scalar


def virtual_motion(
    model: Model, here: Posture, at: Given, e: Joints, G: Wrench | None = None
) -> VirtualMotion:
    """Outward: V and a of MATH 3.1, and W = φ* W_parent + H μ.

    The rates μ are `e`, or with G those of Uᵀ μ = e: μ = e - G* W⁺ [MATH 6.1].
    """

    def step(parent, link):
        phi, H, carried, qd, qdd, e, G = link
        V, a, W = (phi.twist(x) for x in parent)
        mu = e if G is None else e - G @ W
        a = a + V.cross(H * (qd * carried))
        a = a if qdd is None else a + H * qdd
        V, W = V + H * qd, W + H * mu
        return (V, a, W), VirtualMotion(V, a, W, mu)

    rest = Twist.zeros(e[0])
    g = Vec3.of(at.gravity) * jnp.ones_like(e[0])
    links = here.phi, here.H, carried(model), at.qd, at.qdd, e, G
    return base_to_tip(step, (rest, Twist(rest.w, -g), rest), links, here.tree)


def virtual_loads(body: Body, V: Twist, a: Twist, W: Twist) -> tuple[Wrench, ...]:
    """A body's f, and how W · f changes with a and with V; the body in base axes.

        f = M a + V ×* M V ,   A = M W ,   B = M (W × V) - W ×* M V

    about the mass centre c, where v_c and w_c are the velocities of V and W:

        f:  m (v̇ + α × c + ω × v_c)     I α + ω × I ω + c × f
        A:  m w_c                        I u + c × A
        B:  m w_c × ω                    I (u × ω) + I ω × u + v_c × m w_c + c × B
    """
    m, c, I, w, u = body.m, body.c, body.I_C, V.w, W.w
    Iw, v = I @ w, V.v + w.cross(c)
    f = (a.v + a.w.cross(c) + w.cross(v)) * m
    A = (W.v + u.cross(c)) * m
    B = A.cross(w)
    return (
        Wrench(I @ a.w + w.cross(Iw) + c.cross(f), f),
        Wrench(I @ u + c.cross(A), A),
        Wrench(I @ u.cross(w) + Iw.cross(u) + v.cross(A) + c.cross(B), B),
    )


class VirtualLoads(eqx.Module):
    """What all from a row on make of its V, a and W, and of its own q and qd."""

    q: Scalar
    qd: Scalar
    f: Wrench
    A: Wrench
    B: Wrench


def loads_beyond(
    model: Model, here: Posture, at: Given, now: VirtualMotion
) -> tuple[Wrench, VirtualLoads]:
    """Inward: f, A and B of all from a row on, and with them the gradient.

        A = Σ φ A ,   f = Σ φ f ,   B = Σ φ (B + H θ̇ ×* A)   over all beyond
        ∂/∂θ̇ = H · B + (V × H) · A
        ∂/∂θ  = (V × H) · B + (a × H) · A + (W × H) · f

    because to turn all beyond a joint about H is, seen from there, to turn what comes
    to it the other way. Returns A at the base as well.
    """

    def step(total, link):
        phi, H, R, body, fext, carried, now, qd = link
        own = virtual_loads(body, now.V, now.a, now.W)
        f, A, B = (x + y for x, y in zip(total, own, strict=True))
        if fext is not None:
            f = f - Wrench(R @ fext.n, R @ fext.f)
        V, a, W = (x.cross(H.twist) for x in (now.V, now.a, now.W))
        rate = B @ H + (A @ V) * carried
        here = VirtualLoads(B @ V + A @ a + f @ W, rate, f, A, B)
        B = B + (H * (qd * carried)).cross_wrench(A)
        return (phi.wrench(f), phi.wrench(A), phi.wrench(B)), here

    zero = (Wrench.zeros(at.qd[0]),) * 3
    body = at.body.turned(here.R)
    links = here.phi, here.H, here.R, body, at.fext, carried(model), now, at.qd
    (_, A, _), rows = tip_to_base(step, zero, links, here.tree)
    return A, rows


def work_gradient(
    model: Model, here: Posture, at: Given, e: Joints, G: Wrench | None = None
) -> tuple[Given, Joints]:
    """The gradient of μᵀτ with respect to all that the sweeps are given, and μ.

    μ is `e`, or solves Uᵀ μ = e, as in `virtual_motion`. What a displacement X of a
    link and all beyond it does is Z · X; the moment Z.n, as a gradient with respect to
    the rotation of the link in its parent, is ½ Z̃.n R_turned.

        Z    = -(V⁺ ×* (B + H θ̇ ×* A) + a⁺ ×* A + W⁺ ×* f)
        ∂/∂H = μ f + θ̇ (B - V⁺ ×* A) + θ̈ A
    """
    now = virtual_motion(model, here, at, e, G)
    base, on = loads_beyond(model, here, at, now)
    H, R, own, mu = here.H, here.R, carried(model), now.mu
    qdd = jnp.zeros_like(mu) if at.qdd is None else at.qdd
    vJ = H * at.qd
    V, W = now.V - vJ, now.W - H * mu  # V⁺, W⁺
    a = now.a - H * qdd - V.cross(vJ) * own
    VA = V.cross_wrench(on.A) * own
    B = on.B + vJ.cross_wrench(on.A) * own
    Z = (V.cross_wrench(B) + a.cross_wrench(on.A) + W.cross_wrench(on.f)) * -1
    of_H = on.f * mu + (on.B - VA) * at.qd + on.A * qdd

    def in_parent(x):  # R_parentᵀ x
        return at.turned @ (R.T @ x)

    gradient = Given(
        q=on.q * own,  # that of a free base is in `turned` and `moved`
        qd=on.qd,
        qdd=None if at.qdd is None else on.A @ H,
        turned=skew_times(in_parent(Z.n), at.turned) * 0.5,
        moved=in_parent(Z.f),
        h=R.T @ (of_H.n * H.turn + of_H.f * H.slide),
        slide=of_H.f @ H.h,
        body=_of_bodies(at.body, here, now),
        fext=None if at.fext is None else Wrench(-(R.T @ now.W.w), -(R.T @ now.W.v)),
        gravity=-base.f.array,
    )
    return gradient, mu


def _of_bodies(body: Body, here: Posture, now: VirtualMotion) -> Body:
    """Of W · (M a + V ×* M V), which is linear in m, m c and the inertia [MATH 11]."""

    def work(body):
        return jnp.sum(body.wrench(here.R, now.V, now.a) @ now.W)

    return jax.grad(work)(body)
