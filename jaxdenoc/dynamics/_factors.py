"""ℳ = U D Uᵀ in O(n), without ℳ."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .._jit import jitted
from .._rules import closed_rules
from .._types import Joints, Position, Square
from ..model import Model, Rows, locate
from ..recursion import (
    Posture,
    bodies,
    joint_forces,
    mobilities,
    posture,
    riccati,
    solve_U,
    solve_UT,
    times_U,
    times_UT,
    twists,
)
from ..spatial import RigidInertia, Vec3, Wrench, skew
from ._pairs import ancestors, in_order, strictly, to_common_point, twists_there
from ._state import check_state


class Factors(eqx.Module):
    """U and D of the mass matrix, kept as the O(n) numbers of one Riccati sweep.

    ℳ = U D Uᵀ with U unit upper triangular [Saha 1997; J&R 4.1]; only `U`, `m` and
    `inverse` make dense matrices. The 6×6 block of a free base is taken apart as
    Cholesky does it, L Lᵀ with L lower triangular: U has there the unit lower
    triangular part of L, and D the squares of its diagonal.
    """

    here: Posture
    pivots: Joints  # D, in row order
    gains: Wrench  # G, in row order
    M: RigidInertia  # of the bodies, in row order: with the armature, all that ℳ has
    armature: Joints  # in row order
    rows: Rows

    @property
    def D(self) -> Joints:
        return self.rows.to_velocities(self.pivots)

    @property
    @jitted()
    def U(self) -> Square:
        """U_ji = H_j φ(j, i) G_i for j between i and the base; dense, to look at."""
        there = to_common_point(self.here)
        S, G = twists_there(there, self.here.H), there.wrench(self.gains)
        above = strictly(ancestors(self.rows.tree, S, G))
        return in_order(self.rows, above + jnp.eye(len(above), dtype=above.dtype))

    @property
    @jitted()
    def m(self) -> Square:
        """m = U D^½, with ℳ = m mᵀ; dense, to look at."""
        return self.U * jnp.sqrt(self.D)[None, :]

    @property
    @jitted()
    def l(self) -> Square:  # noqa: E743
        """ℓ = m⁻¹, with ℳ⁻¹ = ℓᵀ ℓ; dense, to look at."""
        one = jnp.eye(len(self.pivots), dtype=self.pivots.dtype)
        return jax.vmap(self.working_moments, out_axes=1)(one)

    @jitted()
    def solve(self, b: Joints) -> Joints:
        """ℳ⁻¹ b: U e = b, then D ê = e, then Uᵀ x = ê [Saha's three steps].

        Differentiated by what it solves, dx = ℳ⁻¹ (db - dℳ x), and not through the
        Riccati sweep [MATH 10.1].
        """

        def three_steps(_, b):
            return self._sweep(solve_UT, self._sweep(solve_U, b) / self.D)

        if not closed_rules():
            return three_steps(None, b)
        return lax.custom_linear_solve(self._rigid, b, three_steps, symmetric=True)

    def _rigid(self, x: Joints) -> Joints:
        """ℳ x from the bodies, H φ M φ* H* x, which does not ask for U and D."""
        here, x = self.here, self.rows.from_velocities(x)
        f = self.M @ twists(here.phi, here.H, x, here.tree)
        tau = joint_forces(here.phi, here.H, f, here.tree) + self.armature * x
        return self.rows.to_velocities(tau)

    @jitted()
    def mul(self, x: Joints) -> Joints:
        """ℳ x = U D Uᵀ x."""
        return self._sweep(times_U, self.D * self._sweep(times_UT, x))

    @jitted()
    def inverse(self) -> Square:
        """ℳ⁻¹, column by column, in O(n²)."""
        one = jnp.eye(len(self.pivots), dtype=self.pivots.dtype)
        return jax.vmap(self.solve)(one)

    @jitted()
    def logdet(self) -> Float[Array, ""]:
        """log det ℳ = Σ log D."""
        return jnp.sum(jnp.log(self.pivots))

    @jitted("normalized")
    def total_rates(self, qd: Joints, *, normalized: bool = True) -> Joints:
        """ν = mᵀ θ̇, or ξ = Uᵀ θ̇. The kinetic energy is ½ νᵀν = ½ ξᵀDξ."""
        return self._scale(self._sweep(times_UT, qd), normalized)

    @jitted("normalized")
    def joint_rates(self, nu: Joints, *, normalized: bool = True) -> Joints:
        """θ̇ from ν, or from ξ."""
        return self._sweep(solve_UT, self._unscale(nu, normalized))

    @jitted("normalized")
    def working_moments(self, tau: Joints, *, normalized: bool = True) -> Joints:
        """ε = m⁻¹ τ, or κ = U⁻¹ τ. The power is νᵀε = θ̇ᵀτ."""
        return self._unscale(self._sweep(solve_U, tau), normalized)

    @jitted("normalized")
    def joint_torques(self, eps: Joints, *, normalized: bool = True) -> Joints:
        """τ from ε, or from κ."""
        return self._sweep(times_U, self._scale(eps, normalized))

    @jitted("link")
    def operational_inertia_inverse(
        self, model: Model, link: int | str
    ) -> Float[Array, "6 6"]:
        """Λ⁻¹ = J ℳ⁻¹ Jᵀ of a link or frame, in its own axes, in O(n) [MATH 6.3]."""
        i, R_frame, t = locate(model, link)
        if i < 0:
            return jnp.zeros((6, 6), self.pivots.dtype)
        here, row = self.here, self.rows.body[i]
        Y = mobilities(here.phi, here.H, self.pivots, self.gains, self.rows.tree)
        R = here.R.array[row]
        # X carries a twist from the link's origin in base axes to the frame in its own
        turn, arm = (R @ R_frame).T, skew(Vec3.of(R @ t)).array
        X = jnp.block([[turn, jnp.zeros_like(turn)], [-turn @ arm, turn]])
        return X @ Y.array[row] @ X.T

    def _scale(self, x, normalized):
        return jnp.sqrt(self.D) * x if normalized else x

    def _unscale(self, x, normalized):
        return x / jnp.sqrt(self.D) if normalized else x

    def _sweep(self, sweep, x):
        x = self.rows.from_velocities(x)
        here = self.here
        return self.rows.to_velocities(
            sweep(here.phi, here.H, self.gains, x, self.rows.tree)
        )


@jitted()
def factorize(model: Model, q: Position) -> Factors:
    """The factors of ℳ at q, by one outward and one inward sweep [MATH 5.1]."""
    check_state(model, q=q)
    here = posture(model, q)
    found = riccati(model, here)
    armature = model.rows.from_velocities(model.armature)
    M = bodies(model).inertia(here.R)
    return Factors(here, found.D, found.G, M, armature, model.rows)


@jitted("link")
def operational_inertia_inverse(
    model: Model, q: Position, link: int | str
) -> Float[Array, "6 6"]:
    """Λ⁻¹ = J ℳ⁻¹ Jᵀ of a link or named frame, in its own axes, in O(n).

    The acceleration that a unit wrench on the frame gives it [MATH 6.3]. Of rank below
    six where the arm is singular, so invert it only where it is not.
    """
    return factorize(model, q).operational_inertia_inverse(model, link)
