"""Descent by gradients: Adam, and L-BFGS with a line search, of optax."""

from collections.abc import Callable
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

RATE = 0.05  # Adam's first; it falls to nothing as a cosine does


def optimiser(method: str, steps: int):
    if method == "lbfgs":
        return optax.lbfgs()
    return optax.adam(optax.cosine_decay_schedule(RATE, steps))


def descend(method: str, loss: Callable, args, theta, steps: int) -> np.ndarray:
    """θ after so many steps down `loss(θ, args)`, all in one compiled loop."""
    with jax.numpy_dtype_promotion("standard"):  # optax adds integers of two kinds
        return np.asarray(_descend(method, loss, args, jnp.asarray(theta), steps))


@eqx.filter_jit
def _descend(method, loss, args, theta, steps):
    chosen = optimiser(method, steps)
    value = partial(_with_args, loss, args)

    def step(carry, _):
        theta, state = carry
        found, slope = jax.value_and_grad(value)(theta)
        extra = {"value": found, "grad": slope, "value_fn": value}
        extra = extra if method == "lbfgs" else {}
        change, state = chosen.update(slope, state, theta, **extra)
        return (optax.apply_updates(theta, change), state), None

    (theta, _), _ = jax.lax.scan(step, (theta, chosen.init(theta)), length=steps)
    return theta


def _with_args(loss, args, theta):
    return loss(theta, args)


def one_step(method: str, loss: Callable, steps: int):
    """A compiled step (θ, state, args) -> θ, state, loss; and the state it begins with.

    The state may be given as the leaves of an earlier one.
    """
    chosen = optimiser(method, steps)

    @eqx.filter_jit
    def compiled(theta, state, args):
        value = partial(_with_args, loss, args)
        found, slope = jax.value_and_grad(value)(theta)
        extra = {"value": found, "grad": slope, "value_fn": value}
        extra = extra if method == "lbfgs" else {}
        change, state = chosen.update(slope, state, theta, **extra)
        return optax.apply_updates(theta, change), state, found

    def step(*args):
        with jax.numpy_dtype_promotion("standard"):
            return compiled(*args)

    def first(state):
        new = chosen.init(jnp.asarray(state.theta))
        if not state.inner:
            return new
        leaves = [jnp.asarray(x) for x in state.inner]
        return jax.tree.unflatten(jax.tree.structure(new), leaves)

    return step, first
