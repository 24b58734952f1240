"""Some of a link's ten parameters free, the others held: any numbers give a body.

The bodies among π₀ + v, v in the free parameters, are an open convex set around π₀.
With 𝒥(π₀) = L Lᵀ, the step v goes as far as the set's edge and a γ-th of the way back:

    γ(v) = max(0, λ_max(-L⁻¹ 𝒥(v) L⁻ᵀ)) ,   π₀ + v is a body  ⇔  γ(v) < 1

so that  u ↦ π₀ + u / (1 + γ(u))  takes all of space onto the set, one to one, with the
identity for its slope at u = 0, and  v / (1 - γ(v))  takes it back.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..model import pseudo_inertia


def inside(pi: Float[Array, "10"], u: Float[Array, "10"]) -> Float[Array, "10"]:
    """π₀ + u / (1 + γ(u)), a body for every u, if π₀ is one."""
    L = jnp.linalg.cholesky(pseudo_inertia(pi))
    half = jax.scipy.linalg.solve_triangular(L, pseudo_inertia(u), lower=True)
    A = jax.scipy.linalg.solve_triangular(L, half.T, lower=True)
    return pi + u / (1 + jnp.maximum(_largest(-A), 0))


@jax.custom_jvp
def _largest(A: Float[Array, "4 4"]) -> Float[Array, ""]:
    """The largest eigenvalue, whose slope needs its own vector only."""
    return jnp.linalg.eigh((A + A.T) / 2)[0][-1]


@_largest.defjvp
def _slope(primals, tangents):
    (A,), (dA,) = primals, tangents
    values, Q = jnp.linalg.eigh((A + A.T) / 2)
    return values[-1], Q[:, -1] @ dA @ Q[:, -1]
