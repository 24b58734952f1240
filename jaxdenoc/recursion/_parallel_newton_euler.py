"""Inverse dynamics in O(log n) depth: rotations are a scan, and the rest is sums.

In base axes φ* leaves the angular part of a twist alone and φ the force of a wrench.
So these are plain sums along the links, and the other parts are sums of what the first
ones make. No moment is taken about a far origin, which is what would cost digits.
"""

from operator import add

from jaxtyping import Array, Float

from .._types import Joints, Position
from ..model import Model, Tree, carried, joints
from ..spatial import Mat3, Screw, Shift, Twist, Vec3, Wrench
from ._kinematics import Posture, bodies, upright
from ._parallel import inward, of_children, of_parents, outward

Turns = Float[Array, "r 3 3"]


def posture(model: Model, q: Position) -> Posture:
    """Forward kinematics: R = R_parent R_tree R_J(q), the product of all before."""
    tree, joint = model.rows.tree, joints(model, q)
    start = upright(q[0])
    turned = joint.turned.array
    R = Mat3.of(outward(_after, lambda E, R: _after(R, E), turned, start.array, tree))
    phi = Shift(of_parents(R, start, tree) @ joint.moved)
    H = Screw(R @ joint.screw.h, joint.screw.turn, joint.screw.slide)
    return Posture(R, _sum_before(phi.l, Vec3.zeros(q[0]), tree), phi, H, tree)


def _after(A: Turns, B: Turns) -> Turns:
    """A B, written out: faster than calls of a matrix product."""
    parts = [A[:, :, k, None] * B[:, k, None, :] for k in range(3)]
    return parts[0] + parts[1] + parts[2]


def wrenches(
    model: Model, here: Posture, qd: Joints, qdd: Joints | None, fext: Wrench | None
) -> Wrench:
    """The wrench that every link's motion and weight need [MATH 3.1, 9.1].

        V  = φ* (H θ̇)
        a  = φ* (H θ̈ + V⁺ × H θ̇)                        a = [0; -g] at the base
        f  = M a + V ×* M V - f_ext

    V⁺ is V of the parent, carried to the link. Rows and `None` as in the recursion.
    """
    phi, H, R, tree = here.phi, here.H, here.R, here.tree
    rest = Twist.zeros(qd[0])
    V = times_phi_T(phi, H * qd, rest, tree)
    own = phi.twist(of_parents(V, rest, tree)).cross(H * (qd * carried(model)))
    if qdd is not None:
        own = own + H * qdd
    lifted = Twist(rest.w, rest.v - Vec3.of(model.gravity))
    f = bodies(model).wrench(R, V, times_phi_T(phi, own, lifted, tree))
    return f if fext is None else f - Wrench(R @ fext.n, R @ fext.f)


def joint_forces(phi: Shift, H: Screw, f: Wrench, tree: Tree) -> Joints:
    """The joint forces of a wrench on every link, τ = H φ f (Nᵀ w) [Saha 1999 30]."""
    return times_phi(phi, f, tree) @ H


def times_phi_T(phi: Shift, X: Twist, root: Twist, tree: Tree) -> Twist:
    """φ* X, that is V = φ* V_parent + X, by sums over all before a link.

    ω = Σ X_ω ,   v = Σ (X_v + ω_parent × l)
    """
    w = _sum_before(X.w, root.w, tree)
    arm = of_parents(w, root.w, tree).cross(phi.l)
    return Twist(w, _sum_before(X.v + arm, root.v, tree))


def times_phi(phi: Shift, f: Wrench, tree: Tree) -> Wrench:
    """φ f, that is f + Σ φ f over the children, by sums over all beyond a link.

    force = Σ f ,   moment = Σ (n + Σ l × force over the children)
    """
    force = _sum_beyond(f.f, tree)
    arms, _ = of_children(phi.l.cross(force), tree)
    return Wrench(_sum_beyond(f.n + arms, tree), force)


def _sum_before(x: Vec3, root: Vec3, tree: Tree) -> Vec3:
    return Vec3.of(outward(add, add, x.array, root.array, tree))


def _sum_beyond(x: Vec3, tree: Tree) -> Vec3:
    zero = Vec3.zeros(x.x[0]).array
    return Vec3.of(inward(add, add, add, x.array, zero, tree))
