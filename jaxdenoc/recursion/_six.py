"""Links as rows of 6×6 matrices, and their algebra, in full precision everywhere."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..spatial import Mat3, Shift, skew
from ._kinematics import Body

Blocks = Float[Array, "r 6 6"]
Vectors = Float[Array, "r 6"]


class Links(eqx.Module):
    """What the scans know of the links and their joints."""

    M: Blocks
    phi: Blocks
    H: Vectors
    armature: Float[Array, " r"]


mul = partial(jnp.matmul, precision="highest")


def times(A: Blocks, x: Vectors) -> Vectors:
    """A x."""
    return mul(A, x[..., None])[..., 0]


def dot(x: Vectors, y: Vectors) -> Float[Array, " r"]:
    return jnp.sum(x * y, axis=-1)


def outer(x: Vectors, y: Vectors) -> Blocks:
    """x yᵀ."""
    return x[..., :, None] * y[..., None, :]


def eye(like: Blocks) -> Blocks:
    return jnp.broadcast_to(jnp.eye(6, dtype=like.dtype), like.shape)


def quadratic(A: Array, S: Array) -> Array:
    """A S Aᵀ."""
    return mul(mul(A, S), A.mT)


def square(A: Array) -> Array:
    """A Aᵀ."""
    return mul(A, A.mT)


def symmetric(A: Blocks) -> Blocks:
    return (A + A.mT) / 2


def shift_matrix(phi: Shift) -> Blocks:
    """φ = [[1, l̃], [0, 1]]."""
    corner = skew(phi.l).array
    one = jnp.broadcast_to(jnp.eye(3, dtype=corner.dtype), corner.shape)
    return jnp.block([[one, corner], [jnp.zeros_like(corner), one]])


def inertia_matrix(body: Body, R: Mat3) -> Blocks:
    """M in base axes, [[I_C + m c̃ c̃ᵀ, m c̃], [m c̃ᵀ, m 1]] [MATH 1.5]."""
    c, m = skew(R @ body.c).array, body.m[:, None, None]
    moments = quadratic(R.array, body.I_C.array) + m * square(c)
    one = jnp.broadcast_to(jnp.eye(3, dtype=c.dtype), c.shape)
    return jnp.block([[moments, m * c], [m * c.mT, m * one]])


@jax.vmap
def root(S: Float[Array, "6 6"]) -> Float[Array, "6 6"]:
    """L with L Lᵀ = S, which may be singular: Cholesky, the largest pivot first.

    L is triangular but for the order of its rows.
    """
    columns = []
    for _ in range(6):
        d = jnp.diagonal(S)
        p = jnp.argmax(d)
        c = jnp.where(d[p] > 0, S[p] / jnp.sqrt(jnp.where(d[p] > 0, d[p], 1)), 0)
        done = jnp.arange(6) == p
        S = jnp.where(done[:, None] | done[None], 0, S - c[:, None] * c[None])
        columns.append(c)
    return jnp.stack(columns, axis=1)


@jax.vmap
def triangular(B: Float[Array, "6 m"]) -> tuple[Array, Array]:
    """B = T Q, T lower triangular, the rows of Q orthonormal or zero.

    By Gram and Schmidt, the modified way: T is as good as that of reflections. For so
    small a matrix it is faster than a call of LAPACK.
    """
    T, Q = [], []
    for k in range(6):
        length = jnp.sqrt(jnp.sum(B[k] * B[k]))
        q = B[k] / jnp.where(length > 0, length, 1)
        t = jnp.sum(B * q[None], axis=1)
        B = B - t[:, None] * q[None]
        T.append(t)
        Q.append(q)
    return jnp.stack(T, axis=1), jnp.stack(Q)
