"""`identify`: a robot from measurements, whole or in part, physical or not."""

import os
from collections.abc import Iterable
from typing import Literal

import numpy as np

from .._errors import ModelError
from .._types import Numbers
from ..model import Model
from ._coordinates import coordinates
from ._factor import Factor, factorized
from ._identified import Identified, placed
from ._interior import begun
from ._least_squares import given_noise, of_parameters
from ._measurements import Measurements, as_logs
from ._outcome import outcome
from ._robust import reweighted
from ._rollout_loss import RolloutOptions, fit_rollouts
from ._selection import selection
from ._torque_loss import fit_torques

METHODS = ("lm", "adam", "lbfgs")


def identify(
    model: Model,
    data: Measurements | Iterable[Measurements],
    *,
    parameters: str | Iterable[str] | Model = "all",
    loss: Literal["torque", "rollout"] = "torque",
    physical: bool = True,
    method: Literal["lm", "adam", "lbfgs"] = "lm",
    noise: Numbers | None = None,
    prior: float = 1.0,
    robust: Literal["huber"] | None = None,
    horizon: int = 10,
    start: Literal["measured", "free"] = "measured",
    integrator: str = "rk4",
    substeps: int = 1,
    steps: int | None = None,
    tolerance: float = 1e-4,
    checkpoint: str | os.PathLike | None = None,
    every: float = 5.0,
    show: bool = True,
) -> Identified:
    """The robot that the measurements tell of, and how sure each of its numbers is.

        found = jd.identify(model, jd.read_measurements("log.csv", model))
        found.model, found.sigma, found.validate(held_out)

    `parameters` are free, the others stay to the last bit: "all" that torques are
    linear in; names, such as "link3.m", "joint2.friction"; those of links or joints,
    for all that they have; patterns, "*.m"; the words links, armature, damping,
    friction, placement; or a model of booleans. Placements take the rollout loss.

    `loss="torque"` compares torques at the measured motion, `loss="rollout"` the motion
    under the measured torques, held from sample to sample: segments of `horizon`
    samples by `integrator`, in `substeps` between samples, from where they were
    measured, or (`start="free"`) from where they fit best, with the measured states as
    one measurement more.

    `physical=True` searches among bodies only, by `method`: "lm" (Levenberg and
    Marquardt), or `steps` of "adam" or "lbfgs". `prior` says how far from the model the
    numbers are likely to be, in factors e (`_coordinates.py`); what the data do not
    show stays there. `physical=False` is `least_squares`, or the same freedom for a
    rollout. `noise` is the standard deviation of each joint's torque, of a rollout's
    positions and rates, (2, nv); found from the residuals if not given.
    `robust="huber"` gives torques with a residual beyond 1.345 σ a lower weight, in
    turns, with σ from the median.

    A rollout's search ends when a step lowers the loss, a log-likelihood, by less than
    `tolerance`, or after `steps`. With `checkpoint`, a file, it writes its state there
    every `every` seconds, and the same call goes on from there to the same numbers, to
    the bit.
    """
    _check(loss, physical, method, prior, robust, start, horizon, substeps, steps)
    chosen = selection(model, parameters)
    if len(chosen.places) and loss == "torque":
        raise ModelError(
            f"'{chosen.place_names[0]}' is of a placement, in which torques are not "
            'linear. Use loss="rollout", or leave it out.'
        )
    if checkpoint is not None and loss == "torque":
        raise ModelError(
            'checkpoint is for loss="rollout": of the torque loss only reading a log '
            "takes long. Leave it out."
        )
    logs = as_logs(data, model)
    if loss == "rollout":
        options = RolloutOptions(
            *(horizon, start, integrator, substeps, method, steps, tolerance, prior),
            *(checkpoint, every, show),
        )
        return _by_rollouts(model, logs, chosen, physical, noise, options)
    return _by_torques(
        *(model, logs, chosen, physical, method, noise, prior, robust, steps, show)
    )


def _by_torques(
    model, logs, chosen, physical, method, noise, prior, robust, steps, show
) -> Identified:
    sigma, steps = given_noise(model, noise), steps or 500
    factor = factorized(model, logs, show=show)
    if not (factor.counts > 0).any():
        raise ModelError("No torque of the measurements counts: all weights are zero.")
    space, chosen, remarks = coordinates(model, chosen, physical)
    remarks += _uncounted(model, factor)

    def fitted(factor: Factor, sigma) -> Identified:
        if not len(chosen.parameters):
            raise ModelError("parameters leaves nothing free. Name some of them.")
        closed = of_parameters(model, factor, chosen.parameters, sigma)
        if not physical:
            return outcome(model, chosen, closed, None, space, factor, remarks)
        fit = fit_torques(
            *(space, factor),
            **{"closed": np.nan_to_num(closed.noise), "noise": sigma},
            **{"prior": prior, "method": method, "steps": steps},
        )
        return outcome(model, chosen, closed, fit, space, factor, remarks)

    found = fitted(factor, sigma)
    return reweighted(found, model, logs, fitted) if robust else found


def _by_rollouts(model, logs, chosen, physical, noise, options) -> Identified:
    factor = factorized(model, logs, show=options.show)
    space, chosen, remarks = coordinates(model, chosen, physical)
    if not len(chosen.names):
        raise ModelError("parameters leaves nothing free. Name some of them.")
    theta = _begun(model, factor, space, chosen, options.prior)
    fit = fit_rollouts(model, logs, space, chosen, noise, options, theta)
    if len(chosen.places):  # torques of the robot as it was found
        offsets = (fit.theta * space.units)[-len(chosen.places) :]
        there = placed(model, chosen.places, offsets)
        factor = factorized(there, logs, show=options.show)
    return outcome(model, chosen, None, fit, space, factor, remarks + fit.remarks)


def _begun(model, factor, space, chosen, prior) -> np.ndarray:
    """Where torques would have it, with the accelerations that were measured."""
    physical = not space.plain and len(chosen.parameters)
    if not physical or not (factor.counts > 0).any():
        return space.start
    closed = of_parameters(model, factor, chosen.parameters)
    theta = begun(space, factor, np.nan_to_num(closed.noise), prior)
    return np.concatenate([theta, space.start[len(theta) :]])


def _uncounted(model: Model, factor: Factor) -> list[str]:
    names = [model.velocity_names[j] for j in np.flatnonzero(factor.counts == 0)]
    return [f"No torque of '{name}' counts." for name in names]


def _check(loss, physical, method, prior, robust, start, horizon, substeps, steps):
    for name, value, known in (
        ("loss", loss, ("torque", "rollout")),
        ("method", method, METHODS),
        ("robust", robust, (None, "huber")),
        ("start", start, ("measured", "free")),
    ):
        if value not in known:
            words = ", ".join(map(repr, known))
            raise ModelError(f"{name} is {value!r}; it can be {words}.")
    if not (np.isfinite(prior) and prior > 0):
        raise ModelError(f"prior is {prior}; give a positive number of factors e.")
    for name, value in (("horizon", horizon), ("substeps", substeps), ("steps", steps)):
        if value is not None and value < 1:
            raise ModelError(f"{name} is {value}; give 1 or more.")
    if not physical and method != "lm" and loss == "torque":
        raise ModelError(
            "physical=False has a closed form; method has no say in it. Leave it out."
        )
    if robust and loss == "rollout":
        raise ModelError('robust="huber" is for loss="torque". Leave it out.')
