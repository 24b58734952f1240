"""Rollouts: motion in fixed steps, one `lax.scan` over time.

A step takes the state from t to t + h under a joint force that holds still meanwhile.
Under `batched` the whole rollout of a tile of robots is one piece of code: its state
stays in the cache from the first step to the last.
"""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .._errors import ModelError
from .._types import Joints, Position, Scalar
from ..dynamics import check_state, forward_dynamics
from ..model import Model, configuration_rate, integrate
from ..spatial import _quaternion as quaternion
from ._simulate import Torque
from ._trajectory import Trajectory


@eqx.filter_jit
def rollout(
    model: Model,
    q0: Position,
    qd0: Joints,
    tau: Float[Array, "steps forces"] | Torque,
    dt: float | Scalar,
    *,
    integrator: Literal["semi_implicit", "rk4"] = "semi_implicit",
    steps: int | None = None,
) -> Trajectory:
    """The motion from (q0, qd0) in steps of `dt`, sampled at every step.

    `tau` is one row of joint forces for each step, or a policy: a function of
    (t, q, qd), asked at the beginning of every step, for `steps` of them. What comes
    out has one sample more than steps, the first is (q0, qd0); the joint force of a
    sample is the one that acts after it, and the last is what would act next (of a
    table: its last row).

    "semi_implicit" (Euler's, first order: velocities first, then positions with the new
    ones) costs one forward dynamics a step, "rk4" (fourth order) four of them. For many
    robots, `jd.batched(jd.rollout, in_axes=(None, 0, 0, 0, None))`.
    """
    check_state(model, q=q0, qd=qd0)
    if integrator not in STEPS:
        names = " or ".join(f"'{name}'" for name in STEPS)
        raise ValueError(f"integrator is '{integrator}'; it can be {names}.")
    dtype = jnp.result_type(q0, qd0)
    h = jnp.asarray(dt, dtype)
    count, table, force = _forces(model, tau, steps, dtype)
    times = jnp.arange(count + 1, dtype=dtype) * h
    step = STEPS[integrator]

    def advance(state, row):
        (q, qd), (t, given) = state, row
        u = force(t, q, qd, given)
        q, qd = step(model, q, qd, u, h)
        return (q, qd), (q, qd, u)

    start = q0.astype(dtype), qd0.astype(dtype)
    last, (q, qd, u) = lax.scan(advance, start, (times[:-1], table))
    after = force(times[-1], *last, None if table is None else table[-1])
    q, qd = (jnp.concatenate([x[None], y]) for x, y in zip(start, (q, qd), strict=True))
    u = jnp.concatenate([u, after[None]])
    return Trajectory(times, q, qd, u)


def _forces(model: Model, tau, steps: int | None, dtype):
    """How many steps, their rows of a table, and the joint force at (t, q, qd, row)."""
    if callable(tau):
        if steps is None:
            raise ValueError("a policy needs the number of steps: give `steps`.")
        return steps, None, lambda t, q, qd, _: tau(t, q, qd)
    shape = jnp.shape(tau)
    if len(shape) != 2 or shape[1] != model.nv or not shape[0]:
        raise ModelError(
            f"tau has shape {shape}. Give one row of nv = {model.nv} joint forces for "
            "each step, or a function of (t, q, qd) and the number of `steps`."
        )
    if steps not in (None, shape[0]):
        raise ValueError(f"tau has {shape[0]} rows, but steps is {steps}.")
    return shape[0], jnp.asarray(tau, dtype), lambda t, q, qd, row: row


def semi_implicit(model: Model, q, qd, tau, h) -> tuple[Position, Joints]:
    """θ̇₁ = θ̇ + h θ̈(θ, θ̇) ,   θ₁ = θ + h θ̇₁."""
    qd = qd + h * forward_dynamics(model, q, qd, tau)
    return integrate(model, q, h * qd), qd


def rk4(model: Model, q, qd, tau, h) -> tuple[Position, Joints]:
    """Runge and Kutta's of fourth order, with τ held.

    A loop over the four stages, weights 1 2 2 1 and halves of a step between them, so
    that forward dynamics stands once in the program.
    """

    def stage(carry, coefficients):
        (dq, dqd), (sum_q, sum_qd) = carry
        ahead, weight = coefficients
        q1, qd1 = q + ahead * dq, qd + ahead * dqd
        dq = configuration_rate(model, q1, qd1)
        dqd = forward_dynamics(model, q1, qd1, tau)
        return ((dq, dqd), (sum_q + weight * dq, sum_qd + weight * dqd)), None

    zero = jnp.zeros_like(q), jnp.zeros_like(qd)
    ahead = jnp.array([0, 0.5, 0.5, 1], q.dtype) * h
    weights = jnp.array([1, 2, 2, 1], q.dtype) * (h / 6)
    (_, (dq, dqd)), _ = lax.scan(stage, (zero, zero), (ahead, weights))
    return _unit(model, q + dq), qd + dqd


def _unit(model: Model, q: Position) -> Position:
    """q with the quaternion of a free base back on the sphere."""
    if not model.floating_base:
        return q
    return jnp.concatenate([q[:3], quaternion.normalized(q[3:7]), q[7:]])


STEPS = {"semi_implicit": semi_implicit, "rk4": rk4}
