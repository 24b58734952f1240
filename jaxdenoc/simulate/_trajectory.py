"""A motion, sampled."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._jit import jitted
from ..dynamics import kinetic_energy, potential_energy
from ..model import Model


class Trajectory(eqx.Module):
    """Samples of a motion: one row per time."""

    t: Float[Array, " k"]
    q: Float[Array, "k q"]
    qd: Float[Array, "k v"]
    tau: Float[Array, "k v"]  # the joint forces that were applied

    @property
    def status(self) -> Bool[Array, " k"]:
        """True where the sample is finite."""
        return jnp.all(jnp.isfinite(self.q), axis=1) & jnp.all(
            jnp.isfinite(self.qd), axis=1
        )

    @jitted()
    def energy(self, model: Model) -> Float[Array, " k"]:
        """Kinetic plus potential energy at every sample."""

        def of(q, qd):
            return kinetic_energy(model, q, qd) + potential_energy(model, q)

        return jax.vmap(of)(self.q, self.qd)
