"""How uncertain a predicted torque is, as far as the parameters make it so."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..derivatives import regressor
from ._coordinates import moved
from ._fit import in_chunks


def spread(model, data, every, found) -> np.ndarray:
    """y cov yᵀ of every torque, with y its slopes by the parameters, (k, nv).

    By those of the regressor they are its columns; by placements they are found by
    forward mode.
    """
    program = _program(tuple(found.places.tolist()))
    half = _root(found.covariance)
    return in_chunks(program, model, data, every, found.columns, half)


def _root(cov: np.ndarray) -> np.ndarray:
    """half halfᵀ = cov, which may be singular."""
    d = np.sqrt(np.diagonal(cov))
    unit = np.where(d > 0, d, 1)
    values, Q = np.linalg.eigh(cov / np.outer(unit, unit))
    return unit[:, None] * Q * np.sqrt(np.maximum(values, 0))


@cache
def _program(places: tuple[int, ...]):
    def one(model, every, columns, half, q, qd, qdd):
        Y = regressor(model, q, qd, qdd, joints=True)
        y = Y[:, columns]
        if places:
            at = np.array(places)

            def along(offsets):
                six = jnp.zeros(6 * model.n_links).at[at].set(offsets)
                there = moved(model, six.reshape(-1, 6))
                return regressor(there, q, qd, qdd, joints=True) @ every

            y = jnp.concatenate([y, jax.jacfwd(along)(jnp.zeros(len(at)))], axis=1)
        return jnp.sum((y @ half) ** 2, axis=1)

    return eqx.filter_jit(jax.vmap(one, (None, None, None, None, 0, 0, 0)))
