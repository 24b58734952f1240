"""Identities that any robot must satisfy, each with a residual and what it may be.

The library computes all that they need at a batch of random states, in one compiled
call; NumPy compares. Residuals are relative, the largest over the states, and the
limits are for float64.
"""

from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from .. import dynamics
from ..derivatives import forward_dynamics_derivatives, mass_matrix_sensitivity
from ..model import Model, integrate, random_state


class States(NamedTuple):
    """Rows of random states; `x` is a vector that serves as qdd, tau or b."""

    q: Array
    qd: Array
    x: Array


class Found(NamedTuple):
    """What the library says, one row per state."""

    x_again: Array  # forward dynamics of the inverse dynamics of x
    mass_matrix: Array
    U: Array
    D: Array
    U_eliminated: Array  # from the matrix, by reverse Gaussian elimination
    D_eliminated: Array
    solution: Array  # of ℳ y = x
    nu: Array
    kinetic_energy: Array
    coriolis: Array  # C(θ, ν) of the diagonalised dynamics
    sensitivity: Array  # ∂ℳ/∂q along qd, in closed form
    rate: Array  # of the mass matrix along qd, by autodiff


class Check(NamedTuple):
    title: str
    limit: float
    residual: Callable[[States, Found], float]


class Result(NamedTuple):
    residual: float
    limit: float
    note: str = ""

    @property
    def passed(self) -> bool:  # and NaN does not
        return self.residual <= self.limit


def random_states(model: Model, number: int, seed: int = 0) -> States:
    of_state, of_vector = jr.split(jr.key(seed))
    draw = jax.jit(jax.vmap(lambda k: random_state(model, k)))
    x = jr.normal(of_vector, (number, model.nv), model.mass.dtype)
    q, qd = draw(jr.split(of_state, number))
    return States(q, qd, x)


@jax.jit
def compute(model: Model, states: States) -> Found:
    def moved(q, qd, t):
        return dynamics.mass_matrix(model, integrate(model, q, t * qd))

    def at(q, qd, x):
        tau = dynamics.inverse_dynamics(model, q, qd, x)
        M, f = dynamics.mass_matrix(model, q), dynamics.factorize(model, q)
        nu = f.total_rates(qd)
        return Found(
            dynamics.forward_dynamics(model, q, qd, tau),
            M,
            f.U,
            f.D,
            *dynamics.reverse_gaussian_elimination(M),
            f.solve(x),
            nu,
            dynamics.kinetic_energy(model, q, qd),
            dynamics.diagonal_coriolis(model, q, nu),
            jnp.tensordot(qd, mass_matrix_sensitivity(model, q), 1),
            jax.jvp(lambda t: moved(q, qd, t), (0.0,), (1.0,))[1],
        )

    return jax.vmap(at)(*states)


def apart(a: ArrayLike, b: ArrayLike) -> float:
    """max |a - b| / max |b| in each row, and of the rows the worst."""
    a, b = np.asarray(a), np.asarray(b)
    a, b = a.reshape(len(a), -1), b.reshape(len(b), -1)
    return float(np.max(np.max(np.abs(a - b), axis=1) / np.max(np.abs(b), axis=1)))


def _product(s: States, f: Found) -> float:
    U, D = np.asarray(f.U), np.asarray(f.D)
    return apart((U * D[:, None, :]) @ U.transpose(0, 2, 1), f.mass_matrix)


def _eliminated(s: States, f: Found) -> float:
    return max(apart(f.U, f.U_eliminated), apart(f.D, f.D_eliminated))


def _solved(s: States, f: Found) -> float:
    dense = np.linalg.solve(np.asarray(f.mass_matrix), np.asarray(s.x)[:, :, None])
    return apart(f.solution, dense)


def _energy(s: States, f: Found) -> float:
    return apart(np.sum(np.asarray(f.nu) ** 2, axis=1) / 2, f.kinetic_energy)


def _work(s: States, f: Found) -> float:
    nu, C = np.asarray(f.nu), np.asarray(f.coriolis)
    sizes = np.linalg.norm(nu, axis=1) * np.linalg.norm(C, axis=1)
    return float(np.max(np.abs(np.sum(nu * C, axis=1)) / sizes))


CHECKS = (
    Check(
        "forward dynamics undoes inverse dynamics",
        1e-9,
        lambda s, f: apart(f.x_again, s.x),
    ),
    Check("U D Uᵀ, by O(n) sweeps, is the mass matrix ℳ", 1e-12, _product),
    Check("reverse Gaussian elimination of ℳ: same U, D", 1e-9, _eliminated),
    Check("ℳ⁻¹ b in O(n) is the dense solution", 1e-9, _solved),
    Check("½ νᵀν is the kinetic energy", 1e-12, _energy),
    Check("νᵀ C = 0: Coriolis forces of ν do no work", 1e-12, _work),
    Check(
        "∂ℳ/∂q in closed form is that of autodiff",
        1e-11,
        lambda s, f: apart(f.sensitivity, f.rate),
    ),
)


def gradient(model: Model, states: States) -> Result:
    """Of forward dynamics: the Jacobian in closed form against central differences, and
    reverse mode against the Jacobian; for robots without a free base, whose q is not a
    vector."""
    n, h = model.nv, 1e-6

    def qdd(x):
        return dynamics.forward_dynamics(model, x[:n], x[n : 2 * n], x[2 * n :])

    @jax.jit
    @jax.vmap
    def all_three(q, qd, tau):
        x = jnp.concatenate([q, qd, tau])
        steps = h * jnp.eye(3 * n, dtype=x.dtype)
        # ahead and behind in one call, which compiles `qdd` once
        sides = jax.vmap(lambda d: qdd(x + d))(jnp.concatenate([steps, -steps]))
        ahead, behind = jnp.split(sides, 2)
        J = jnp.concatenate(forward_dynamics_derivatives(model, q, qd, tau), axis=1)
        return J, (ahead - behind).T / (2 * h), jax.grad(lambda x: tau @ qdd(x))(x)

    J, differences, reverse = all_three(*states)
    both = apart(J, differences), apart(reverse, jnp.einsum("ki,kij->kj", states.x, J))
    return Result(max(both), 1e-6)


def throughput(model: Model, number: int) -> Result:
    """Forward dynamics of a batch: right, and how many a second."""
    q, qd, qdd = random_states(model, number)
    inverse = jax.jit(jax.vmap(lambda *x: dynamics.inverse_dynamics(model, *x)))
    forward = jax.jit(jax.vmap(lambda *x: dynamics.forward_dynamics(model, *x)))
    tau = inverse(q, qd, qdd)
    residual = apart(forward(q, qd, tau), qdd)  # compiles, before the clock runs
    times = []
    for _ in range(20):
        start = perf_counter()
        forward(q, qd, tau).block_until_ready()
        times.append(perf_counter() - start)
    rate = number / float(np.median(times))
    return Result(residual, 1e-9, f"{rate:,.0f} evaluations per second")
