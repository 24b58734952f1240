"""Solves with U and Uᵀ in O(log n) depth: affine maps composed [MATH 6.1, 9.1]."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import Joints
from ..model import Tree
from ._parallel import inward, of_children, of_parents, outward
from ._six import Blocks, Links, Vectors, dot, eye, mul, outer, times

Vector = Float[Array, "6"]


class Released(eqx.Module):
    """Links whose joints move freely, one row each."""

    link: Links
    D: Float[Array, " r"]
    G: Vectors
    psi: Blocks  # φ τ̄


def released(P: Blocks, link: Links) -> Released:
    """F = P H* ,   D = H F + armature ,   G = F D⁻¹ ,   ψ = φ (1 - G H)."""
    F = times(P, link.H)
    D = dot(F, link.H) + link.armature
    G = F / D[:, None]
    return Released(link, D, G, mul(link.phi, eye(P) - outer(G, link.H)))


def solve_U(at: Released, f: Vectors, b: Joints, tree: Tree) -> tuple[Joints, Vector]:
    """ê = D⁻¹ e with U e = b - H φ f, and the wrench that arrives at the base.

    z = f + Σ m   over the children
    e = b - H z
    m = φ (z + G e) = ψ z + φ G b
    """

    def element(total, row):
        f, b, at = row
        driven = times(at.link.phi, at.G * b[:, None])
        return Affine(at.psi, times(at.psi, f + total) + driven)

    zero = jnp.zeros(6, f.dtype)
    m = inward(element, compose, apply, (f, b, at), zero, tree)
    arriving, at_base = of_children(m, tree)
    return (b - dot(at.link.H, f + arriving)) / at.D, at_base


def solve_UT(at: Released, e: Joints, root: Vector, tree: Tree) -> Joints:
    """x with Uᵀ x = e, and the base accelerated by `root`.

    a⁺ = φ* a_parent
    x  = e - G* a⁺
    a  = a⁺ + H* x = ψ* a_parent + H* e
    """
    steps = Affine(at.psi.mT, at.link.H * e[:, None])
    a = outward(compose, apply, steps, root, tree)
    before = times(at.link.phi.mT, of_parents(a, root, tree))
    return e - dot(at.G, before)


class Affine(eqx.Module):
    """x ↦ A x + b."""

    A: Blocks
    b: Vectors


def compose(one: Affine, two: Affine) -> Affine:
    """A = A₂ A₁ ,   b = A₂ b₁ + b₂."""
    return Affine(mul(two.A, one.A), apply(two, one.b))


def apply(step: Affine, x: Vectors) -> Vectors:
    return times(step.A, x) + step.b
