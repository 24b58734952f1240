"""How the kinematic Jacobian changes: J̇, ∂J/∂q_k, and J̇ θ̇.

All joint axes S and twists V are taken about the frame's origin. An axis moves with the
link that its joint moves, so that the base sees it change by V_j × S_j; the frame sees
V_j - V instead [MATH 1.3, 10.2]. Base axes at the frame's origin move along with the
frame and do not turn: in them, the frame's ω × S_j comes back on top.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._jit import jitted
from .._types import Joints, Position
from ..dynamics import check_state
from ..dynamics._kinematics import Axes, Frame, axes_about, check_axes, frame_at
from ..model import Model, Rows, locate
from ..recursion import posture, twists
from ..spatial import Shift, Twist, Vec3


@jitted("link", "axes")
def jacobian_rate(
    model: Model, q: Position, qd: Joints, link: int | str, *, axes: Axes = "body"
) -> Float[Array, "6 v"]:
    """J̇ along θ̇: the rates of the entries of `jacobian`, in the same axes.

        J̇_j = S_j × (V - V_j)               the frame's axes
        J̇_j = S_j × (V - V_j) + ω × S_j     base axes

    with V_j of the link that joint j moves, V and ω of the frame [MATH 1.3, 10.2].
    """
    check_axes(axes)
    check_state(model, q=q, qd=qd)
    if locate(model, link)[0] < 0:
        return jnp.zeros((6, model.nv), q.dtype)
    frame, S, V, relative = _moving(model, q, qd, link)
    rate = S.cross(relative)
    rate = frame.own(rate) if axes == "body" else rate + _turned(V.w, S)
    return model.rows.to_velocities(rate.array).T


@jitted("link", "axes")
def bias_acceleration(
    model: Model, q: Position, qd: Joints, link: int | str, *, axes: Axes = "body"
) -> Float[Array, "6"]:
    """J̇ θ̇, the acceleration of a link or frame where θ̈ = 0, in O(n), without J̇.

        J̇ θ̇ = Σ S_j θ̇_j × (V - V_j)             the frame's axes
        J̇ θ̇ = Σ S_j θ̇_j × (V - V_j) + ω × V     base axes

    The sum is that of V_j × S_j θ̇_j, as an outward sweep collects it [MATH 3.1],
    because V × V = 0. V̇ = J θ̈ + J̇ θ̇ holds for a free base too.
    """
    check_axes(axes)
    check_state(model, q=q, qd=qd)
    if locate(model, link)[0] < 0:
        return jnp.zeros(6, q.dtype)
    frame, S, V, relative = _moving(model, q, qd, link)
    a = S.cross(relative) * model.rows.from_velocities(qd)
    a = jax.tree.map(jnp.sum, a)
    a = frame.own(a) if axes == "body" else a + _turned(V.w, V)
    return a.array


@jitted("link", "axes")
def jacobian_derivatives(
    model: Model, q: Position, link: int | str, *, axes: Axes = "body"
) -> Float[Array, "v 6 v"]:
    """∂J/∂q_k for every k, as `[k]` [MATH 1.3, 7.3].

        ∂J_j/∂q_k = S_j × S_k   for k beyond joint j, and zero else    the frame's axes
        ∂J_j/∂q_k = the same + ω_k × S_j                               base axes

    for j and k that move the frame, ω_k the angular part of S_k. For a free base q_k
    means the direction of qd_k; its axes are fixed to the link, whichever of them moves
    it, so that none of them is beyond another.
    """
    check_axes(axes)
    check_state(model, q=q)
    rows = model.rows
    if locate(model, link)[0] < 0:
        return jnp.zeros((model.nv, 6, model.nv), q.dtype)
    here = posture(model, q)
    frame = frame_at(model, here, link)
    S = axes_about(here, frame)
    if axes == "body":
        S = frame.own(S)

    def along(row):  # ∂J/∂q_k
        S_k, beyond = row
        dJ = S.cross(S_k) * beyond
        if axes == "base":
            dJ = dJ + _turned(S_k.w, S)
        return rows.to_velocities(dJ.array).T

    # a loop and no broadcast, in which XLA would compute S anew for every pair
    beyond = jnp.asarray(_beyond(rows), q.dtype)
    return rows.to_velocities(lax.map(along, (S, beyond)))


def _moving(
    model: Model, q: Position, qd: Joints, link: int | str
) -> tuple[Frame, Twist, Twist, Twist]:
    """The frame, the S of all rows, V of the frame, and V - V_j of all rows."""
    rows = model.rows
    here = posture(model, q)
    frame = frame_at(model, here, link)
    V_j = twists(here.phi, here.H, rows.from_velocities(qd), rows.tree)
    V_j = rows.from_links(rows.to_links(V_j))  # a joint's axes all move with its link
    V_j = Shift(frame.o - here.o).twist(V_j)
    V = jax.tree.map(lambda x: x[frame.row], V_j)
    return frame, axes_about(here, frame), V, V - V_j


def _turned(w: Vec3, X: Twist) -> Twist:
    """How X changes with the axes that it is fixed in, where they turn by w."""
    return Twist(w.cross(X.w), w.cross(X.v))


def _beyond(rows: Rows) -> np.ndarray:
    """`[k, j]`: the joint of row k comes after that of row j, on the way outwards."""
    return (rows.tree.ancestry & ~np.equal.outer(rows.link, rows.link)).T
