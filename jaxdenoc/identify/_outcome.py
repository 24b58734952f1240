"""From a search's end to `Identified`: values, covariances, sources, the model."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..model import Model, inertial_parameters, physically_consistent
from ._base_parameters import TOLERANCE, BaseParameters, analysed
from ._coordinates import Coordinates
from ._factor import Factor
from ._identified import Identified, placed
from ._least_squares import LeastSquares, inverse_noise
from ._parameters import all_values, in_double
from ._selection import Selection

PRIOR = 0.99  # of the prior's width, where a placement is not seen


def outcome(
    model: Model,
    chosen: Selection,
    closed: LeastSquares | None,
    fit: Any,
    space: Coordinates,
    factor: Factor,
    remarks: list[str],
) -> Identified:
    """Of a search `fit`, or without one of the closed form."""
    columns, places = chosen.parameters.columns, chosen.places
    prior_values = np.concatenate([all_values(model)[columns], _shifts(model, places)])
    every, k = all_values(model), len(columns)
    if fit is None:
        assert closed is not None
        values, covariance, noise = closed.values, closed.covariance, closed.noise
        every[columns] = values
        offsets = np.zeros(0)
    else:
        every, offsets, half = _at(space, fit, columns, places)
        covariance, noise = half @ half.T, getattr(fit, "noise", None)
        values = np.concatenate([every[columns], prior_values[k:] + offsets])
    geometry = placed(model, places, offsets)
    rms = np.sqrt(factor.squares(every) / np.maximum(factor.counts, 1))
    counted = factor.counts > 0
    residual = np.where(counted, rms, np.nan)
    found = chosen.parameters.put(model, every[columns]) if k else model
    found = _with_places(found, geometry, places)
    base = closed.base if closed is not None else _base(chosen, factor, rms)
    C = base.combination if k else np.zeros((0, 0))
    of_torques = residual if noise is None else np.where(counted, noise, np.nan)
    return Identified(
        model=found,
        prior=model,
        parameters=chosen.names,
        values=values,
        prior_values=prior_values,
        covariance=covariance,
        sources=(*_sources(base), *_place_sources(space, fit, places)),
        base=base,
        base_values=C @ values[:k],
        base_covariance=C @ covariance[:k, :k] @ C.T,
        noise=of_torques,
        state_noise=getattr(fit, "state_noise", None),
        residual=residual,
        history=np.zeros(0) if fit is None else fit.history,
        iterations=0 if fit is None else fit.iterations,
        remarks=tuple(remarks) + _unsound(found) * (fit is not None),
        columns=columns,
        places=places,
    )


@eqx.filter_jit
def _all_of(space: Coordinates, theta):
    def both(theta):
        return space.values(theta), space.offsets(theta).reshape(-1)

    return both(theta), jax.jacfwd(both)(theta)


def _at(space, fit, columns, places):
    """x of all columns, offsets of the placements, and the root of the covariance."""
    with jax.enable_x64(True):
        (x, six), (dx, dsix) = _all_of(space, jnp.asarray(fit.theta))
    slopes = np.concatenate([np.asarray(dx)[columns], np.asarray(dsix)[places]])
    every = all_values(space.model)
    every[columns] = np.asarray(x)[columns]  # what is held stays as it was
    return every, np.asarray(six)[places], slopes @ fit.half


def _shifts(model: Model, places: np.ndarray) -> np.ndarray:
    """Of placements in the model: no turn, and where they are."""
    t = np.asarray(model.placement.translation, float)
    return np.hstack([np.zeros_like(t), t]).ravel()[places]


def _with_places(model: Model, geometry: Model, places: np.ndarray) -> Model:
    """The placements of `geometry` where they were free, the others to the last bit."""
    links = np.unique(places // 6)
    old, new = model.placement, geometry.placement

    def some(a, b):
        rows = np.array(a)
        rows[links] = np.asarray(b)[links]
        return jnp.asarray(rows)

    pair = some(old.rotation, new.rotation), some(old.translation, new.translation)
    return eqx.tree_at(
        lambda m: (m.placement.rotation, m.placement.translation), model, pair
    )


def _base(chosen: Selection, factor: Factor, rms: np.ndarray):
    parameters = chosen.parameters
    if not len(parameters):
        none = np.zeros(0)
        return BaseParameters(parameters, none.astype(int), none[:, None][:, :0], none,
                              none, 1.0)  # fmt: skip
    scale = inverse_noise(np.maximum(rms, 1e-12), factor.counts > 0)
    return analysed(parameters, factor.rows(scale)[0], TOLERANCE)


def _sources(base) -> tuple[str, ...]:
    seen, alone = np.any(base.combination, axis=0), base.alone()
    pairs = zip(seen.tolist(), alone.tolist(), strict=True)
    return tuple("data" if a else "shared" if s else "prior" for s, a in pairs)


def _place_sources(space, fit, places) -> tuple[str, ...]:
    """Of placements, by how much narrower they are than the prior left them."""
    if not len(places):
        return ()
    narrow = np.linalg.norm(fit.half[-len(places) :], axis=1) / fit.prior
    return tuple("data" if x < PRIOR else "prior" for x in narrow)


def _unsound(model: Model) -> tuple[str, ...]:
    """Links that the model, with its rounding, does not hold as bodies."""
    with jax.enable_x64(True):
        pi = inertial_parameters(in_double(model))
        good = np.asarray(jax.vmap(physically_consistent)(pi))
    return tuple(
        f"Link '{model.link_names[i]}' is so thin that rounding leaves it no body."
        for i in np.flatnonzero(~good)
    )
