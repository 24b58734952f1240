"""φ, ψ, H, M, P, D, G, K, τ̄, Ω … of a robot at a configuration [J&R §4; MATH 1.6]."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._jit import jitted
from .._types import Position
from ..dynamics import check_state
from ..model import Model, joints
from ..recursion import mobilities, posture, riccati
from ..spatial import ArticulatedInertia, RigidInertia, Sym3, Vec3, skew
from ._algebra import Operator
from ._blocks import AtJoints, Diagonal, Pivots, Sweep, ToParent, crf


class SpatialOperators(eqx.Module):
    """The spatial operators, in body axes about the links' own origins.

    Stacked vectors have six numbers per link (`(n, 6)` flattened), or one per velocity.
    With links numbered from the base, φ and ψ are upper block triangular. Every product
    with a vector is O(n); the definitions below are the papers'. D of a free base is
    its 6×6 block, not yet taken apart as `factorize` does it.
    """

    E_phi: ToParent  # φ(parent, i) in the parent's row
    phi: Operator  # (1 - E_φ)⁻¹: wrenches inward; φ.T: twists outward
    H: AtJoints  # joint axes: H.T θ̇ is what the joints add to the twists
    M: Operator  # the links' inertias
    P: Operator  # articulated inertias
    D: Pivots  # H P H* (and the joints' armature)
    G: Operator  # P H* D⁻¹
    E_psi: Operator  # E_φ τ̄
    psi: Operator  # (1 - E_ψ)⁻¹
    Upsilon: Operator  # the blocks on the diagonal of Ω

    @property
    def K(self) -> Operator:
        """K = E_φ G."""
        return self.E_phi @ self.G

    @property
    def tau_bar(self) -> Operator:
        """τ̄ = 1 - G H."""
        return 1 - self.G @ self.H

    @property
    def phi_tilde(self) -> Operator:
        """φ̃ = φ - 1 = φ E_φ."""
        return self.phi @ self.E_phi

    @property
    def psi_tilde(self) -> Operator:
        """ψ̃ = ψ - 1 = ψ E_ψ."""
        return self.psi @ self.E_psi

    @property
    def P_plus(self) -> Operator:
        """P⁺ = τ̄ P, the articulated inertia seen through the joint."""
        return self.tau_bar @ self.P

    @property
    def Omega(self) -> Operator:
        """Ω = ψ* H* D⁻¹ H ψ = φ* H* ℳ⁻¹ H φ: how links give way to wrenches."""
        Hpsi = self.H @ self.psi
        return Hpsi.T @ self.D.inverse @ Hpsi

    @property
    def mass_matrix(self) -> Operator:
        """ℳ = H φ M φ* H* [J&R 4.1a], without the joints' armature."""
        Hphi = self.H @ self.phi
        return Hphi @ self.M @ Hphi.T

    def mass_matrix_sensitivity(self, i: int) -> Operator:
        """∂ℳ/∂q_i = H φ̃ H̃_i φ M φ* H* and its transpose [J&R Identity 6.3].

        H̃_i is crf(H_i) at the link that qd_i moves, and zero elsewhere.
        """
        axis = self.H.vectors[i]
        here = jnp.zeros((self.H.n_links, 6), axis.dtype).at[self.H.link[i]].set(axis)
        Hphi = self.H @ self.phi
        half = (
            self.H @ self.phi_tilde @ Diagonal(crf(here)) @ self.phi @ self.M @ Hphi.T
        )
        return half + half.T

    @property
    def U(self) -> Operator:
        """1 + H φ K, so that ℳ = U D Uᵀ [J&R 4.1b, c]."""
        return 1 + self.H @ self.phi @ self.K

    @property
    def U_inverse(self) -> Operator:
        """1 - H ψ K [J&R 4.1c, d]."""
        return 1 - self.H @ self.psi @ self.K


@jitted()
def spatial_operators(model: Model, q: Position) -> SpatialOperators:
    """The spatial operators of a robot at q; `.dense()` makes a matrix of any of them.

    ops = jd.spatial_operators(model, q)
    V = ops.phi.T @ (ops.H.T @ qd)        # twists of all links, body axes, 6 n numbers
    """
    check_state(model, q=q)
    rows, n = model.rows, model.n_links
    here = posture(model, q)
    found = riccati(model, here)
    Y = mobilities(here.phi, here.H, found.D, found.G, rows.tree)
    R, o = rows.to_links((here.R.array, here.o.array))
    P, Y = (_in_body_axes(R, x[np.array(rows.body)]) for x in (found.P.array, Y.array))
    phi = _to_parents(R, o, model.parent)

    S = rows.to_velocities(joints(model, q).screw.twist.array)  # body axes
    link = tuple(np.array(rows.link)[np.argsort(rows.velocity)].tolist())
    PH = jnp.einsum("kij,kj->ki", P[np.array(link)], S)
    D = rows.to_velocities(found.D)
    if model.floating_base:
        base = P[0] + jnp.diag(model.armature[:6])
        G = jnp.concatenate([jnp.linalg.solve(base, P[0]), PH[6:] / D[6:, None]])
        D = Pivots(base, D[6:])
    else:
        D, G = Pivots(None, D), PH / D[:, None]
    GH = jnp.zeros_like(P).at[np.array(link)].add(G[:, :, None] * S[:, None, :])
    psi = phi @ (jnp.eye(6, dtype=q.dtype)[None] - GH)

    return SpatialOperators(
        E_phi=ToParent(phi, model.tree),
        phi=Sweep(phi, model.tree),
        H=AtJoints(S, link, n),
        M=Diagonal(_inertias(model)),
        P=Diagonal(P),
        D=D,
        G=AtJoints(G, link, n).T,
        E_psi=ToParent(psi, model.tree),
        psi=Sweep(psi, model.tree),
        Upsilon=Diagonal(Y),
    )


def _to_parents(R, o, parent):
    """φ(parent, i) in body axes: X(parent → i)ᵀ [MATH 1.3]."""
    of_base = jnp.eye(3, dtype=R.dtype)[None], jnp.zeros_like(o[:1])
    up = np.array(parent)  # -1, the base, comes last
    R_up = jnp.concatenate([R, of_base[0]])[up]
    o_up = jnp.concatenate([o, of_base[1]])[up]
    turn = jnp.swapaxes(R_up, 1, 2) @ R
    l = jnp.einsum("nji,nj->ni", R_up, o - o_up)
    arm = skew(Vec3.of(l)).array
    top = jnp.concatenate([turn, arm @ turn], axis=2)
    return jnp.concatenate(
        [top, jnp.concatenate([jnp.zeros_like(turn), turn], axis=2)], axis=1
    )


def _in_body_axes(R, blocks):
    n = len(R)
    blocks = blocks.reshape(n, 2, 3, 2, 3)
    return jnp.einsum("nji,najbk,nkl->naibl", R, blocks, R).reshape(n, 6, 6)


def _inertias(model: Model):
    rigid = RigidInertia.of(model.mass, Vec3.of(model.com), Sym3.of(model.inertia))
    return (ArticulatedInertia.zeros(model.mass) + rigid).array
