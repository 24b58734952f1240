"""The gradient of virtual work: reverse mode of inverse dynamics, as two sweeps.

Along virtual rates μ the joint forces τ do the work μᵀτ, whose gradient, with respect
to all that τ depends on, is reverse mode of inverse dynamics [MATH 10.1]. The rates μ
give every link a virtual twist W, so that μᵀτ = Σ W · f over the links.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Joints
from ..model import Model, carried
from ..spatial import Mat3, Twist, Vec3, Wrench, skew
from ._given import Given
from ._kinematics import Body, Posture
from ._sweep import base_to_tip, tip_to_base


class VirtualMotion(eqx.Module):
    """The motion of every row, the virtual one, and what they do to its body."""

    V: Twist
    a: Twist
    W: Twist
    f: Wrench  # M a + V ×* M V - f_ext
    A: Wrench  # M W , which is ∂(W · f)/∂a
    B: Wrench  # M (W × V) - W ×* M V , which is ∂(W · f)/∂V


def virtual_motion(
    model: Model, here: Posture, at: Given, qdd: Joints, mu: Joints
) -> VirtualMotion:
    """Outward: V, a and f as in MATH 3.1, and beside them W = φ* W_parent + H μ."""

    def step(parent, link):
        phi, H, R, body, carried, qd, qdd, mu, fext = link
        V, a, W = (phi.twist(x) for x in parent)
        a = a + V.cross(H * (qd * carried)) + H * qdd
        V, W = V + H * qd, W + H * mu
        M, f = body.inertia(R), body.wrench(R, V, a)
        if fext is not None:
            f = f - Wrench(R @ fext.n, R @ fext.f)
        B = M @ W.cross(V) - W.cross_wrench(M @ V)
        return (V, a, W), VirtualMotion(V, a, W, f, M @ W, B)

    rest = Twist.zeros(mu[0])
    g = Vec3.of(at.gravity) * jnp.ones_like(mu[0])
    links = here.phi, here.H, here.R, at.body, carried(model), at.qd, qdd, mu, at.fext
    return base_to_tip(step, (rest, Twist(rest.w, -g), rest), links, here.tree)


class Arriving(eqx.Module):
    """Gradients with respect to what a row is, one row per velocity."""

    qd: Joints
    A: Wrench  # ∂/∂a of the row and all beyond it
    Z: Wrench  # along a displacement of the row and all beyond it
    H: Wrench  # along a change of its axis


def virtual_wrenches(
    model: Model, here: Posture, at: Given, now: VirtualMotion, qdd: Joints, mu: Joints
) -> tuple[Wrench, Arriving]:
    """Inward: what all beyond a joint make of the V⁺, a⁺ and W⁺ that arrive there.

        A = Σ φ A ,   F = Σ φ f ,   B = Σ φ (B + H θ̇ ×* A)   over all beyond
        ∂/∂θ̇ = H · B + (V⁺ × H) · A
        ∂/∂H  = μ F + θ̇ (B - V⁺ ×* A) + θ̈ A
        Z     = -(V⁺ ×* (B + H θ̇ ×* A) + a⁺ ×* A + W⁺ ×* F)

    To displace all beyond a joint by X is, seen from there, to turn what arrives by
    -X ×; that makes Z the gradient along X. Returns A of all at the base as well.
    """

    def step(total, link):
        phi, H, now, qd, qdd, mu, carried = link
        A, F, B = (x + own for x, own in zip(total, (now.A, now.f, now.B), strict=True))
        vJ = H * qd
        V, W = now.V - vJ, now.W - H * mu  # V⁺, W⁺
        a = now.a - H * qdd - V.cross(vJ) * carried
        VA = V.cross_wrench(A) * carried
        rate = B @ H - VA @ H
        of_H = F * mu + (B - VA) * qd + A * qdd
        B = B + vJ.cross_wrench(A) * carried
        Z = V.cross_wrench(B) + a.cross_wrench(A) + W.cross_wrench(F)
        on = phi.wrench(A), phi.wrench(F), phi.wrench(B)
        return on, Arriving(rate, A, Z * -1, of_H)

    zero = (Wrench.zeros(mu[0]),) * 3
    links = here.phi, here.H, now, at.qd, qdd, mu, carried(model)
    (A, *_), rows = tip_to_base(step, zero, links, here.tree)
    return A, rows


def work_gradient(model: Model, here: Posture, at: Given, mu: Joints) -> Given:
    """The gradient of μᵀτ with respect to all that the sweeps are given.

    A wrench Z along displacements has the moment Z.n about the link's origin, which as
    a gradient with respect to the rotation R = R_parent R_turned is ½ Z̃.n R.
    """
    qdd = jnp.zeros_like(mu) if at.qdd is None else at.qdd
    now = virtual_motion(model, here, at, qdd, mu)
    base, found = virtual_wrenches(model, here, at, now, qdd, mu)
    H, R, Z = here.H, here.R, found.Z
    of_axis = R.T @ (found.H.n * H.turn + found.H.f * H.slide)
    to_parent = at.turned @ R.T  # R_parentᵀ
    of_fext = None if at.fext is None else Wrench(-(R.T @ now.W.w), -(R.T @ now.W.v))
    return Given(
        q=(Z @ H) * _moves_by_q(model, mu),
        qd=found.qd,
        qdd=None if at.qdd is None else found.A @ H,
        turned=to_parent @ (skew(Z.n) @ R) * 0.5,
        moved=to_parent @ Z.f,
        h=of_axis,
        slide=found.H.f @ H.h,
        body=_of_bodies(at.body, R, now),
        fext=of_fext,
        gravity=-base.f.array,
    )


def _of_bodies(body: Body, R: Mat3, now: VirtualMotion) -> Body:
    """Of W · (M a + V ×* M V), which is linear in m, m c and the inertia [MATH 11]."""

    def work(body):
        return jnp.sum(body.wrench(R, now.V, now.a) @ now.W)

    return jax.grad(work)(body)


def _moves_by_q(model: Model, like: Joints) -> Joints:
    """1 per row, 0 for those of a free base, whose q is not theirs alone."""
    own = [model.joint_kinds[i] != "free" for i in model.rows.link]
    return jnp.asarray(own, like.dtype)
