"""Outward: how a link gives way to a wrench on it, its inverse inertia Υ."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import Joints, Scalar
from ..model import Tree
from ..spatial import ArticulatedInertia, Screw, Shift, Twist, Wrench
from ._sweep import base_to_tip


class Mobility(eqx.Module):
    """A symmetric 6×6 matrix from wrenches to twists.

    Kept as an articulated inertia with the linear part first: φ* Υ φ is then φ P φ*
    with the shift turned round.
    """

    linear_first: ArticulatedInertia

    @classmethod
    def zeros(cls, like: Scalar) -> "Mobility":
        return cls(ArticulatedInertia.zeros(like))

    def __matmul__(self, f: Wrench) -> Twist:
        a = self.linear_first @ Twist(f.f, f.n)
        return Twist(a.f, a.n)

    def shifted(self, phi: Shift) -> "Mobility":
        """φ* Υ φ: from the parent's origin to the link's."""
        return Mobility(self.linear_first.shifted(Shift(-phi.l)))

    def minus_both(self, a: Twist, b: Twist) -> "Mobility":
        """Υ - a bᵀ - b aᵀ."""
        a_, b_ = Wrench(a.v, a.w), Wrench(b.v, b.w)
        return Mobility(self.linear_first.minus_both(a_, b_))

    @property
    def array(self) -> Float[Array, "*rows 6 6"]:
        return jnp.roll(self.linear_first.array, 3, axis=(-2, -1))


def mobilities(phi: Shift, H: Screw, D: Joints, G: Wrench, tree: Tree) -> Mobility:
    """Υ of every row [J&R; MATH 6.3].

        Υ = H* D⁻¹ H + ψ* Υ_parent ψ ,   ψ = φ (1 - G H)

    With X = φ* Υ_parent φ and k = X G - ½ (D⁻¹ + G* X G) H* that is X - H* k* - k H.
    """

    def step(parent: Mobility, link):
        phi, H, D, G = link
        X = parent.shifted(phi)
        XG = X @ G
        k = XG - H * ((1 / D + G @ XG) / 2)
        here = X.minus_both(H.twist, k)
        return here, here

    return base_to_tip(step, Mobility.zeros(D[0]), (phi, H, D, G), tree)
