"""Joints: how a coordinate moves a link, and which twist a velocity gives it.

One formula serves every joint of one degree of freedom, without a branch: it turns by
`turn · q` about its axis and slides by `slide · q` along it.

    revolute, continuous   turn = 1   slide = 0
    prismatic              turn = 0   slide = 1
    helical                turn = 1   slide = pitch

A free base is six rows at one place, see `_rows.py`: the first has the whole motion,
and their axes are those of the body.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._types import Joints, Position, Scalar
from ..spatial import Mat3, Screw, Shift, Vec3, sin_versin, skew
from ..spatial import _quaternion as quaternion
from ._model import Model


class Joint(eqx.Module):
    """One row of the outward kinematics, ready for `place`."""

    R0: Mat3  # R_tree R_J = R0 + sin R1 + (1 - cos) R2
    R1: Mat3
    R2: Mat3
    sin: Scalar
    versin: Scalar
    l0: Vec3  # from the parent's origin, l = l0 + slide q l1, parent axes
    l1: Vec3
    slid: Scalar
    screw: Screw  # body axes

    @property
    def turned(self) -> Mat3:
        """The link's axes in its parent's, R_J = 1 + sin h̃ + (1 - cos) h̃ h̃."""
        return self.R0 + self.R1 * self.sin + self.R2 * self.versin

    @property
    def moved(self) -> Vec3:
        """The link's origin from its parent's, in the parent's axes."""
        return self.l0 + self.l1 * self.slid

    def place(self, R: Mat3) -> tuple[Mat3, Shift, Screw]:
        """From the parent's rotation: the link's, φ, and H in base axes [MATH 1.3].

        H = [turn R h; slide R h]
        """
        phi = Shift(R @ self.moved)
        R = R @ self.turned
        return R, phi, Screw(R @ self.screw.h, self.screw.turn, self.screw.slide)


def turn_and_slide(model: Model) -> tuple[Joints, Joints]:
    """Radians and metres per unit of q, one per link."""

    def mask(*kinds):
        return jnp.asarray(np.isin(model.joint_kinds, kinds), model.pitch.dtype)

    slide = mask("prismatic") + mask("helical") * model.pitch
    return mask("revolute", "continuous", "helical"), slide


def carried(model: Model) -> Joints:
    """1 per row, but 0 for those of a free base, whose axes nothing carries along.

    An axis moves with what comes before its joint, V⁺, and adds V⁺ × H θ̇ to the
    acceleration. V⁺ is zero below a free base; between its rows it is not V⁺ that a
    sweep comes by, but part of the joint's own motion.
    """
    own = [model.joint_kinds[i] != "free" for i in model.rows.link]
    return jnp.asarray(own, model.mass.dtype)


def joints(model: Model, q: Position) -> Joint:
    """The joints of a model at q, one row per velocity."""
    free = model.floating_base
    turn, slide = turn_and_slide(model)
    q1 = jnp.concatenate([jnp.zeros_like(q[:1]), q[7:]]) if free else q
    h, R_tree = Vec3.of(model.axis), Mat3.of(model.placement.rotation)
    R1 = R_tree @ skew(h)
    joint = Joint(
        R_tree,
        R1,
        R1 @ skew(h),
        *sin_versin(turn * q1),
        Vec3.of(model.placement.translation),
        R_tree @ h,
        slide * q1,
        Screw(h, turn, slide),
    )
    return _with_free_base(joint, model, q) if free else joint


def _with_free_base(joint: Joint, model: Model, q: Position) -> Joint:
    """Link 0 spread over six rows: all of its motion, then five times none."""
    at_base = jax.tree.map(lambda x: x[0], model.placement)
    R_tree, t_tree = Mat3.of(at_base.rotation), Vec3.of(at_base.translation)
    R = R_tree @ Mat3.of(quaternion.rotation(q[3:7]))
    l = t_tree + R_tree @ Vec3.of(q[:3])
    none = jnp.zeros(6, q.dtype)
    at_rest = Vec3(none, none, none)
    still = jnp.eye(3, dtype=q.dtype)
    axes = jnp.concatenate([still[::-1]] * 2)  # from vz to wx
    turn = jnp.asarray([0.0, 0, 0, 1, 1, 1], q.dtype)
    base = Joint(
        Mat3.of(jnp.stack([R.array, *[still] * 5])),
        Mat3(at_rest, at_rest, at_rest),
        Mat3(at_rest, at_rest, at_rest),
        none,
        none,
        Vec3.of(jnp.stack([l.array, *[none[:3]] * 5])),
        at_rest,
        none,
        Screw(Vec3.of(axes), turn, 1 - turn),
    )
    return jax.tree.map(lambda b, own: jnp.concatenate([b, own[1:]]), base, joint)
