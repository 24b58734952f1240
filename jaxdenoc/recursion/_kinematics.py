"""Outward: where the links are, how they move, which wrench their motion needs."""

import equinox as eqx
import jax.numpy as jnp

from .._types import Joints, Position, Scalar
from ..model import Joint, Model, Tree, joints
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

    def inertia(self, R: Mat3) -> RigidInertia:
        """M in base axes, about the link's origin [MATH 1.5]."""
        return RigidInertia.of(self.m, R @ self.c, rotate(R, self.I_C))


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

    def step(parent, joint: Joint):
        R, o = parent
        R, phi, H = joint.place(R)
        o = o + phi.l
        return (R, o), (R, o, phi, H)

    start = upright(q[0]), Vec3.zeros(q[0])
    tree = model.rows.tree
    return Posture(*base_to_tip(step, start, joints(model, q), tree), tree)


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


class Motion(eqx.Module):
    """What `motion` leaves behind for the inward sweeps, one row per velocity."""

    phi: Shift
    H: Screw
    M: RigidInertia
    f: Wrench  # which the link's motion and its weight need


def motion(
    model: Model, q: Position, qd: Joints, qdd: Joints | None, fext: Wrench | None
) -> Motion:
    """One outward sweep: kinematics, and the wrench on every link [MATH 3.1].

        V  = φ* V_parent + H θ̇                          V = 0 at the base
        a  = φ* a_parent + H θ̈ + V × H θ̇                a = [0; -g] at the base
        f  = M a + V ×* M V - f_ext

    All in one sweep, because what a sweep stacks is what a large batch pays for.
    Rates, accelerations and wrenches (body axes) are in row order; `None` is zero.
    """

    def step(parent, link):
        R, V, a = parent
        joint, body, qd, qdd, fext = link
        R, phi, H = joint.place(R)
        V = phi.twist(V)
        a = phi.twist(a) + V.cross(H * (qd * joint.carried))
        V = V + H * qd
        if qdd is not None:
            a = a + H * qdd
        M = body.inertia(R)
        f = M @ a + V.cross_wrench(M @ V)
        if fext is not None:
            f = f - Wrench(R @ fext.n, R @ fext.f)
        return (R, V, a), Motion(phi, H, M, f)

    g = Vec3.of(model.gravity) * jnp.ones_like(q[0])
    rest = Vec3.zeros(q[0])
    start = upright(q[0]), Twist(rest, rest), Twist(rest, -g)
    links = joints(model, q), bodies(model), qd, qdd, fext
    return base_to_tip(step, start, links, model.rows.tree)


def upright(like) -> Mat3:
    o, i = jnp.zeros_like(like), jnp.ones_like(like)
    return Mat3(Vec3(i, o, o), Vec3(o, i, o), Vec3(o, o, i))
