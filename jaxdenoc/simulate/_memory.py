"""How much memory the gradient of a rollout will take, told before it is compiled."""

from math import prod

import equinox as eqx
import jax
import jax.tree as jt
import numpy as np

from ..model import Model
from ._checkpoint import Checkpoint, piece_length
from ._rollout import rollout

# What XLA makes of a step and of samples, measured on the CPU: the sweeps of a step in
# terms of what reverse mode keeps of it, and samples with their derivatives.
SWEEPS, SAMPLES = 5, 1.6


def rollout_memory(
    model: Model,
    steps: int,
    batch: int = 1,
    checkpoint: Checkpoint = None,
    *,
    tau=None,
    samples: str = "all",
    delay: int = 0,
    **options,
) -> int:
    """The bytes that the gradient of `batch` rollouts takes beside their arguments.

    An estimate of the temporaries of `jax.grad` of a loss of `jax.vmap` of `rollout`,
    with respect to the model and the starts, from what tracing a few steps says is kept
    of each; nothing is compiled. Under `jd.batched` the robots at a time are those of
    one tile for each device, so that is the `batch` to ask about, and the samples of
    the others come on top. `tau` is None or a policy; a table is an argument, and its
    derivative another one of its size. Other options are those of `rollout`.
    """
    options = {"samples": "ends", "delay": delay, **options}
    numbers = np.dtype(model.mass.dtype).itemsize
    of_step = (_kept(model, tau, 4, options) - _kept(model, tau, 2, options)) // 2
    state = (model.nq + model.nv * (1 + delay)) * numbers + 12
    parts = sum(x.size for x in jt.leaves(model)) * numbers
    total = SWEEPS * of_step + parts
    if checkpoint is None:
        total += steps * of_step
    elif checkpoint == "sqrt":
        length = piece_length(steps)
        total += -(-steps // length) * state + length * of_step
    else:
        total += checkpoint * state + of_step + 2 * parts
    if samples == "all":
        total += SAMPLES * steps * (model.nq + model.nv) * numbers
    return int(batch * total)


def _kept(model: Model, tau, steps: int, options) -> int:
    """The bytes that reverse mode keeps of one rollout of so many steps."""
    arrays, rest = eqx.partition((model, tau), eqx.is_inexact_array)

    def end(arrays, q, qd):
        model, tau = eqx.combine(arrays, rest)
        motion = rollout(model, q, qd, tau, 1e-3, steps=steps, **options)
        return motion.q[-1], motion.qd[-1]

    def back(*at):
        return jax.vjp(end, *at)[1]

    dtype = model.mass.dtype
    state = (jax.ShapeDtypeStruct((k,), dtype) for k in (model.nq, model.nv))
    kept = jt.leaves(jax.eval_shape(back, arrays, *state))
    return sum(prod(x.shape) * x.dtype.itemsize for x in kept)
