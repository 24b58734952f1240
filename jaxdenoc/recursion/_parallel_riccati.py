"""Articulated bodies in O(log n) depth: the Riccati sweep as a scan [MATH 9.2].

What a link sends to its parent, X = φ P⁺ φ* with P = M + Σ X over its children, is a
linear-fractional function of what it receives. Functions of this form are closed under
composition, which is the star product of scattering theory:

    X ↦ A (1 + X J)⁻¹ X A* + C

All matrices are 6×6, in base axes. Each link needs an inertia about its own joint, of
its mass or as an armature: s below is zero for a massless link, which the recursion
allows, and results are then not finite.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..model import Tree
from . import _square_root as square_root
from ._parallel import inward, of_children
from ._six import (
    Blocks,
    Links,
    dot,
    eye,
    mul,
    outer,
    quadratic,
    square,
    symmetric,
    times,
)


class Map(eqx.Module):
    """X ↦ A (1 + X J)⁻¹ X A* + C."""

    A: Blocks
    C: Blocks
    J: Blocks


def articulated(links: Links, tree: Tree) -> tuple[Blocks, Float[Array, "6 6"]]:
    """P of every link, and what arrives at the base, Σ φ P⁺ φ*."""
    enough = jnp.finfo(links.M.dtype).bits >= 64
    return _plain(links, tree) if enough else _by_factors(tree, links)


def _plain(links: Links, tree: Tree) -> tuple[Blocks, Float[Array, "6 6"]]:
    zero = jnp.zeros((6, 6), links.M.dtype)
    X = inward(leaf, compose, apply, links, zero, tree)
    arriving, at_base = of_children(X, tree)
    return links.M + arriving, at_base


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _by_factors(tree: Tree, links: Links) -> tuple[Blocks, Float[Array, "6 6"]]:
    X = square(square_root.messages(links, tree))
    arriving, at_base = of_children(X, tree)
    return links.M + arriving, at_base


@_by_factors.defjvp
def _rule(tree, at, along):
    """That of the plain form: P⁺ is singular, and its factors have no derivative."""
    return _by_factors(tree, *at), jax.jvp(lambda s: _plain(s, tree), at, along)[1]


def leaf(total: Blocks, link: Links) -> Map:
    """One link, with M its inertia and that of what hangs on it beside the chain.

    s = H M H* + armature ,   k = M H* s⁻¹ ,   t = 1 - k H
    A = φ t ,   C = φ t M φ* ,   J = H* s⁻¹ H
    """
    M, phi, H = link.M + total, link.phi, link.H
    F = times(M, H)
    s = (dot(F, H) + link.armature)[:, None]
    A = mul(phi, eye(M) - outer(F / s, H))
    return Map(A, quadratic(phi, M - outer(F / s, F)), outer(H / s, H))


def compose(one: Map, two: Map) -> Map:
    """`two`, nearer to the base, after `one`.

    N = 1 + C₁ J₂
    A = A₂ N⁻¹ A₁ ,   C = A₂ N⁻¹ C₁ A₂* + C₂ ,   J = A₁* J₂ N⁻¹ A₁ + J₁
    """
    N = eye(one.C) + mul(one.C, two.J)
    solved = jnp.linalg.solve(N, jnp.concatenate([one.A, one.C], -1))
    A, C = jnp.split(solved, 2, -1)
    return Map(
        mul(two.A, A),
        quadratic(two.A, symmetric(C)) + two.C,
        symmetric(mul(one.A.mT, mul(two.J, A))) + one.J,
    )


def apply(step: Map, X: Blocks) -> Blocks:
    N = eye(X) + mul(X, step.J)
    return quadratic(step.A, symmetric(jnp.linalg.solve(N, X))) + step.C
