"""Spatial inertias as named scalars: of a rigid body, and of an articulated one."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import Scalar
from ._matrices import (
    Mat3,
    Sym3,
    both,
    outer,
    outer_sym,
    second_moment,
    skew_times,
    with_transpose,
)
from ._vectors import Screw, Shift, Twist, Vec3, Wrench


class RigidInertia(eqx.Module):
    """M = [[J, h̃], [h̃ᵀ, m 1]]: mass, first moment h = m c, J about the origin."""

    m: Scalar
    h: Vec3
    J: Sym3

    @classmethod
    def of(cls, m: Scalar, c: Vec3, I_C: Sym3) -> "RigidInertia":
        """From the inertia about the mass centre, J = I_C + m c̃ c̃ᵀ."""
        h = c * m
        return cls(m, h, I_C + second_moment(h, c))

    @classmethod
    def zeros(cls, like: Scalar) -> "RigidInertia":
        o = jnp.zeros_like(like)
        return cls(o, Vec3.zeros(like), Sym3(o, o, o, o, o, o))

    def __add__(self, b):
        return RigidInertia(self.m + b.m, self.h + b.h, self.J + b.J)

    def __matmul__(self, V: Twist | Screw) -> Wrench:  # momentum
        return Wrench(
            self.J @ V.w + self.h.cross(V.v), V.v * self.m + V.w.cross(self.h)
        )

    def shifted(self, phi: Shift) -> "RigidInertia":
        """φ M φ*: the same body about the parent's origin."""
        h = self.h + phi.l * self.m
        return RigidInertia(self.m, h, self.J + second_moment(self.h + h, phi.l))


class ArticulatedInertia(eqx.Module):
    """P = [[J, C], [Cᵀ, M]], a symmetric 6×6 matrix in 6 + 9 + 6 numbers."""

    J: Sym3
    C: Mat3
    M: Sym3

    @classmethod
    def zeros(cls, like: Scalar) -> "ArticulatedInertia":
        o, v = jnp.zeros_like(like), Vec3.zeros(like)
        J = Sym3(o, o, o, o, o, o)
        return cls(J, Mat3(v, v, v), J)

    def __add__(self, b: RigidInertia) -> "ArticulatedInertia":
        J, C, M, h, m = self.J + b.J, self.C, self.M, b.h, b.m
        C = Mat3(
            Vec3(C.x.x, C.x.y - h.z, C.x.z + h.y),
            Vec3(C.y.x + h.z, C.y.y, C.y.z - h.x),
            Vec3(C.z.x - h.y, C.z.y + h.x, C.z.z),
        )
        return ArticulatedInertia(
            J, C, Sym3(M.xx + m, M.xy, M.xz, M.yy + m, M.yz, M.zz + m)
        )

    def __matmul__(self, V: Twist | Screw) -> Wrench:
        return Wrench(self.J @ V.w + self.C @ V.v, self.C.T @ V.w + self.M @ V.v)

    def minus_outer(self, G: Wrench, b: Wrench) -> "ArticulatedInertia":
        """P - G bᵀ for parallel G and b, as in P⁺ = P - G D Gᵀ."""
        return ArticulatedInertia(
            self.J - outer_sym(G.n, b.n),
            self.C - outer(G.n, b.f),
            self.M - outer_sym(G.f, b.f),
        )

    def minus_both(self, a: Wrench, b: Wrench) -> "ArticulatedInertia":
        """P - a bᵀ - b aᵀ."""
        return ArticulatedInertia(
            self.J - both(a.n, b.n),
            self.C - outer(a.n, b.f) - outer(b.n, a.f),
            self.M - both(a.f, b.f),
        )

    def carried_by(self, V: Twist) -> "ArticulatedInertia":
        """W + Wᵀ with W = crf(V) P: the rate of P where it moves along with V."""
        J, C, M, w, v = self.J.mat, self.C, self.M.mat, V.w, V.v
        return ArticulatedInertia(
            with_transpose(skew_times(w, J) + skew_times(v, C.T)),
            skew_times(w, C) + skew_times(w, C.T).T + skew_times(v, M),
            with_transpose(skew_times(w, M)),
        )

    def __mul__(self, s):
        return ArticulatedInertia(self.J * s, self.C * s, self.M * s)

    def plus(self, b: "ArticulatedInertia") -> "ArticulatedInertia":
        return ArticulatedInertia(self.J + b.J, self.C + b.C, self.M + b.M)

    def shifted(self, phi: Shift) -> "ArticulatedInertia":
        """φ P φ*: C' = C + l̃ M and J' = J + l̃ C'ᵀ + C l̃ᵀ, in the six entries of J'."""
        l, C, J = phi.l, self.C, self.J
        C1 = C + skew_times(l, self.M.mat)
        x, y, z, x1, y1, z1 = C.x, C.y, C.z, C1.x, C1.y, C1.z
        return ArticulatedInertia(
            Sym3(
                J.xx + l.y * (x1.z + x.z) - l.z * (x1.y + x.y),
                J.xy + l.y * y1.z - l.z * y1.y + l.z * x.x - l.x * x.z,
                J.xz + l.y * z1.z - l.z * z1.y + l.x * x.y - l.y * x.x,
                J.yy + l.z * (y1.x + y.x) - l.x * (y1.z + y.z),
                J.yz + l.z * z1.x - l.x * z1.z + l.x * y.y - l.y * y.x,
                J.zz + l.x * (z1.y + z.y) - l.y * (z1.x + z.x),
            ),
            C1,
            self.M,
        )

    @property
    def array(self) -> Float[Array, "*rows 6 6"]:
        return jnp.block([[self.J.array, self.C.array], [self.C.T.array, self.M.array]])
