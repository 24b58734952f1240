"""Torques in any coordinates: Levenberg and Marquardt on the triangles of a log.

With x(θ) of `_coordinates.py`, R_j of `_factor.py`, σ_j the noise, s the prior's width,

    min over θ   Σ_j ‖R_j [x(θ); -1]‖² / σ_j²  +  ‖θ - θ₀‖² / s²

however long the log is. The search begins where `_interior.py` has found the way to.
σ is that of least squares without bodies and priors, which bias it least; it is raised
where bodies cannot come near so small a residual, as when a log is so short that least
squares has none. Last come steps of Gauss and Newton: without noise σ is that of
rounding, and the prior only decides what torques leave open.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx

from ._coordinates import Coordinates
from ._factor import Factor
from ._interior import begun
from ._least_squares import inverse_noise
from ._optax import descend

ROUNDS, STEPS, NEWTON = 6, 30, 4
FAR = 2.0  # a residual this many times the noise says that the noise is larger


@dataclass(frozen=True)
class Fit:
    """Where a search ended, and its covariance cov(θ) = half halfᵀ."""

    theta: np.ndarray
    half: np.ndarray
    noise: np.ndarray
    history: np.ndarray  # the loss after each round
    iterations: int


def fit_torques(
    coordinates: Coordinates,
    factor: Factor,
    *,
    closed: np.ndarray,
    noise: np.ndarray | None,
    prior: float,
    method: str,
    steps: int,
    theta: np.ndarray | None = None,
) -> Fit:
    """The search, from `theta` or the prior, with the noise given or not."""
    counted = factor.counts > 0
    sigma = closed if noise is None else noise
    if theta is None:
        theta = begun(coordinates, factor, sigma, prior)
    history: list[float] = []
    total, there = 0, None
    with jax.enable_x64(True):
        for _ in range(ROUNDS):
            scale = inverse_noise(sigma, counted)
            problem = coordinates, *factor.rows(scale), prior
            found, more = _search(method, problem, theta, steps)
            total += more
            there = _newton(problem, found) if method == "lm" else _at(problem, found)
            theta = there.theta
            history += [there.loss]
            rms = np.sqrt(factor.squares(there.x) / np.maximum(factor.counts, 1))
            if noise is not None or (rms <= FAR * sigma)[counted].all():
                break
            sigma = np.maximum(sigma, rms)
    assert there is not None
    half = np.linalg.inv(np.linalg.qr(there.J, mode="r"))
    return Fit(theta, half, sigma, np.array(history), total)


def _residual(theta, problem):
    coordinates, A, b, prior = problem
    off = (theta - coordinates.start) / prior
    return jnp.concatenate([A @ coordinates.values(theta) - b, off])


@eqx.filter_jit
def _linear(problem, theta):
    """x, the residual and its Jacobian."""
    x = problem[0].values(theta)
    return x, _residual(theta, problem), jax.jacfwd(_residual)(theta, problem)


def _search(method: str, problem, theta, steps: int) -> tuple[np.ndarray, int]:
    if method == "lm":
        found, count = _levenberg(problem, jnp.asarray(theta))
        return np.asarray(found), int(count)
    return descend(method, _half_square, problem, theta, steps), steps


def _half_square(theta, problem):
    return jnp.sum(_residual(theta, problem) ** 2) / 2


@eqx.filter_jit
def _levenberg(problem, theta):
    """In one compiled step: optimistix's, Jacobian by forward mode."""
    found = optx.least_squares(
        _residual,
        optx.LevenbergMarquardt(rtol=1e-9, atol=1e-9),
        theta,
        problem,
        options={"jac": "fwd"},
        max_steps=STEPS,
        throw=False,
    )
    return found.value, found.stats["num_steps"]


@dataclass(frozen=True)
class _Point:
    theta: np.ndarray
    x: np.ndarray
    r: np.ndarray
    J: np.ndarray

    @property
    def loss(self) -> float:
        return float(self.r @ self.r) / 2


def _at(problem, theta) -> _Point:
    return _Point(theta, *map(np.asarray, _linear(problem, theta)))


def _newton(problem, theta) -> _Point:
    """Steps of Gauss and Newton for as long as they help."""
    here = _at(problem, theta)
    for _ in range(NEWTON):
        Q, R = np.linalg.qr(here.J)
        there = _at(problem, here.theta - np.linalg.solve(R, Q.T @ here.r))
        if not there.loss < here.loss:
            break
        here = there
    return here
