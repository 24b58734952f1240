"""Outward: where the links are, how they move, which wrench their motion needs."""

import equinox as eqx
import jax.numpy as jnp

from .._types import Joints, Position, Scalar
from ..model import Model, Tree, carried, joints
from ..spatial import (
    Mat3,
    RigidInertia,
    Screw,
    Shift,
    Sym3,
    Twist,
    Vec3,
    Wrench,
    rotate,
)
from ._sweep import base_to_tip


class Body(eqx.Module):
    """The mass of a link, in body axes: zero for the inner rows of a joint."""

    m: Scalar
    c: Vec3
    I_C: Sym3

    def turned(self, R: Mat3) -> "Body":
        """The same body in base axes."""
        return Body(self.m, R @ self.c, rotate(R, self.I_C))

    def inertia(self, R: Mat3) -> RigidInertia:
        """M in base axes, about the link's origin [MATH 1.5]."""
        here = self.turned(R)
        return RigidInertia.of(here.m, here.c, here.I_C)

    def wrench(self, R: Mat3, V: Twist, a: Twist) -> Wrench:
        """f = M a + V ×* M V, as Newton and Euler have it: fewer products than with M.

        With the mass centre's c = R c_body and body components ω_b = Rᵀ ω, α_b = Rᵀ α

            force   = m (v̇ + ω × v + α × c + ω × (ω × c))
            moment  = R (I_C α_b + ω_b × I_C ω_b) + c × force
        """
        c, w, alpha = R @ self.c, R.T @ V.w, R.T @ a.w
        force = (a.v + V.w.cross(V.v + V.w.cross(c)) + a.w.cross(c)) * self.m
        spin = self.I_C @ alpha + w.cross(self.I_C @ w)
        return Wrench(R @ spin + c.cross(force), force)


def bodies(model: Model) -> Body:
    of_links = Body(model.mass, Vec3.of(model.com), Sym3.of(model.inertia))
    return model.rows.from_bodies(of_links)


class Posture(eqx.Module):
    """The robot at q in base axes, one row per velocity."""

    R: Mat3  # columns: the body's axes
    o: Vec3  # origin, from the base's
    phi: Shift
    H: Screw
    tree: Tree


def posture(model: Model, q: Position) -> Posture:
    """Forward kinematics: rotations, origins, and with them φ and H.

    R = R_parent R_tree R_J(q) ,   o = o_parent + l
    """

    def step(parent, joint):
        R, o = parent
        R, phi, H = joint.place(R)
        o = o + phi.l
        return (R, o), (R, o, phi, H)

    start = upright(q[0]), Vec3.zeros(q[0])
    tree = model.rows.tree
    R, o, phi, H = base_to_tip(step, start, joints(model, q), tree)
    return Posture(R, o, phi, H, tree)


def twists(phi: Shift, H: Screw, qd: Joints, tree: Tree) -> Twist:
    """The twist of every link, V = φ* H* θ̇ (t = N_l N_d θ̇) [J&R 4.3, Saha 1999 16].

    V⁺ = φ* V_parent
    V  = V⁺ + H* θ̇
    """

    def step(V, link):
        phi, H, qd = link
        V = phi.twist(V) + H * qd
        return V, V

    return base_to_tip(step, Twist.zeros(qd[0]), (phi, H, qd), tree)


def lifted(model: Model, like: Joints) -> Twist:
    """The acceleration of the base that weight is as good as, [0; -g]."""
    g = Vec3.of(model.gravity) * jnp.ones_like(like[0])
    return Twist(Vec3.zeros(like[0]), -g)


def wrenches(
    model: Model,
    here: Posture,
    qd: Joints,
    qdd: Joints | None,
    fext: Wrench | None,
    *,
    weight: bool = True,
) -> Wrench:
    """The wrench that every link's motion and weight need [MATH 3.1].

        V  = φ* V_parent + H θ̇                          V = 0 at the base
        a  = φ* a_parent + H θ̈ + V × H θ̇                a = [0; -g] at the base
        f  = M a + V ×* M V - f_ext

    Rates, accelerations and wrenches (body axes) are in row order; `None` is zero.
    """

    def step(parent, link):
        V, a = parent
        phi, H, R, body, carried, qd, qdd, fext = link
        V = phi.twist(V)
        a = phi.twist(a) + V.cross(H * (qd * carried))
        V = V + H * qd
        if qdd is not None:
            a = a + H * qdd
        f = body.wrench(R, V, a)
        if fext is not None:
            f = f - Wrench(R @ fext.n, R @ fext.f)
        return (V, a), f

    rest = Twist.zeros(qd[0])
    start = rest, lifted(model, qd) if weight else rest
    links = here.phi, here.H, here.R, bodies(model), carried(model), qd, qdd, fext
    return base_to_tip(step, start, links, here.tree)


def upright(like) -> Mat3:
    o, i = jnp.zeros_like(like), jnp.ones_like(like)
    return Mat3(Vec3(i, o, o), Vec3(o, i, o), Vec3(o, o, i))
