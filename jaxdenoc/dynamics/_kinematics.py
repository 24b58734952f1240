"""Poses and Jacobians of links and frames."""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._jit import jitted
from .._types import Poses, Position
from ..model import Model, locate
from ..recursion import posture
from ..spatial import Vec3
from ._state import check_state


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
    model: Model,
    q: Position,
    link: int | str,
    *,
    axes: Literal["body", "base"] = "body",
) -> Float[Array, "6 v"]:
    """J with V = J θ̇: the twist of a link or named frame, about its own origin.

    A block row of φ* H* (N_l N_d) [MATH 2]. `axes` are the frame's own or the base's.
    """
    if axes not in ("body", "base"):
        raise ValueError(f"axes is '{axes}'; it can be 'body' or 'base'.")
    check_state(model, q=q)
    i, R_frame, t = locate(model, link)
    rows = model.rows
    if i < 0:
        return jnp.zeros((6, model.nv), q.dtype)
    here = posture(model, q)
    row = rows.body[i]
    R, o = here.R.array[row], here.o.array[row]
    origin = o + R @ t
    H, reach = here.H, Vec3.of(origin[None]) - here.o
    v = (H.v + H.w.cross(reach)).array
    moves = jnp.asarray(np.array(rows.tree.ancestry)[:, row][:, None], q.dtype)
    J = jnp.stack([H.w.array * moves, v * moves])  # (2, v, 3)
    if axes == "body":
        J = J @ (R @ R_frame)
    J = J.transpose(0, 2, 1).reshape(6, model.nv)
    return rows.to_velocities(J.T).T


def _pose(R, t):
    return jnp.eye(4, dtype=t.dtype).at[:3, :3].set(R).at[:3, 3].set(t)
