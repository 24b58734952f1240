"""Rollouts: motion in fixed steps, one `lax.scan` over time.

A step takes the state from t to t + h under a joint force that holds still meanwhile.
Under `batched` the whole rollout of a tile of robots is one piece of code: its state
stays in the cache from the first step to the last. A robot that goes wrong stops where
it last was sound, and the others of its batch take no notice.
"""

from functools import partial
from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import jax.tree as jt
from jax import lax
from jaxtyping import Array, Float

from .._errors import ModelError
from .._types import Joints, Position, Scalar
from ..conditioning import along, stride
from ..dynamics import check_state
from ..model import Model
from ._checkpoint import Checkpoint, scan_over_time
from ._fault import Fault, guarded
from ._simulate import Torque
from ._status import Status
from ._steps import INTEGRATORS
from ._trajectory import Trajectory

Name = Literal["semi_implicit", "rk4", "cayley", "implicit_midpoint", "energy"]


def rollout(
    model: Model,
    q0: Position,
    qd0: Joints,
    tau: Float[Array, "steps forces"] | Torque | None,
    dt: float | Scalar,
    *,
    integrator: Name = "semi_implicit",
    steps: int | None = None,
    decimation: int = 1,
    delay: int = 0,
    limits: Literal["freeze", "ignore"] = "freeze",
    samples: Literal["all", "ends"] = "all",
    checkpoint: Checkpoint = None,
    monitor: bool | int = False,
) -> Trajectory:
    """The motion from (q0, qd0) in steps of `dt`, sampled at every step.

    `tau` is one row of joint forces for each step, or a policy: a function of
    (t, q, qd), such as an Equinox module, asked at the beginning of every step, for
    `steps` of them; or None for no forces. What comes out has one sample more than
    steps, the first is (q0, qd0); the joint force of a sample is the one that acts
    after it, and the last is what would act next (of a table: its last row).

    `integrator`, by what a step costs and keeps [MATH 12]:

    - "semi_implicit": Euler's, velocities first; first order, one forward dynamics;
    - "rk4": Runge and Kutta's, fourth order, four of them;
    - "cayley": in (q, ν); second order, ½ νᵀν of a free motion is kept exactly;
    - "implicit_midpoint": in (q, ν); the same, by iteration, which is cheaper for many
      joints and small steps;
    - "energy": in (q, ν); kinetic plus potential energy is kept exactly.

    With `decimation=k` a row or an answer is held for k steps of `dt`, and samples are
    k·dt apart; with `delay=d` it acts d rows later than it was given, and no force acts
    before the first. `limits="freeze"` also stops a robot when one of its joints leaves
    its limits; a joint that begins beyond them is not held to them until it is back.
    What stopped, at which step and why is in `Trajectory.status`.

    `checkpoint` says what reverse mode keeps in memory: None every step, "sqrt" the
    state after each of √steps pieces, and a number that many states (binomial
    checkpointing, in reverse mode only); what is not kept is computed again.
    `samples="ends"` gives the first and the last sample only, so that those between,
    and a loss's derivatives by them, need no memory either. `rollout_memory` tells how
    much all that is. `monitor=k` records in `Trajectory.condition` how well conditioned
    the mass matrix is at every k-th sample; True is every tenth. For many robots,
    `jd.batched(jd.rollout, in_axes=(None, 0, 0, 0, None))`.
    """
    check_state(model, q=q0, qd=qd0)
    if integrator not in INTEGRATORS:
        names = ", ".join(f"'{name}'" for name in INTEGRATORS)
        raise ValueError(f"integrator is '{integrator}'; it can be {names}.")
    if limits not in ("freeze", "ignore"):
        raise ValueError(f"limits is '{limits}'; it can be 'freeze' or 'ignore'.")
    if samples not in ("all", "ends"):
        raise ValueError(f"samples is '{samples}'; it can be 'all' or 'ends'.")
    if not (checkpoint in (None, "sqrt") or _is_count(checkpoint)):
        raise ValueError(
            f"checkpoint is {checkpoint}; it can be None, 'sqrt' or a number of states."
        )
    if decimation < 1 or delay < 0:
        raise ValueError(
            f"decimation is {decimation} and delay {delay}; the first must be 1 or "
            "more, the second 0 or more."
        )
    every = stride(monitor, 10)
    dtype = jnp.result_type(q0, qd0)
    count = _count(model, tau, steps)
    return _rollout(
        model,
        q0.astype(dtype),
        qd0.astype(dtype),
        tau if callable(tau) or tau is None else jnp.asarray(tau, dtype),
        jnp.asarray(dt, dtype),
        (integrator, count, decimation, delay, limits, samples, checkpoint, every),
    )


