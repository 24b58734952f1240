"""What every fit of a robot tells: errors, torques, and which links are bodies."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache, partial

import jax
import numpy as np

from ..derivatives import regressor
from ..model import Model, physically_consistent
from ._factor import CHUNK
from ._measurements import Measurements
from ._parameters import in_double


class Fit(ABC):
    """The robot it began with, covariances, and the values of all columns there are."""

    prior: Model
    covariance: np.ndarray
    base_covariance: np.ndarray

    @property
    @abstractmethod
    def every(self) -> np.ndarray:
        """The values of all columns of `regressor(..., joints=True)`."""

    @abstractmethod
    def predict(self, data: Measurements) -> np.ndarray:
        """The torques that the motion needs, (k, nv)."""

    @property
    def sigma(self) -> np.ndarray:
        """The standard deviation of every parameter."""
        return np.sqrt(np.diagonal(self.covariance))

    @property
    def base_sigma(self) -> np.ndarray:
        """The standard deviation of every base parameter."""
        return np.sqrt(np.diagonal(self.base_covariance))

    @property
    def consistent(self) -> np.ndarray:
        """Of every link, whether there is a body with its parameters.

        Least squares does not see to that; noise or a poor motion may break it.
        """
        rows = self.every[: 10 * self.prior.n_links].reshape(-1, 10)
        with jax.enable_x64(True):
            return np.asarray(jax.vmap(physically_consistent)(rows))

    def residuals(self, data: Measurements) -> np.ndarray:
        """Measured less predicted torques, NaN where none counts."""
        found = np.asarray(data.tau) - self.predict(data)
        return np.where(np.asarray(data.weight) > 0, found, np.nan)


def torques(model: Model, data: Measurements, values: np.ndarray) -> np.ndarray:
    """Y times the values of all columns, for every sample.

    Also for values that no body has, with a mass of zero and a moment, say.
    """
    return in_chunks(_product(), model, data, values)


def in_chunks(program: Callable, model: Model, data: Measurements, *args) -> np.ndarray:
    """`program(model, *args, q, qd, qdd)`, many samples at a time, all of one size."""
    state = [np.asarray(x) for x in (data.q, data.qd, data.qdd)]
    found = []
    with jax.enable_x64(True):
        model = in_double(model)
        for at in range(0, len(data), CHUNK):
            rows = [x[at : at + CHUNK] for x in state]
            short = CHUNK - len(rows[0])
            rows = [np.concatenate([x, np.repeat(x[-1:], short, 0)]) for x in rows]
            found.append(np.asarray(program(model, *args, *rows))[: CHUNK - short])
    return np.concatenate(found)


@cache
def _product():
    of_samples = jax.vmap(partial(regressor, joints=True), (None, 0, 0, 0))
    return jax.jit(lambda model, x, *state: of_samples(model, *state) @ x)
