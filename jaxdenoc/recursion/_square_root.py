"""The maps of `_parallel_riccati.py` in factors, for float32 [MATH 9.3].

C = L Lᵀ and J = R Rᵀ are kept as L and R, so that no large numbers are subtracted.
"""

import equinox as eqx
import jax.numpy as jnp

from ..model import Tree
from ._parallel import inward
from ._six import Blocks, Links, dot, eye, mul, outer, root, square, times, triangular


class Map(eqx.Module):
    """X ↦ A (1 + X J)⁻¹ X A* + C, on factors of X."""

    A: Blocks
    L: Blocks
    R: Blocks


def messages(links: Links, tree: Tree) -> Blocks:
    """A factor of φ P⁺ φ* of every link."""
    zero = jnp.zeros((6, 6), links.M.dtype)
    return inward(leaf, compose, apply, links, zero, tree, send=square)


def leaf(total: Blocks, link: Links) -> Map:
    """One link. M = L Lᵀ is its inertia and that of what hangs on it besides.

        s = H M H* + armature ,   k = M H* s⁻¹ ,   γ = 1 / (1 + √(armature / s))
        A = φ (1 - k H) ,   L = φ (1 - γ k H) L ,   R = H* s^-½

    γ is Potter's: (1 - γ k H) M (1 - γ k H)* = M - k s k*.
    """
    phi, H, one = link.phi, link.H, eye(link.M)
    L = root(link.M + total)
    v = times(L.mT, H)
    s = dot(v, v) + link.armature
    gamma = 1 / (1 + jnp.sqrt(link.armature / s))
    kH = outer(times(L, v) / s[:, None], H)
    R = jnp.pad((H / jnp.sqrt(s)[:, None])[..., None], [(0, 0), (0, 0), (0, 5)])
    return Map(mul(phi, one - kH), mul(phi, L - gamma[:, None, None] * mul(kH, L)), R)


def compose(one: Map, two: Map) -> Map:
    """`two`, nearer to the base, after `one`.

    W = L₁ᵀ R₂ ,   T₁ = qr([1 W]) ,   T₂ = qr([1 Wᵀ])
    A = A₂ (A₁ - L₁ T₁⁻ᵀ (T₁⁻¹ W) R₂ᵀ A₁)
    L = qr([A₂ L₁ T₁⁻ᵀ , L₂]) ,   R = qr([A₁ᵀ R₂ T₂⁻ᵀ , R₁])
    """
    W = mul(one.L.mT, two.R)
    T, TW = _inverse_root(jnp.concatenate([W, W.mT]))
    (T1, T2), (TW, _) = jnp.split(T, 2), jnp.split(TW, 2)
    LT, RA = mul(one.L, T1.mT), mul(two.R.mT, one.A)
    here = jnp.concatenate([mul(two.A, LT), mul(RA.mT, T2.mT)])
    L, R = jnp.split(_sum(here, jnp.concatenate([two.L, one.R])), 2)
    return Map(mul(two.A, one.A - mul(LT, mul(TW, RA))), L, R)


def apply(step: Map, L: Blocks) -> Blocks:
    """qr([A L T⁻ᵀ , L_step]) with T = qr([1 Lᵀ R])."""
    T, _ = _inverse_root(mul(L.mT, step.R))
    return _sum(mul(step.A, mul(L, T.mT)), step.L)


def _inverse_root(W: Blocks) -> tuple[Blocks, Blocks]:
    """T⁻¹ and T⁻¹ W, where T Tᵀ = 1 + W Wᵀ: the Q of [1 W] = T Q."""
    _, Q = triangular(jnp.concatenate([eye(W), W], -1))
    return Q[..., :6], Q[..., 6:]


def _sum(A: Blocks, B: Blocks) -> Blocks:
    """A factor of A Aᵀ + B Bᵀ."""
    return triangular(jnp.concatenate([A, B], -1))[0]
