"""Time derivatives of the spatial operators in closed form [J&R Table 4; MATH 7.2]."""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp

from .._jit import jitted
from .._types import Joints, Position
from ..dynamics import check_state
from ..model import Model
from ..recursion import tip_to_base
from ._algebra import Operator
from ._blocks import Diagonal, crf
from ._spatial import SpatialOperators, spatial_operators


class OperatorRates(eqx.Module):
    """The rate of each operator of `SpatialOperators`, by the same name."""

    E_phi: Operator
    phi: Operator
    H: Operator
    M: Operator
    P: Operator
    P_plus: Operator
    D: Operator
    G: Operator
    tau_bar: Operator
    E_psi: Operator
    Gamma: Operator  # Γ = Ṗ + W + Wᵀ with W = crf(v_J) P, which is its own


@jitted("axes")
def spatial_operator_rates(
    model: Model, q: Position, qd: Joints, *, axes: Literal["body", "base"] = "body"
) -> OperatorRates:
    """How the operators change along θ̇, in the axes of the links or of the base.

    The local rate ("body") is that of the components in body axes, where H and M are
    constant and E_φ changes as the joints move, with Ẇ the crf(v_J) of all links:

        dE_φ = E_φ Ẇ             dφ = φ E_φ Ẇ φ          dD  = H Ṗ H*
        dG   = τ̄ Ṗ H* D⁻¹        dτ̄ = -dG H              dP⁺ = τ̄ Ṗ τ̄*
        dE_ψ = dE_φ τ̄ + E_φ dτ̄

    The inertial rate ("base") is that of the components in base axes, written in body
    axes: it adds Ω̃ A - A Ω̃ on the side of the links, Ω̃ the ω̃ of all links.
    """
    if axes not in ("body", "base"):
        raise ValueError(f"axes is '{axes}'; it can be 'body' or 'base'.")
    check_state(model, q=q, qd=qd)
    ops = spatial_operators(model, q)
    vJ = (ops.H.T @ qd).reshape(-1, 6)
    W = Diagonal(crf(vJ))
    P = Diagonal(_articulated_rates(ops, W))

    E_phi = ops.E_phi @ W
    G = ops.tau_bar @ P @ ops.H.T @ ops.D.inverse
    tau_bar = -(G @ ops.H)
    WP = W @ ops.P
    rates = OperatorRates(
        E_phi=E_phi,
        phi=ops.phi @ E_phi @ ops.phi,
        H=ops.H * 0,
        M=ops.M * 0,
        P=P,
        P_plus=ops.tau_bar @ P @ ops.tau_bar.T,
        D=ops.H @ P @ ops.H.T,
        G=G,
        tau_bar=tau_bar,
        E_psi=E_phi @ ops.tau_bar + ops.E_phi @ tau_bar,
        Gamma=P + WP + WP.T,
    )
    return rates if axes == "body" else _inertial(rates, ops, qd)


def _inertial(rates: OperatorRates, ops: SpatialOperators, qd) -> OperatorRates:
    V = (ops.phi.T @ (ops.H.T @ qd)).reshape(-1, 6)
    spin = Diagonal(crf(V * jnp.array([[1, 1, 1, 0, 0, 0]], V.dtype)))

    def of_links(rate, A):
        return rate + (spin @ A - A @ spin)

    return OperatorRates(
        E_phi=of_links(rates.E_phi, ops.E_phi),
        phi=of_links(rates.phi, ops.phi),
        H=rates.H - ops.H @ spin,
        M=of_links(rates.M, ops.M),
        P=of_links(rates.P, ops.P),
        P_plus=of_links(rates.P_plus, ops.P_plus),
        D=rates.D,
        G=rates.G + spin @ ops.G,
        tau_bar=of_links(rates.tau_bar, ops.tau_bar),
        E_psi=of_links(rates.E_psi, ops.E_psi),
        Gamma=rates.Gamma,
    )


def _articulated_rates(ops: SpatialOperators, W: Diagonal):
    """Ṗ = Σ φ (τ̄ Ṗ τ̄* + W P⁺ + (W P⁺)ᵀ) φ* over the children [MATH 7.a]."""
    n = W.shape[0] // 6
    phi, tree = ops.E_phi.blocks, ops.E_phi.tree
    tau_bar, P_plus = (_diagonal_blocks(A, n) for A in (ops.tau_bar, ops.P_plus))
    WP = W.blocks @ P_plus

    def step(Pd, link):
        phi, tau_bar, WP = link
        return phi @ (tau_bar @ Pd @ tau_bar.T + WP + WP.T) @ phi.T, Pd

    zero = jnp.zeros((6, 6), W.dtype)
    return tip_to_base(step, zero, (phi, tau_bar, WP), tree)[1]


def _diagonal_blocks(A: Operator, n: int):
    """The blocks of a block diagonal operator, from six products with vectors."""
    units = jnp.tile(jnp.eye(6, dtype=A.dtype), (n, 1))
    return (A @ units).reshape(n, 6, 6)
