"""Rollouts beside measured motions: multiple shooting, by Gauss and Newton.

With e of `_shooting.py`, of channels j = 1 … 2 nv, and the prior of `_torque_loss.py`,

    L(θ, d) = Σ_j N_j log σ_j + ½ ‖θ - θ₀‖² / s² ,   N_j σ_j² = Σ e_j² + Σ d_j²

which is least squares with a noise that is found in turn: ∂L/∂θ = Σ_j e_jᵀ ∂e_j / σ_j².
With a noise that was given it is ½ Σ_j N_j σ_j² / σ_given². Starts d are zero, or free
with the noise as their prior, and are then taken out of every segment by itself:

    [E_d; 1] = Q R ,    (1 - Q Qᵀ) [E_θ; 0] δ = -(1 - Q Qᵀ) [e; d]

whose rows are folded into one triangle part by part. A step is damped as Levenberg and
Marquardt's, until L falls.
"""

import os
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np

from .._errors import ModelError
from .._progress import progress
from ..model import Model
from ..simulate._described import described
from ..simulate._steps import INTEGRATORS
from ._coordinates import Coordinates
from ._factor import triangle
from ._segments import segments
from ._shooting import of_all, program
from ._state import State, Store

ITERATIONS = {"lm": 50, "adam": 300, "lbfgs": 100}
LEAST = 1e-12  # of a channel's size: rounding
DAMPING, MOST = 1e-6, 1e8


@dataclass(frozen=True)
class RolloutOptions:
    horizon: int
    start: str
    integrator: str
    substeps: int
    method: str
    steps: int | None
    tolerance: float
    prior: float
    checkpoint: str | os.PathLike | None
    every: float
    show: bool

    @property
    def numbers(self) -> tuple:
        """What the result depends on."""
        return (
            *(self.horizon, self.start, self.integrator, self.substeps),
            *(self.method, self.steps, self.tolerance, self.prior),
        )


@dataclass(frozen=True)
class RolloutFit:
    theta: np.ndarray
    half: np.ndarray
    state_noise: np.ndarray
    history: np.ndarray
    iterations: int
    prior: float
    remarks: list[str] = field(default_factory=list)


class Shooting:
    """The problem: its segments, noise, and what L and its triangle are at θ, d."""

    def __init__(self, model, logs, space: Coordinates, noise, options: RolloutOptions):
        self.space, self.options = space, options
        self.cut = segments(model, logs, options.horizon)
        self.count = float(self.cut.real.sum())
        rates = self.cut.qd.reshape(-1, model.nv)
        size = np.sqrt(np.mean(rates**2, axis=0)) + 1e-3 * np.abs(rates).max() + 1e-9
        self.least = LEAST * np.tile(size, 2)
        self.noise = _state_noise(model, noise)
        self.free = options.start == "free"

    @property
    def how(self) -> tuple:
        return self.cut, self.options.integrator, self.options.substeps

    def at(self, theta, d) -> tuple[float, np.ndarray]:
        """L and σ."""
        squares = np.sum(d**2, axis=0)
        for _, e in of_all("missed", self.space, theta, d, *self.how):
            squares = squares + np.sum(e**2, axis=(0, 1))
        off = (theta - self.space.start) / self.options.prior
        found = np.sqrt(squares / self.count + self.least**2)
        if self.noise is not None:
            loss = self.count * np.sum((found / self.noise) ** 2) / 2
            return float(loss + off @ off / 2), self.noise
        return float(self.count * np.sum(np.log(found)) + off @ off / 2), found

    def linear(self, theta, d, sigma) -> tuple[np.ndarray, np.ndarray]:
        """The triangle of [J r] with the prior's rows, and by what d follows θ."""
        p, s = len(theta), self.options.prior
        off = (theta - self.space.start) / s
        R = np.hstack([np.eye(p) / s, off[:, None]])
        back = np.zeros((len(d), d.shape[1] if self.free else 0, p + 1))
        what = "starts" if self.free else "slopes"
        for rows, found in of_all(what, self.space, theta, d, *self.how):
            e, E = found[0] / sigma, found[1] / sigma[:, None]
            k = len(e)
            full = np.concatenate([E.reshape(k, -1, p), e.reshape(k, -1, 1)], axis=2)
            if self.free:
                E_d = (found[2] / sigma[:, None]).reshape(k, -1, len(sigma)) * sigma
                full, back[rows] = _without_starts(full, E_d, d[rows] / sigma)
            R = triangle(np.vstack([R, full.reshape(-1, p + 1)]))
        return R, back

    def moved(self, d, back, step, sigma) -> np.ndarray:
        """d after a step of θ: each segment's best."""
        if not self.free:
            return d
        return d - sigma * (back[:, :, :-1] @ step + back[:, :, -1])


def _without_starts(full, E_d, z) -> tuple[np.ndarray, np.ndarray]:
    """Rows with the starts taken out, and R⁻¹ Qᵀ of them."""
    k, v = z.shape
    one = np.broadcast_to(np.eye(v), (k, v, v))
    below = np.zeros((k, v, full.shape[2]))
    below[:, :, -1] = z
    Q, R = np.linalg.qr(np.concatenate([E_d, one], axis=1))
    rows = np.concatenate([full, below], axis=1)
    part = Q.transpose(0, 2, 1) @ rows
    return rows - Q @ part, np.linalg.solve(R, part)


