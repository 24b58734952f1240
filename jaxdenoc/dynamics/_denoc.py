"""Saha's decoupled natural orthogonal complement, by its own names.

Dense matrices in base axes, each link's block taken about its mass centre, as the
papers print them: to read along, to test with, and to teach. The recursions of this
library give the same numbers in O(n).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._jit import jitted
from .._types import Joints, Position, Square
from ..model import Model, Rows
from ..recursion import bodies, posture
from ..spatial import Vec3, rotate, skew
from ._state import check_state


class DeNOC(eqx.Module):
    """N_l, N_d, their blocks, and the masses [Saha 1999 §3; MATH 2, 3.2, 4].

    A twist t_i = [ω_i; v_Ci] per row; a free base has six rows, five without mass. On
    a tree B_ij is zero unless j is i or lies between i and the base.
    """

    # k = 6 n
    N_l: Float[Array, "k k"]
    N_d: Float[Array, "k n"]
    B: Float[Array, "n n 6 6"]  # B_ij carries the twist of C_j to C_i
    p: Float[Array, "n 6"]  # joint-rate propagation vectors
    M: Float[Array, "n 6 6"]  # diag(I_C, m 1)
    M_composite: Float[Array, "n 6 6"]  # M̃_i = M_i + Σ Bᵀ M̃ B over the children
    rows: Rows

    @jitted()
    def twists(self, qd: Joints) -> Float[Array, "n 6"]:
        """t = N_l N_d θ̇."""
        return (self.N_l @ self.N_d @ self.rows.from_velocities(qd)).reshape(-1, 6)

    @jitted()
    def generalized_forces(self, wrenches: Float[Array, "n 6"]) -> Joints:
        """τ = N_dᵀ N_lᵀ w, for wrenches about the mass centres [Saha 1999 30]."""
        return self.rows.to_velocities(self.N_d.T @ self.N_l.T @ wrenches.ravel())

    @jitted()
    def inertia_elements(self) -> Square:
        """The GIM: i_ij = p_iᵀ M̃_i B_ij p_j for j ≤ i, and symmetric [Saha 1999 24]."""
        low = jnp.einsum("ia,iab,ijbc,jc->ij", self.p, self.M_composite, self.B, self.p)
        return self._in_qd_order(jnp.tril(low) + jnp.tril(low, -1).T)

    @jitted()
    def coriolis_elements(self, qd: Joints) -> Square:
        """C = N_dᵀ (N_lᵀ M Ṅ_l + M̃ Ω + N_lᵀ Ṁ N_l) N_d [Saha 1999 26].

        Ω_i = diag(ω̃_i, ω̃_i) , Ṁ_i = [[ω̃_i I_i, 0], [0, 0]] , M̃ the full N_lᵀ M N_l.
        """
        n = len(self.p)
        t = self.twists(qd)
        t = self.rows.from_links(self.rows.to_links(t))
        w, v = _skew(t[:, :3]), t[:, 3:]
        zero = jnp.zeros_like(w)
        Omega = _block_diagonal(_blocks(w, zero, zero, w))
        Md = _block_diagonal(_blocks(w @ self.M[:, :3, :3], zero, zero, zero))
        M = _block_diagonal(self.M)
        related = jnp.any(self.B != 0, axis=(2, 3))[..., None, None]
        lag = jnp.where(related, _skew(v[None, :] - v[:, None]), 0.0)
        rate = jnp.zeros_like(self.B).at[:, :, 3:, :3].set(lag)  # Ḃ_ij
        N_l, Nd_l = self.N_l, rate.transpose(0, 2, 1, 3).reshape(6 * n, 6 * n)
        inner = N_l.T @ M @ Nd_l + N_l.T @ M @ N_l @ Omega + N_l.T @ Md @ N_l
        return self._in_qd_order(self.N_d.T @ inner @ self.N_d)

    def _in_qd_order(self, matrix: Square) -> Square:
        return self.rows.to_velocities(self.rows.to_velocities(matrix).T).T


@jitted()
def denoc(model: Model, q: Position) -> DeNOC:
    """The DeNOC matrices of a model at q."""
    check_state(model, q=q)
    rows, body, here = model.rows, bodies(model), posture(model, q)
    n = len(rows.link)
    com = model.com if rows.are_links else model.com[jnp.array(rows.link)]
    d = jnp.einsum("nij,nj->ni", here.R.array, com)  # from the joint to C_i
    c = here.o.array + d
    H = here.H
    p = jnp.concatenate([H.w.array, H.v.array + jnp.cross(H.w.array, d)], axis=1)
    I_C, zero = rotate(here.R, body.I_C).array, jnp.zeros((n, 3, 3), q.dtype)
    eye = jnp.eye(3, dtype=q.dtype)
    M = _blocks(I_C, zero, zero, body.m[:, None, None] * eye[None])

    one = jnp.broadcast_to(eye, (n, n, 3, 3))
    arm = _skew(c[None, :] - c[:, None])  # c_ij = c_j - c_i
    B = _blocks(one, jnp.zeros_like(one), arm, one)
    related = jnp.asarray(rows.tree.ancestry.T)[..., None, None]
    B = jnp.where(related, B, 0.0)
    N_l = B.transpose(0, 2, 1, 3).reshape(6 * n, 6 * n)
    N_d = jax.scipy.linalg.block_diag(*[x[:, None] for x in p])
    composite = jnp.einsum("kiba,kbc,kicd->iad", B, M, B)  # Σ over the outboard links k
    return DeNOC(N_l, N_d, B, p, M, composite, rows)


def _skew(a):
    return skew(Vec3.of(a)).array


def _blocks(a, b, c, d):
    """[[a, b], [c, d]] of 3×3 blocks."""
    return jnp.concatenate(
        [jnp.concatenate([a, b], axis=-1), jnp.concatenate([c, d], axis=-1)], axis=-2
    )


def _block_diagonal(x):
    return jax.scipy.linalg.block_diag(*x)
