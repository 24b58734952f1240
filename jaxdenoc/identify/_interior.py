"""Where to begin: the body that torques ask for, found where the problem is convex.

Among parameters x themselves the bodies are a convex set and torques a parabola, so
that steps of Newton find the way from any prior. The distance to the prior is that of
Burg, which keeps x inside and is the prior of `_torque_loss.py` to second order:

    min over x   ½ ‖A x - b‖²  +  Σ [tr(𝒥₀⁻¹ 𝒥) - log det 𝒥] / s²     of links
                               +  Σ [x / x₀ - log x] / s²              of joints

in units of σ, beginning with a large one. In log-Cholesky coordinates, which bend the
parabola, a search that begins far away may end in a valley [Lee, Wensing, Park 2019].
"""

import jax
import numpy as np

from ..model import pseudo_inertia
from ._coordinates import Coordinates, of_body
from ._factor import Factor, triangle
from ._least_squares import inverse_noise

NEAREST = 1e-9  # of a joint's torque: as low as σ goes here
FALL = 0.1  # of σ at a time
STEPS = 40
ENOUGH = 1e-4  # of Newton's decrement, squared


def begun(
    coordinates: Coordinates, factor: Factor, sigma: np.ndarray, prior: float
) -> np.ndarray:
    """θ of the convex problem's solution for this noise."""
    free = [*_of_links(coordinates), *coordinates.some, *coordinates.joints]
    counted = factor.counts > 0
    usual = np.sqrt(factor.torque_squares() / np.maximum(factor.counts, 1))
    usual = np.where(usual > 0, usual, usual.max() or 1.0)
    barrier = _Barrier(coordinates, np.array(free), prior)
    x, level = coordinates.x0.copy(), 1.0
    last = float(np.max((np.maximum(sigma, NEAREST * usual) / usual)[counted]))
    while True:
        noise = np.maximum(np.maximum(sigma, NEAREST * usual), level * usual)
        x = _newton(x, barrier, *factor.rows(inverse_noise(noise, counted)))
        if level < min(last, np.min((sigma / usual)[counted])) or level < NEAREST:
            return _theta(coordinates, x)
        level *= FALL


class _Barrier:
    """Burg's distance: value, gradient, and rows B of its Hessian Bᵀ B."""

    def __init__(self, coordinates: Coordinates, free: np.ndarray, prior: float):
        self.free, self.prior, self.x0 = free, prior, coordinates.x0
        self.k = 10 * coordinates.model.n_links
        self.links = np.unique(free[free < self.k] // 10)
        with jax.enable_x64(True):
            ten = [np.asarray(pseudo_inertia(row)) for row in np.eye(10)]
        self.E = np.array(ten)
        self.inverse = {i: np.linalg.inv(self.J(self.x0, i)) for i in self.links}
        self.joints = np.flatnonzero(free >= self.k)

    def J(self, x, i):
        return np.tensordot(x[10 * i : 10 * i + 10], self.E, 1)

    def value(self, x) -> float:
        total = 0.0
        for i in self.links:
            J = self.J(x, i)
            try:
                L = np.linalg.cholesky(J)
            except np.linalg.LinAlgError:
                return np.inf
            total += np.sum(self.inverse[i] * J) - 2 * np.sum(np.log(np.diagonal(L)))
        y = x[self.free[self.joints]] / self.x0[self.free[self.joints]]
        if (y <= 0).any():
            return np.inf
        return (total + float(np.sum(y - np.log(y)))) / self.prior**2

    def slopes(self, x) -> tuple[np.ndarray, np.ndarray]:
        g, rows = np.zeros(len(self.free)), []
        for i in self.links:
            at = np.flatnonzero(self.free // 10 == i)
            own = self.E[self.free[at] - 10 * i]
            L = np.linalg.cholesky(self.J(x, i))
            half = np.linalg.inv(L)
            B = (half @ own @ half.T).reshape(len(at), 16)
            g[at] = np.tensordot(own, self.inverse[i], 2) - B[:, ::5].sum(axis=1)
            rows.append(np.zeros((16, len(self.free))))
            rows[-1][:, at] = B.T
        at = self.joints
        y, y0 = x[self.free[at]], self.x0[self.free[at]]
        g[at] = 1 / y0 - 1 / y
        rows.append(np.zeros((len(at), len(self.free))))
        rows[-1][np.arange(len(at)), at] = 1 / y
        return g / self.prior**2, np.concatenate(rows) / self.prior


def _newton(x, barrier: _Barrier, A, b):
    """Newton's steps, cut where they would leave the bodies."""
    free = barrier.free

    def value(x):
        r = A @ x - b
        return r @ r / 2 + barrier.value(x)

    here = value(x)
    for _ in range(STEPS):
        g, B = barrier.slopes(x)
        g = g + A[:, free].T @ (A @ x - b)
        R = triangle(np.concatenate([A[:, free], B]))
        half = np.linalg.solve(R.T, g)
        step, decrement = -np.linalg.solve(R, half), float(half @ half)
        length = 1.0
        while length > 1e-10:
            there = x.copy()
            there[free] += length * step
            found = value(there)
            if found < here - 0.1 * length * decrement:
                break
            length /= 2
        else:
            break
        x, here = there, found
        if decrement < ENOUGH:
            break
    return x


def _of_links(coordinates: Coordinates) -> list[int]:
    return [10 * i + c for i in coordinates.whole for c in range(10)]


def _theta(coordinates: Coordinates, x: np.ndarray) -> np.ndarray:
    """θ that stands for x."""
    rows = x[: 10 * coordinates.model.n_links].reshape(-1, 10)
    pairs = zip(coordinates.roots, coordinates.whole, strict=True)
    links = [of_body(U, rows[i]) for U, i in pairs]
    some = _straightened(coordinates, x)
    joints = 2 * np.sqrt(x[np.array(coordinates.joints, int)])
    theta = np.concatenate([*links, some, joints])
    return theta / coordinates.units[: len(theta)]


def _straightened(coordinates: Coordinates, x: np.ndarray) -> np.ndarray:
    """u of `_gauge.inside`: v / (1 - γ(v)) of every link."""
    at = np.array(coordinates.some, int)
    v = (x - coordinates.x0)[at]
    for i in np.unique(at // 10):
        own = at // 10 == i
        with jax.enable_x64(True):
            pi, ten = coordinates.x0[10 * i :][:10], np.zeros(10)
            ten[at[own] - 10 * i] = v[own]
            half = np.linalg.inv(np.linalg.cholesky(np.asarray(pseudo_inertia(pi))))
            A = half @ np.asarray(pseudo_inertia(ten)) @ half.T
        v[own] /= 1 - max(0.0, -float(np.linalg.eigvalsh(A)[0]))
    return v
