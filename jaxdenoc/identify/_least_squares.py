"""Parameters from torques by weighted least squares, in closed form.

With the base parameters β of `_base_parameters.py`, the torques weighted by the noise
σ_j of their joints, and the prior π₀, in factors of `_factor.py`,

    min over β   Σ_j ‖Y_j π - τ_j‖² / σ_j²           β = C π
    π = π₀ + P (β - C π₀) ,   P = W² Cᵀ (C W² Cᵀ)⁻¹

so that π is the one nearest to π₀, in units W, among those of base parameters β: what
torques do not show stays as it was. The covariance of β is that of Gauss and Markov,
(Σ_j Y_jᵀ Y_j / σ_j²)⁻¹ in independent columns, and that of π is P cov(β) Pᵀ.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._errors import ModelError
from .._types import Numbers
from ..model import Model
from ._base_parameters import TOLERANCE, BaseParameters, analysed
from ._factor import Factor, factorized
from ._fit import Fit, torques
from ._measurements import Measurements
from ._parameters import (
    Parameters,
    all_values,
    parameters_of,
    typical,
)

LEAST_NOISE = 1e-12  # of a joint's torque: rounding, where there is no noise at all
ROUNDS = 100
CONVERGED = 1e-10


@dataclass(frozen=True)
class LeastSquares(Fit):
    """Parameters from torques, how certain they are, and what they rest on.

    values, covariance      of all `parameters`, in SI units
    sources                 of each: "data", if torques show it by itself; "shared", if
                            only in a sum with others, of which each has got its part;
                            "prior", if not at all
    base_values, base_covariance    of `base`, the combinations that torques show
    noise                   the standard deviation of each joint's torque; NaN where no
                            torque counts
    residual                root mean square of each joint's residual torque

    The covariance is that of what came from data; the null space, where nothing did,
    adds nothing to it, so that it is singular, and a parameter whose source is "prior"
    has zero.
    """

    prior: Model
    base: BaseParameters
    values: np.ndarray
    covariance: np.ndarray
    base_values: np.ndarray
    base_covariance: np.ndarray
    noise: np.ndarray
    residual: np.ndarray
    counts: np.ndarray  # of torques, per joint

    @property
    def parameters(self) -> Parameters:
        return self.base.parameters

    @property
    def sources(self) -> tuple[str, ...]:
        seen, alone = np.any(self.base.combination, axis=0), self.base.alone()
        pairs = zip(seen.tolist(), alone.tolist(), strict=True)
        return tuple("data" if a else "shared" if s else "prior" for s, a in pairs)

    @cached_property
    def model(self) -> Model:
        """The prior model with these values."""
        return self.parameters.put(self.prior, self.values)

    def predict(self, data: Measurements) -> np.ndarray:
        """The torques that these values have for the motion, (k, nv)."""
        return torques(self.prior, data, self.every)

    @property
    def every(self) -> np.ndarray:
        """The values of all columns, those of the model where they were not free."""
        every = all_values(self.prior)
        every[self.parameters.columns] = self.values
        return every


def least_squares(
    model: Model,
    data: Factor | Measurements | Iterable[Measurements],
    *,
    joints: bool | Iterable[str] = True,
    noise: Numbers | None = None,
    prior_scale: Numbers | None = None,
    tolerance: float = TOLERANCE,
) -> LeastSquares:
    """Inertial and joint parameters from torques, and from the model where they end.

    `data` are one log or many, or their `factorized`. `joints` are the parameters of
    joints that are looked for, as in `base_parameters`; those left out keep the model's
    values. `noise` is the standard deviation of each joint's torque. If it is not given
    it is found from the residuals, and with it the weights, in turn until both agree:

        σ_j² = ‖Y_j π - τ_j‖² / (N_j - p_j) ,   p_j = tr (Y_j cov Y_jᵀ) / σ_j²

    where the p_j share out the number of base parameters. `prior_scale` says of every
    parameter how far it is likely to be from the model's: W above. By default it is its
    usual size for such a link.
    """
    names = joints if isinstance(joints, bool | str) else tuple(joints)
    parameters = parameters_of(model, names)
    factor = data if isinstance(data, Factor) else factorized(model, data)
    return of_parameters(model, factor, parameters, noise, prior_scale, tolerance)


def of_parameters(
    model: Model,
    factor: Factor,
    parameters: Parameters,
    noise: Numbers | None = None,
    prior_scale: Numbers | None = None,
    tolerance: float = TOLERANCE,
) -> LeastSquares:
    """`least_squares` for any choice of columns."""
    W = _scale(model, parameters, prior_scale)
    counted = factor.counts > 0
    if not counted.any():
        raise ModelError("No torque of the measurements counts: all weights are zero.")
    every = all_values(model)
    sigma = given_noise(model, noise)
    if sigma is None:
        usual = np.sqrt(factor.torque_squares() / np.maximum(factor.counts, 1))
        usual = np.where(usual > 0, usual, usual.max() or 1.0)
        rows = factor.rows(inverse_noise(usual, counted))[0]
        base = analysed(parameters, rows, tolerance)
        at = parameters.columns[base.independent]
        sigma = _by_turns(factor, at, counted, every, usual)
    scale = inverse_noise(sigma, counted)
    base = analysed(parameters, factor.rows(scale)[0], tolerance)
    fit = _solved(factor, parameters.columns[base.independent], scale, every)
    C = base.combination
    P = _nearest(C, W)
    every[parameters.columns] += P @ fit.change
    rms = np.sqrt(factor.squares(every) / np.maximum(factor.counts, 1))
    return LeastSquares(
        prior=model,
        base=base,
        values=every[parameters.columns],
        covariance=P @ fit.covariance @ P.T,
        base_values=C @ every[parameters.columns],
        base_covariance=fit.covariance,
        noise=np.where(counted, sigma, np.nan),
        residual=np.where(counted, rms, np.nan),
        counts=factor.counts,
    )


@dataclass(frozen=True)
class _Fit:
    """The base parameters less those of the prior, for weights that were given."""

    change: np.ndarray
    covariance: np.ndarray
    shares: np.ndarray  # p_j, of base parameters that rest on each joint


def _solved(factor, at, scale, prior) -> _Fit:
    """For the independent columns `at`, and 1 / σ of the joints."""
    A, b = factor.rows(scale)
    d = np.linalg.norm(A[:, at], axis=0)
    Q, R = np.linalg.qr(A[:, at] / d)
    change = np.linalg.solve(R, Q.T @ (b - A @ prior)) / d
    half = np.linalg.inv(R) / d[:, None]
    sizes = [len(R_j) for R_j in factor.triangles]
    parts = np.split(np.sum(Q**2, axis=1), np.cumsum(sizes)[:-1])
    return _Fit(change, half @ half.T, np.array([x.sum() for x in parts]))


def _by_turns(factor, at, counted, prior, usual) -> np.ndarray:
    """Noise from residuals, weights from noise, until nothing changes."""
    least, sigma = LEAST_NOISE * usual, usual
    for _ in range(ROUNDS):
        fit = _solved(factor, at, inverse_noise(sigma, counted), prior)
        x = prior.copy()
        x[at] += fit.change
        free = np.maximum(factor.counts - fit.shares, 1)
        found = np.maximum(np.sqrt(factor.squares(x) / free), least)
        same = np.abs(found / sigma - 1)[counted].max() < CONVERGED
        sigma = found
        if same:
            break
    return sigma


def inverse_noise(sigma, counted) -> np.ndarray:
    """1 / σ, and zero for joints without torques that count."""
    some = counted & (sigma > 0)
    return np.where(some, 1 / np.where(some, sigma, 1), 0)


def _nearest(C: np.ndarray, W: np.ndarray) -> np.ndarray:
    """P = W² Cᵀ (C W² Cᵀ)⁻¹, with C P = 1: the smallest change, in units W."""
    Q, R = np.linalg.qr((C * W).T)
    P = W[:, None] * np.linalg.solve(R, Q.T).T
    return np.where(np.any(C, axis=0)[:, None], P, 0)  # not to rounding, to the bit


def _scale(model, parameters, given) -> np.ndarray:
    W = (
        typical(model)[parameters.columns]
        if given is None
        else np.asarray(given, float)
    )
    if W.shape != (len(parameters),) or not (np.isfinite(W) & (W > 0)).all():
        raise ModelError(
            f"prior_scale needs {len(parameters)} positive numbers, one for each "
            "of the parameters in the order of their names."
        )
    return W


def given_noise(model, given) -> np.ndarray | None:
    if given is None:
        return None
    sigma = np.broadcast_to(np.asarray(given, float), (model.nv,))
    if not (np.isfinite(sigma) & (sigma > 0)).all():
        raise ModelError("noise needs a positive standard deviation for every joint.")
    return sigma
