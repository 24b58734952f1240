"""Reverse Gaussian elimination of a matrix, as Saha prints it."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .._jit import jitted
from .._types import Joints, Square


@jitted()
def reverse_gaussian_elimination(matrix: Square) -> tuple[Square, Joints]:
    """U (unit upper triangular) and D of a symmetric matrix U diag(D) Uᵀ.

    Elimination from the last column to the first [Saha 1997 §3; MATH 5.3]:

        α_k = L_{:k, k} / L_kk ,   E_k = 1 - α_k e_kᵀ ,   L ← E_k L ,   k = n … 2
        U = (E_2 ⋯ E_n)⁻¹ has the columns e_k + α_k
    """
    n = matrix.shape[0]

    def step(L, k):
        above = jnp.arange(n) < k
        alpha = jnp.where(above, L[:, k] / L[k, k], 0.0)
        return L - jnp.outer(alpha, L[k]), alpha

    L, alphas = lax.scan(step, matrix, jnp.arange(1, n), reverse=True)
    U = jnp.eye(n, dtype=matrix.dtype).at[:, 1:].add(alphas.T)
    return U, jnp.diagonal(L)


@jitted()
def elementary_matrices(matrix: Square) -> Float[Array, "k v v"]:
    """E_n, …, E_2, in the order in which they act: E_2 ⋯ E_n ℳ = D Uᵀ."""
    U, _ = reverse_gaussian_elimination(matrix)
    n = matrix.shape[0]
    one = jnp.eye(n, dtype=matrix.dtype)
    return jnp.stack(
        [one - jnp.outer(U[:, k] - one[:, k], one[k]) for k in range(n - 1, 0, -1)]
    )
