"""How much the torques of a motion would tell of the base parameters.

With the independent columns Y₁ of the regressor, and rows divided by the noise σ of
the joints' torques, F = Σ Y₁ᵀ Y₁ / σ² over the samples is the inverse covariance of the
base parameters. "logdet" is log det F, for the volume of their errors; "condition" is
the ratio of eigenvalues of F with columns of length one, D F D with D = diag(F)^-½, for
the worst direction beside the best one. No unit of a parameter changes the condition,
and none changes which motion has the largest determinant.
"""

from functools import partial
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..derivatives import regressor
from ..model import Model
from ._fourier import Motion

Criterion = Literal["logdet", "condition"]


class Question(eqx.Module):
    """Which columns are asked for, and the noise of the joints."""

    columns: Int[Array, " r"]
    sigma: Float[Array, " v"]

    def matrix(self, model: Model, x: Motion) -> Float[Array, "r r"]:
        """F of the samples of a motion."""
        return self.of(regressors(model, x))

    def of(self, Y: Float[Array, "k v c"]) -> Float[Array, "r r"]:
        """F of all columns' regressors."""
        A = Y[..., self.columns] / self.sigma[None, :, None]
        A = A.reshape(-1, len(self.columns))
        return jnp.matmul(A.T, A, precision="highest")


def regressors(model: Model, x: Motion) -> Float[Array, "k v c"]:
    """Y of every sample, those of joints' parameters too."""
    return jax.vmap(partial(regressor, joints=True), (None, 0, 0, 0))(model, *x)


def condition(F: Float[Array, "r r"]) -> Float[Array, ""]:
    e = jnp.linalg.eigvalsh(_with_unit_columns(F))
    return e[-1] / jnp.maximum(e[0], 1e-15 * e[-1])


def logdet(F: Float[Array, "r r"]) -> Float[Array, ""]:
    d = jnp.log(jnp.diagonal(F))
    return jnp.linalg.slogdet(_with_unit_columns(F))[1] + jnp.sum(d)


def cost(F: Float[Array, "r r"], criterion: Criterion) -> Float[Array, ""]:
    """What is to become small, of the same size for all robots."""
    if criterion == "condition":
        return jnp.log(condition(F))
    return -logdet(F) / len(F)


def _with_unit_columns(F: Float[Array, "r r"]) -> Float[Array, "r r"]:
    d = jnp.sqrt(jnp.diagonal(F))
    return F / (d[:, None] * d[None])
