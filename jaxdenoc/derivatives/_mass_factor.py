"""The rate of the factor m = U D^½ of the mass matrix."""

import equinox as eqx
import jax.numpy as jnp

from .._jit import jitted
from .._types import Joints, Position, Square
from ..dynamics import check_state, factorize
from ..dynamics._pairs import (
    ancestors,
    in_order,
    strictly,
    to_common_point,
    twists_there,
)
from ..model import Model
from ..recursion import (
    Posture,
    inertia_rates,
    posture,
    riccati,
    tip_to_base,
    twists,
)
from ..spatial import Twist, Wrench


@jitted()
def mass_factor_rate(model: Model, q: Position, qd: Joints) -> Square:
    """ṁ of m = U D^½, ℳ = m mᵀ, along θ̇ [J&R Identity 6.1; MATH 7.3].

    Column i of m is what the wrench F_i = P_i H_i D_i^{-½} at joint i asks of the
    joints before it, m_ji = H_j φ(j, i) F_i, and so

        ṁ_ji = H_j · (Ḟ_i + V_i ×* F_i) + (V_j × H_j) · F_i ,   ṁ_ii = ½ D_i^{-½} Ḋ_i

    with the local rates Ḟ = ½ (1 + τ̄) Ṗ H D^{-½} and Ḋ = H Ṗ H.
    """
    check_state(model, q=q, qd=qd)
    rows = model.rows
    now = _moving(model, q, qd)
    there = to_common_point(now.here)
    S, Sd = twists_there(there, now.here.H), twists_there(there, now.Hd)
    above = ancestors(rows.tree, S, there.wrench(now.Fd))
    above = above + ancestors(rows.tree, Sd, there.wrench(now.F))
    return in_order(rows, strictly(above) + jnp.diag(now.own))


@jitted()
def mass_factor_rate_product(model: Model, q: Position, qd: Joints) -> Joints:
    """ṁ ν for ν = mᵀ θ̇, in O(n) and without ṁ [J&R 6.12; MATH 7.3].

    An inward sweep adds up F ν and (Ḟ + V ×* F) ν, with the letters of
    `mass_factor_rate`.
    """
    check_state(model, q=q, qd=qd)
    rows = model.rows
    now = _moving(model, q, qd)
    here, nu = now.here, rows.from_velocities(factorize(model, q).total_rates(qd))

    def step(total, link):
        F, Fd = total
        phi, H, Hd, F_own, Fd_own, own, nu = link
        rate = Fd @ H + F @ Hd + own * nu
        return (phi.wrench(F + F_own * nu), phi.wrench(Fd + Fd_own * nu)), rate

    zero = Wrench.zeros(nu[0]), Wrench.zeros(nu[0])
    links = here.phi, here.H, now.Hd, now.F, now.Fd, now.own, nu
    return rows.to_velocities(tip_to_base(step, zero, links, here.tree)[1])


class Moving(eqx.Module):
    """F, its rate in base axes, that of H, and of √D, of a robot that moves."""

    here: Posture
    F: Wrench
    Fd: Wrench
    Hd: Twist
    own: Joints


def _moving(model: Model, q: Position, qd: Joints) -> Moving:
    rows = model.rows
    here = posture(model, q)
    phi, H, tree = here.phi, here.H, rows.tree
    found = riccati(model, here)
    rates = rows.from_velocities(qd)
    Pd = inertia_rates(here, found, rates)
    V = twists(phi, H, rates, tree)
    V = rows.from_links(rows.to_links(V))  # a joint's axes all move with its link
    G, size = found.G, jnp.sqrt(found.D)
    PdH = Pd @ H
    rate = PdH @ H
    F, Fd = G * size, (PdH - G * (rate / 2)) * (1 / size)
    Hd = V.cross(H.twist)
    return Moving(here, F, Fd + V.cross_wrench(F), Hd, rate / size / 2)
