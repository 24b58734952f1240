"""Poses and Jacobians of links and frames."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._jit import jitted
from .._types import Poses, Position
from ..model import Model, locate
from ..recursion import Posture, posture
from ..spatial import Mat3, Shift, Twist, Vec3
from ._state import check_state

Axes = Literal["body", "base"]


@jitted()
def forward_kinematics(model: Model, q: Position) -> Poses:
    """The pose of every link in base axes, 4×4: its axes and its origin."""
    check_state(model, q=q)
    here = posture(model, q)
    R, o = model.rows.to_links((here.R, here.o))
    return jax.vmap(_pose)(R.array, o.array)


@jitted("link")
def frame_pose(model: Model, q: Position, link: int | str) -> Float[Array, "4 4"]:
    """The pose of one link or named frame in base axes."""
    i, R, t = locate(model, link)
    if i < 0:
        return _pose(R, t)
    return forward_kinematics(model, q)[i] @ _pose(R, t)


@jitted("link", "axes")
def jacobian(
    model: Model, q: Position, link: int | str, *, axes: Axes = "body"
) -> Float[Array, "6 v"]:
    """J with V = J θ̇: the twist of a link or named frame, about its own origin.

    A block row of φ* H* (N_l N_d) [MATH 2]. `axes` are the frame's own or the base's.
    """
    check_axes(axes)
    check_state(model, q=q)
    if locate(model, link)[0] < 0:
        return jnp.zeros((6, model.nv), q.dtype)
    here = posture(model, q)
    frame = frame_at(model, here, link)
    S = axes_about(here, frame)
    if axes == "body":
        S = frame.own(S)
    return model.rows.to_velocities(S.array).T


class Frame(eqx.Module):
    """A frame that moves with the robot, at q, in base axes."""

    row: int = eqx.field(static=True)  # that it moves with
    R: Mat3  # columns: its axes
    o: Vec3  # origin, from the base's

    def own(self, X: Twist) -> Twist:
        """What is in base axes, in the frame's own."""
        return Twist(self.R.T @ X.w, self.R.T @ X.v)


def frame_at(model: Model, here: Posture, link: int | str) -> Frame:
    """A link or named frame that is not fixed to the base."""
    i, R_frame, t = locate(model, link)
    row = model.rows.body[i]
    R, o = jax.tree.map(lambda x: x[row], (here.R, here.o))
    return Frame(row, R @ Mat3.of(R_frame), o + R @ Vec3.of(t))


def axes_about(here: Posture, frame: Frame) -> Twist:
    """S with V = Σ S θ̇: the axes of the joints that move a frame, about its origin.

    One per row, in base axes; zero for the joints that do not move it.
    """
    moves = jnp.asarray(here.tree.ancestry[:, frame.row], frame.o.x.dtype)
    return Shift(frame.o - here.o).twist(here.H.twist) * moves


def check_axes(axes: str) -> None:
    if axes not in ("body", "base"):
        raise ValueError(f"axes is '{axes}'; it can be 'body' or 'base'.")


def _pose(R, t):
    return jnp.eye(4, dtype=t.dtype).at[:3, :3].set(R).at[:3, 3].set(t)
