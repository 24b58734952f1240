"""Spatial vectors as named scalars, with the algebra of the papers.

Written for one link; a row of links, or a batch of robots, turns every scalar into
an array and every operation below into one elementwise operation. All components are
in base axes, all moments about the link's own origin, angular parts first.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import Scalar


class Vec3(eqx.Module):
    x: Scalar
    y: Scalar
    z: Scalar

    @classmethod
    def of(cls, a: Float[Array, "*rows 3"]) -> "Vec3":
        return cls(a[..., 0], a[..., 1], a[..., 2])

    @classmethod
    def zeros(cls, like: Scalar) -> "Vec3":
        o = jnp.zeros_like(like)
        return cls(o, o, o)

    @property
    def array(self) -> Float[Array, "*rows 3"]:
        return jnp.stack([self.x, self.y, self.z], axis=-1)

    def __add__(self, b):
        return Vec3(self.x + b.x, self.y + b.y, self.z + b.z)

    def __sub__(self, b):
        return Vec3(self.x - b.x, self.y - b.y, self.z - b.z)

    def __neg__(self):
        return Vec3(-self.x, -self.y, -self.z)

    def __mul__(self, s):
        return Vec3(self.x * s, self.y * s, self.z * s)

    def __truediv__(self, s):
        return Vec3(self.x / s, self.y / s, self.z / s)

    def __matmul__(self, b):
        return self.x * b.x + self.y * b.y + self.z * b.z

    def cross(self, b):
        a = self
        return Vec3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x)


class Twist(eqx.Module):
    """V = [ω; v], or anything that moves like one: an acceleration, a joint axis."""

    w: Vec3
    v: Vec3

    @classmethod
    def of(cls, a: Float[Array, "*rows 6"]) -> "Twist":
        return cls(Vec3.of(a[..., :3]), Vec3.of(a[..., 3:]))

    @classmethod
    def zeros(cls, like: Scalar) -> "Twist":
        return cls(Vec3.zeros(like), Vec3.zeros(like))

    @property
    def array(self) -> Float[Array, "*rows 6"]:
        return jnp.concatenate([self.w.array, self.v.array], axis=-1)

    def __add__(self, b):
        return Twist(self.w + b.w, self.v + b.v)

    def __sub__(self, b):
        return Twist(self.w - b.w, self.v - b.v)

    def __mul__(self, s):
        return Twist(self.w * s, self.v * s)

    def cross(self, b: "Twist") -> "Twist":
        """V × X on twists, crm(V) X."""
        return Twist(self.w.cross(b.w), self.w.cross(b.v) + self.v.cross(b.w))

    def cross_wrench(self, f: "Wrench") -> "Wrench":
        """V ×* f on wrenches, crf(V) f = -crm(V)ᵀ f."""
        return Wrench(self.w.cross(f.n) + self.v.cross(f.f), self.w.cross(f.f))


class Screw(eqx.Module):
    """A joint axis as a twist, H = [turn h; slide h], which is how it is kept.

    It stands wherever a `Twist` is read; `turn` and `slide` do not change with the
    state, so a batch of states carries three numbers a link instead of six.
    """

    h: Vec3
    turn: Scalar
    slide: Scalar

    @property
    def w(self) -> Vec3:
        return self.h * self.turn

    @property
    def v(self) -> Vec3:
        return self.h * self.slide

    @property
    def twist(self) -> Twist:
        return Twist(self.w, self.v)

    def __mul__(self, s) -> Twist:
        return self.twist * s


class Wrench(eqx.Module):
    """f = [moment; force], or anything that acts like one: a momentum, P H."""

    n: Vec3
    f: Vec3

    @classmethod
    def of(cls, a: Float[Array, "*rows 6"]) -> "Wrench":
        return cls(Vec3.of(a[..., :3]), Vec3.of(a[..., 3:]))

    @classmethod
    def zeros(cls, like: Scalar) -> "Wrench":
        return cls(Vec3.zeros(like), Vec3.zeros(like))

    @property
    def array(self) -> Float[Array, "*rows 6"]:
        return jnp.concatenate([self.n.array, self.f.array], axis=-1)

    def __add__(self, b):
        return Wrench(self.n + b.n, self.f + b.f)

    def __sub__(self, b):
        return Wrench(self.n - b.n, self.f - b.f)

    def __mul__(self, s):
        return Wrench(self.n * s, self.f * s)

    def __truediv__(self, s):
        return Wrench(self.n / s, self.f / s)

    def __matmul__(self, V: Twist | Screw):  # power
        return self.n @ V.w + self.f @ V.v


class Shift(eqx.Module):
    """φ(p(i), i) in base axes; `l` runs from the parent's origin to link i's."""

    l: Vec3

    def wrench(self, f: Wrench) -> Wrench:  # φ f
        return Wrench(f.n + self.l.cross(f.f), f.f)

    def twist(self, V: Twist) -> Twist:  # φ* V
        return Twist(V.w, V.v + V.w.cross(self.l))
