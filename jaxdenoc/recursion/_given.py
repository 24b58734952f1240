"""What the sweeps of inverse dynamics are given: the arguments, row by row.

Every number of the model and of the state enters the sweeps through one of these, by
elementwise arithmetic. So derivatives come in two parts: those of the sweeps with
respect to what they are given, in closed form (`_adjoint.py`), and those of what they
are given, which plain autodiff does well.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import Joints, Position, Spatial
from ..model import Model, joints
from ..spatial import Mat3, Vec3, Wrench
from ._kinematics import Body, bodies


class Given(eqx.Module):
    """One row per velocity."""

    q: Joints  # of the joints of one degree of freedom, zero in other rows
    qd: Joints
    qdd: Joints | None
    turned: Mat3  # the link's axes in its parent's, apart from q
    moved: Vec3  # its origin from its parent's, in the parent's axes, apart from q
    h: Vec3  # the joint's axis, body axes
    slide: Joints  # metres per unit of q
    body: Body
    fext: Wrench | None  # body axes
    gravity: Float[Array, "3"]


def given(
    model: Model,
    q: Position,
    qd: Joints,
    qdd: Joints | None,
    fext: Spatial | None,
    held: Position,
) -> Given:
    """`held` is q again, but does not move when q does.

    The pose of a link then moves with the model's numbers and with a free base, and
    its motion about its own joint's axis is that of the row `q`.
    """
    rows = model.rows
    none = jnp.zeros_like(q[:6])
    free = model.floating_base
    joint = joints(model, jnp.concatenate([q[:7], held[7:]]) if free else held)
    return Given(
        jnp.concatenate([none, q[7:]]) if free else q,
        rows.from_velocities(qd),
        None if qdd is None else rows.from_velocities(qdd),
        joint.turned,
        joint.moved,
        joint.screw.h,
        joint.screw.slide,
        bodies(model),
        None if fext is None else rows.from_bodies(Wrench.of(fext)),
        model.gravity,
    )


def on_manifold(model: Model) -> Model:
    """The model, whose rotations and axes are differentiated along themselves only.

    Nine numbers are a rotation only together, and three a unit vector. What a formula
    does off these is an accident of how it is written.
    """
    where = lambda m: (m.placement.rotation, m.axis)  # noqa: E731
    R, h = where(model)
    return eqx.tree_at(where, model, (_rotation(R), _unit(h)))


@jax.custom_jvp
def _rotation(R: Float[Array, "n 3 3"]) -> Float[Array, "n 3 3"]:
    return R


@_rotation.defjvp
def _along_rotations(at, along):
    (R,), (dR,) = at, along
    A, dA = Mat3.of(R), Mat3.of(dR)
    return R, ((dA - A @ dA.T @ A) * 0.5).array


@jax.custom_jvp
def _unit(h: Float[Array, "n 3"]) -> Float[Array, "n 3"]:
    return h


@_unit.defjvp
def _along_the_sphere(at, along):
    (h,), (dh,) = at, along
    return h, dh - h * jnp.sum(h * dh, axis=1, keepdims=True)