@eqx.filter_jit
def _rollout(model: Model, q0, qd0, tau: Any, dt, options) -> Trajectory:
    integrator, count, decimation, delay, limits, samples, checkpoint, every = options
    begin, rates, step = INTEGRATORS[integrator]
    step = guarded(step)
    times = jnp.arange(count + 1, dtype=q0.dtype) * (dt * decimation)

    def asked(t, q, x, row):
        qd = rates(model, q, x)
        if callable(tau):
            return qd, jnp.asarray(tau(t, q, qd))
        return qd, jnp.zeros_like(qd) if row is None else row

    def advance(carry, now):
        state, queue = carry
        k, real, (t, row) = now
        q, x, fault = state
        qd, u = asked(t, q, x, row)
        queue = jnp.concatenate([queue, u[None]])
        force = queue[0]

        def held(state, _):
            q, x, fault = state
            q1, x1, solved = step(model, q, x, force, dt)
            found = fault.after(k, model, q, q1, x1, solved, limits)
            go = found.none & real
            q, x = jnp.where(go, q1, q), jnp.where(go, x1, x)
            return (q, x, jt.map(partial(jnp.where, real), found, fault)), None

        state, _ = lax.scan(held, state, length=decimation)
        sample = (q, qd, force, fault.none) if samples == "all" else None
        return (state, queue[1:]), sample

    state = q0, begin(model, q0, qd0), Fault.at_start(q0, qd0)
    queue = jnp.zeros((delay, model.nv), q0.dtype)
    table = None if callable(tau) else tau
    rows = times[:-1], table
    last, found = scan_over_time(advance, (state, queue), rows, count, checkpoint)

    def at_end(t, k, carry):
        (q, x, fault), queue = carry
        qd, u = asked(t, q, x, None if table is None else table[k])
        return q, qd, jnp.concatenate([queue, u[None]])[0], fault.none

    if found is None:
        found = jt.map(lambda x: x[None], at_end(times[0], 0, (state, queue)))
        times = jnp.stack([times[0], times[-1]])
    ending = at_end(times[-1], -1, last)
    q, qd, u, sound = (
        jnp.concatenate([a, b[None]]) for a, b in zip(found, ending, strict=True)
    )
    _, _, fault = last[0]
    status = Status(sound, fault.step, fault.joint, fault.reason)
    condition = along(model, times, q, every) if every else None
    return Trajectory(times, q, qd, u, status, condition)


def _is_count(number) -> bool:
    return isinstance(number, int) and number > 0


def _count(model: Model, tau, steps: int | None) -> int:
    """How many rows of joint forces there are."""
    if callable(tau) or tau is None:
        if steps is None or steps < 1:
            raise ValueError(
                f"steps is {steps}; a policy needs the number of steps: give `steps`."
            )
        return steps
    shape = jnp.shape(tau)
    if len(shape) != 2 or shape[1] != model.nv or not shape[0]:
        raise ModelError(
            f"tau has shape {shape}. Give one row of nv = {model.nv} joint forces for "
            "each step, or a function of (t, q, qd) and the number of `steps`."
        )
    if steps not in (None, shape[0]):
        raise ValueError(f"tau has {shape[0]} rows, but steps is {steps}.")
    return shape[0]