def fit_rollouts(
    model: Model, logs, space: Coordinates, chosen, noise, options: RolloutOptions,
    theta: np.ndarray,
) -> RolloutFit:  # fmt: skip
    """The search from θ, or from where its checkpoint was."""
    if options.integrator not in INTEGRATORS:
        raise ModelError(
            f"integrator is '{options.integrator}'; it can be {', '.join(INTEGRATORS)}."
        )
    if options.start == "free" and options.method != "lm":
        raise ModelError("start='free' needs method='lm'.")
    with jax.enable_x64(True):
        problem = Shooting(model, logs, space, noise, options)
        asked = described(
            (model, logs, chosen.names, noise, space.plain, options.numbers, theta)
        )
        store = Store(options.checkpoint, asked, options.every)
        state = store.read() or _first(problem, theta)
        most = options.steps or ITERATIONS[options.method]
        step = _levenberg if options.method == "lm" else _descent(problem, most)
        title = "Comparing rollouts"
        with progress(title, most, "iterations", show=options.show) as advance:
            advance(state.count)
            while not state.done and state.count < most:
                state = step(problem, state)
                advance(1)
                store.write(state)
        store.write(state, last=True)
        sigma = problem.at(state.theta, state.d)[1]
        R, _ = problem.linear(state.theta, state.d, sigma)
    p = len(state.theta)
    remarks = [] if state.done else [f"Not converged in {most} iterations: give steps."]
    return RolloutFit(
        *(state.theta, np.linalg.inv(R[:p, :p]), sigma.reshape(2, -1)),
        *(state.history, state.count, options.prior, remarks),
    )


def _first(problem: Shooting, theta) -> State:
    d = np.zeros((len(problem.cut.dt), 2 * problem.space.model.nv))
    loss = problem.at(theta, d)[0]
    if not np.isfinite(loss):
        raise ModelError(
            "The rollouts of the model do not stay finite. Give a shorter horizon or "
            "more substeps."
        )
    return State(theta, d, np.array([loss]), DAMPING, 0, False, ())


def _levenberg(problem: Shooting, state: State) -> State:
    """One step that makes L smaller, or the end."""
    loss, sigma = problem.at(state.theta, state.d)
    R, back = problem.linear(state.theta, state.d, sigma)
    p, damping = len(state.theta), state.damping
    lengths = np.linalg.norm(R[:, :p], axis=0)
    while damping < MOST:
        A = np.vstack([R[:, :p], np.diag(np.sqrt(damping) * lengths)])
        b = np.concatenate([R[:, p], np.zeros(p)])
        step = -np.linalg.lstsq(A, b, rcond=None)[0]
        theta = state.theta + step
        d = problem.moved(state.d, back, step, sigma)
        found = problem.at(theta, d)[0]
        if found < loss:
            small = loss - found < problem.options.tolerance
            history = np.append(state.history, found)
            return State(
                theta,
                d,
                history,
                damping / 10,
                state.count + 1,
                bool(small),
                (),
            )
        damping = max(damping, 1e-12) * 10
    return State(
        state.theta, state.d, state.history, damping, state.count + 1, True, ()
    )


def _descent(problem: Shooting, most: int):
    """Steps of Adam or L-BFGS down L, with gradients in reverse mode."""
    from ._optax import one_step

    space, options, least = problem.space, problem.options, problem.least
    run = program("missed", options.integrator, options.substeps)

    def loss(theta, args):
        space, d, cut, noise = args
        squares = jnp.sum(run(space, theta, d, cut) ** 2, axis=(0, 1)) / problem.count
        off = (theta - space.start) / options.prior
        if noise is not None:
            return problem.count * jnp.sum(squares / noise**2) / 2 + off @ off / 2
        found = jnp.log(squares + least**2) / 2
        return problem.count * jnp.sum(found) + off @ off / 2

    step, first = one_step(options.method, loss, most)

    def advance(problem: Shooting, state: State) -> State:
        args = space, state.d, problem.cut, problem.noise
        theta, inner, found = step(state.theta, first(state), args)
        history = np.append(state.history, found)
        count = state.count + 1
        inner = tuple(map(np.asarray, jax.tree.leaves(inner)))
        return State(
            np.asarray(theta), state.d, history, 0.0, count, count >= most, inner
        )

    return advance


def _state_noise(model: Model, given) -> np.ndarray | None:
    if given is None:
        return None
    x = np.asarray(given, float)
    x = x[:, None] if x.shape == (2,) else x
    try:
        x = np.broadcast_to(x, (2, model.nv)).ravel()
    except ValueError:
        x = np.array([-1.0])
    if not (np.isfinite(x) & (x > 0)).all():
        raise ModelError(
            "noise of a rollout needs two positive numbers, of positions and of rates, "
            f"or two for every joint, (2, {model.nv})."
        )
    return x
