"""3×3 matrices as named scalars: a general one, and a symmetric one."""

from typing import overload

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import Scalar
from ._vectors import Vec3


class Mat3(eqx.Module):
    """Nine numbers, as three rows; a rotation's columns are the body's axes."""

    x: Vec3
    y: Vec3
    z: Vec3

    @classmethod
    def of(cls, a: Float[Array, "*rows 3 3"]) -> "Mat3":
        return cls(*(Vec3.of(a[..., k, :]) for k in range(3)))

    @property
    def array(self) -> Float[Array, "*rows 3 3"]:
        return jnp.stack([self.x.array, self.y.array, self.z.array], axis=-2)

    @property
    def T(self):
        a, b, c = self.x, self.y, self.z
        return Mat3(Vec3(a.x, b.x, c.x), Vec3(a.y, b.y, c.y), Vec3(a.z, b.z, c.z))

    def __add__(self, b):
        return Mat3(self.x + b.x, self.y + b.y, self.z + b.z)

    def __sub__(self, b):
        return Mat3(self.x - b.x, self.y - b.y, self.z - b.z)

    def __mul__(self, s):
        return Mat3(self.x * s, self.y * s, self.z * s)

    @overload
    def __matmul__(self, b: "Mat3") -> "Mat3": ...

    @overload
    def __matmul__(self, b: Vec3) -> Vec3: ...

    def __matmul__(self, b):
        if isinstance(b, Mat3):
            b = b.T
            return Mat3(*(Vec3(r @ b.x, r @ b.y, r @ b.z) for r in self.rows))
        return Vec3(self.x @ b, self.y @ b, self.z @ b)

    @property
    def rows(self):
        return self.x, self.y, self.z


class Sym3(eqx.Module):
    """A symmetric 3×3 matrix, six numbers."""

    xx: Scalar
    xy: Scalar
    xz: Scalar
    yy: Scalar
    yz: Scalar
    zz: Scalar

    @classmethod
    def of(cls, a: Float[Array, "*rows 3 3"]) -> "Sym3":
        return cls(*(a[..., i, j] for i in range(3) for j in range(i, 3)))

    @property
    def mat(self) -> Mat3:
        a = self
        return Mat3(
            Vec3(a.xx, a.xy, a.xz), Vec3(a.xy, a.yy, a.yz), Vec3(a.xz, a.yz, a.zz)
        )

    @property
    def array(self) -> Float[Array, "*rows 3 3"]:
        return self.mat.array

    def __add__(self, b):
        a = self
        return Sym3(
            a.xx + b.xx, a.xy + b.xy, a.xz + b.xz, a.yy + b.yy, a.yz + b.yz, a.zz + b.zz
        )

    def __sub__(self, b):
        return self + b * -1

    def __mul__(self, s):
        a = self
        return Sym3(a.xx * s, a.xy * s, a.xz * s, a.yy * s, a.yz * s, a.zz * s)

    def __matmul__(self, b: Vec3) -> Vec3:
        a = self
        return Vec3(
            a.xx * b.x + a.xy * b.y + a.xz * b.z,
            a.xy * b.x + a.yy * b.y + a.yz * b.z,
            a.xz * b.x + a.yz * b.y + a.zz * b.z,
        )


def rotate(R: Mat3, S: Sym3) -> Sym3:
    """R S Rᵀ."""
    A = Mat3(S @ R.x, S @ R.y, S @ R.z)  # rows of R S, because S is symmetric
    return Sym3(A.x @ R.x, A.x @ R.y, A.x @ R.z, A.y @ R.y, A.y @ R.z, A.z @ R.z)


def outer(a: Vec3, b: Vec3) -> Mat3:
    """a bᵀ."""
    return Mat3(b * a.x, b * a.y, b * a.z)


def outer_sym(a: Vec3, b: Vec3) -> Sym3:
    """a bᵀ where it is known to be symmetric: a and b are parallel."""
    return Sym3(a.x * b.x, a.x * b.y, a.x * b.z, a.y * b.y, a.y * b.z, a.z * b.z)


def both(a: Vec3, b: Vec3) -> Sym3:
    """a bᵀ + b aᵀ."""
    return Sym3(
        2 * a.x * b.x,
        a.x * b.y + a.y * b.x,
        a.x * b.z + a.z * b.x,
        2 * a.y * b.y,
        a.y * b.z + a.z * b.y,
        2 * a.z * b.z,
    )


def with_transpose(A: Mat3) -> Sym3:
    """A + Aᵀ."""
    x, y, z = A.rows
    return Sym3(2 * x.x, x.y + y.x, x.z + z.x, 2 * y.y, y.z + z.y, 2 * z.z)


def second_moment(k: Vec3, l: Vec3) -> Sym3:
    """(k·l) 1 - ½ (k lᵀ + l kᵀ), the symmetric part of k̃ l̃ᵀ; m c̃ c̃ᵀ for k = m c."""
    return Sym3(
        k.y * l.y + k.z * l.z,
        -0.5 * (k.x * l.y + k.y * l.x),
        -0.5 * (k.x * l.z + k.z * l.x),
        k.x * l.x + k.z * l.z,
        -0.5 * (k.y * l.z + k.z * l.y),
        k.x * l.x + k.y * l.y,
    )


def skew(a: Vec3) -> Mat3:
    """ã, the matrix of a×."""
    o = a.x * 0
    return Mat3(Vec3(o, -a.z, a.y), Vec3(a.z, o, -a.x), Vec3(-a.y, a.x, o))


def skew_times(a: Vec3, B: Mat3) -> Mat3:
    """ã B."""
    x, y, z = B.rows
    return Mat3(z * a.y - y * a.z, x * a.z - z * a.x, y * a.x - x * a.y)
