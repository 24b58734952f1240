"""Periodic motions as short Fourier series, joint by joint [Swevers et al. 1997].

With ω = 2π / T and N harmonics,

    q  = q₀ + Σ a_k / (ωk) sin ωkt - b_k / (ωk) cos ωkt
    q̇  = Σ a_k cos ωkt + b_k sin ωkt
    q̈  = Σ ωk (b_k cos ωkt - a_k sin ωkt)

Coefficients of a joint are one row, [q₀, a_1 … a_N, b_1 … b_N]. They are velocities, so
that one size of them does for all harmonics.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

Rows = Float[Array, "k c"]


class Motion(NamedTuple):
    """Positions, velocities and accelerations, one row per time."""

    q: Float[Array, "k v"]
    qd: Float[Array, "k v"]
    qdd: Float[Array, "k v"]


def basis(t: Array, period: Array, harmonics: int) -> tuple[Rows, Rows, Rows]:
    """What coefficients are multiplied by for q, q̇ and q̈ at the times t."""
    wk = 2 * jnp.pi / period * jnp.arange(1, harmonics + 1, dtype=t.dtype)
    at = t[:, None] * wk[None]
    sin, cos = jnp.sin(at), jnp.cos(at)
    one, wk = jnp.ones_like(t)[:, None], wk[None]
    rows = (
        (one, sin / wk, -cos / wk),
        (0 * one, cos, sin),
        (0 * one, -wk * sin, wk * cos),
    )
    q, qd, qdd = (jnp.concatenate(parts, axis=1) for parts in rows)
    return q, qd, qdd


def motion(c: Float[Array, "v c"], t: Array, period: Array) -> Motion:
    """The motion of these coefficients."""
    every = basis(t, period, c.shape[1] // 2)
    return Motion(*(jnp.matmul(B, c.T, precision="highest") for B in every))


def resting(c: Float[Array, "v c"]) -> Float[Array, "v c"]:
    """The nearest coefficients of a motion that starts and ends at rest.

    q̇(0) = Σ a_k = 0 ,   q̈(0) ∝ Σ k b_k = 0
    """
    N = c.shape[1] // 2
    k = jnp.arange(1, N + 1, dtype=c.dtype)[None]
    q0, a, b = c[:, :1], c[:, 1 : N + 1], c[:, N + 1 :]
    a = a - jnp.mean(a, axis=1, keepdims=True)
    b = b - k * (jnp.sum(k * b, axis=1, keepdims=True) / jnp.sum(k * k))
    return jnp.concatenate([q0, a, b], axis=1)


def excess(harmonics: int, samples: int) -> float:
    """How far a series can rise above its samples, at even times of one period.

    max |p| ≤ max over samples |p| / cos(πN / samples) [Ehlich and Zeller 1964].
    """
    return 1 / float(np.cos(np.pi * harmonics / samples))
