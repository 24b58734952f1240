"""Dynamics in O(log n) depth, by scans of what can be composed [MATH 9]."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Float

from .._types import Joints
from ..model import Model, Tree
from ..recursion import Posture, bodies
from ..recursion._parallel import take
from ..recursion._parallel_newton_euler import joint_forces, posture, wrenches
from ..recursion._parallel_riccati import articulated
from ..recursion._parallel_triangular import Released, released, solve_U, solve_UT
from ..recursion._six import (
    Links,
    Vectors,
    inertia_matrix,
    mul,
    quadratic,
    shift_matrix,
)
from ..spatial import Wrench
from ._newton_euler import newton_euler_by
from ._state import resistance

# Links from which on the scans were at least a fifth faster than the recursions, for
# one robot; None: never. By `benchmarks/parallel_depth.py`, float64 (in float32 inverse
# dynamics came to 512), random revolute chains of 8 to 1024 links, in tiles. In batches
# of 16 and 256 the recursions were always faster. Only a CPU of two cores was tried:
# elsewhere it is None until it is measured. By depth and operations the scans of
# forward dynamics win at n = 256 where a machine does 300 operations at a time for a
# robot (in float32 900), those of inverse dynamics where it does 12.
CROSSOVER: dict[str, dict[str, int | None]] = {
    "inverse": {"cpu": 256, "gpu": None, "tpu": None},
    "forward": {"cpu": None, "gpu": None, "tpu": None},
}


def chosen(method: str, function: str, model: Model) -> str:
    """`method`, where "auto" stays "auto" only from the crossover on."""
    if method != "auto":
        return method
    least = CROSSOVER[function].get(jax.default_backend())
    return "recursive" if least is None or model.nv < least else "auto"


# sums in place of the sweeps [MATH 9.1]
inverse_dynamics_parallel = newton_euler_by(posture, wrenches, joint_forces)


def forward_dynamics_parallel(model, q, qd, tau, fext, refine: int = 0) -> Joints:
    """Saha's U D Uᵀ scheme, each of its sweeps a scan [MATH 9.2, 9.3].

    `refine` times θ̈ += ℳ⁻¹ (τ - ID(θ̈)).
    """
    rows = model.rows
    here = posture(model, q)
    external = None if fext is None else rows.from_bodies(Wrench.of(fext))
    f = wrenches(model, here, rows.from_velocities(qd), None, external).array
    factors = _factors(model, here)
    driving = rows.from_velocities(tau - resistance(model, qd))
    qdd = rows.to_velocities(_solve(factors, f, driving))
    for _ in range(refine):
        left = tau - inverse_dynamics_parallel(model, q, qd, qdd, fext)
        more = _solve(factors, 0 * f, rows.from_velocities(left))
        qdd = qdd + rows.to_velocities(more)
    return qdd


class _Factors(eqx.Module):
    """The joints beyond the base, and the base if it is free: six rows at one place.

    These have no mass between them, so the scan leaves them out; they are one 6×6
    system with the articulated inertia that arrives there.
    """

    beyond: Released
    tree: Tree
    H: Float[Array, "d 6"]  # of the base; d is 6, or 0 if it is fixed
    D: Float[Array, "d d"]  # its Cholesky factor


def _factors(model: Model, here: Posture) -> _Factors:
    rows = model.rows
    links = Links(
        inertia_matrix(bodies(model), here.R),
        shift_matrix(here.phi),
        here.H.twist.array,
        rows.from_velocities(model.armature),
    )
    d, n = 6 if model.floating_base else 0, len(rows.link)
    tree = Tree(tuple(max(p - d, -1) for p in rows.tree.parent[d:]))
    base, beyond = take(links, np.arange(d)), take(links, np.arange(d, n))
    P, arriving = articulated(beyond, tree)
    P_base = jnp.sum(base.M, axis=0) + arriving
    D = quadratic(base.H, P_base) + jnp.diag(base.armature)
    return _Factors(released(P, beyond), tree, base.H, jnp.linalg.cholesky(D))


def _solve(at: _Factors, f: Vectors, b: Joints) -> Joints:
    """ℳ⁻¹ (b - H φ f): U e = b - H φ f and ê = D⁻¹ e inward, then Uᵀ x = ê outward."""
    d = len(at.H)
    e, arriving = solve_U(at.beyond, f[d:], b[d:], at.tree)
    z = jnp.sum(f[:d], axis=0) + arriving
    x = cho_solve((at.D, True), b[:d] - mul(at.H, z))
    return jnp.concatenate([x, solve_UT(at.beyond, e, mul(x, at.H), at.tree)])
