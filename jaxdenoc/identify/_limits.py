"""What a motion may not exceed, and how it is made to keep to that.

Positions, velocities and accelerations of a series are bounded for all times by their
values at even ones (`_fourier.excess`). A torque is no series: between times it may
rise above both neighbours by an eighth of its second difference, about, of which a
quarter is allowed for.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._errors import ModelError
from .._types import Number, Numbers
from ..dynamics import gravity_forces, inverse_dynamics
from ..model import Model
from ._fourier import Motion, excess, motion

TURN, SLIDE = np.pi, 0.5  # how far from zero, where a robot's joints have no limits
SPEED = 2.0  # rad/s, or the way from one end to the other in so many seconds
REACHED = 0.2  # seconds from rest to full speed, for lack of a limit of acceleration
FINE = 128  # times per harmonic at which limits are checked
STEP = 0.98  # by which a motion is made smaller, until no torque is too large
HOLDS = 0.9  # of a torque's limit, at most, to hold the robot still at the centre

Some = Number | Numbers  # one for all joints, or one for each


class Limits(eqx.Module):
    """One number per joint. An infinite `tau` is no limit; the others are finite."""

    lower: Float[Array, " v"]
    upper: Float[Array, " v"]
    qd: Float[Array, " v"]
    qdd: Float[Array, " v"]
    tau: Float[Array, " v"]
    centre: Float[Array, " v"]

    @property
    def middle(self) -> Float[Array, " v"]:
        return (self.lower + self.upper) / 2

    @property
    def half(self) -> Float[Array, " v"]:
        return (self.upper - self.lower) / 2

    def shares(self, x: Motion, tau: Float[Array, "k v"]) -> dict[str, Array]:
        """How much of every limit is used, by time and joint: 1 is all of it."""
        return {
            "q": jnp.abs(x.q - self.middle[None]) / self.half[None],
            "qd": jnp.abs(x.qd) / self.qd[None],
            "qdd": jnp.abs(x.qdd) / self.qdd[None],
            "tau": jnp.abs(tau) / self.tau[None],
        }


def limits_of(
    model: Model,
    q_limits: tuple[Some, Some] | None,
    qd_limit: Some | None,
    qdd_limit: Some | None,
    tau_limit: Some | None,
    share: float,
) -> Limits:
    """What was given, or what the model has, or what is usual; and a share of that."""
    low, high = _positions(model, q_limits)
    slow = np.where(np.isin(model.joint_kinds, ["prismatic"]), (high - low) / 2, SPEED)
    qd = _positive("qd_limit", qd_limit, model, model.qd_limit, slow)
    qdd = _positive("qdd_limit", qdd_limit, model, np.inf, qd / REACHED)
    tau = _positive("tau_limit", tau_limit, model, model.tau_limit, np.inf)
    middle, half = (low + high) / 2, share * (high - low) / 2
    centre = _centre(model, middle, half, share * tau)
    numbers = middle - half, middle + half, share * qd, share * qdd, share * tau, centre
    return Limits(*map(jnp.asarray, numbers))


def _positions(model, given) -> tuple[np.ndarray, np.ndarray]:
    pair = (model.q_lower, model.q_upper) if given is None else given
    low, high = (np.broadcast_to(np.asarray(x, float), (model.nv,)) for x in pair)
    far = np.where(np.isin(model.joint_kinds, ["prismatic"]), SLIDE, TURN)
    endless = np.isinf(low) & np.isinf(high)
    low, high = np.where(endless, -far, low), np.where(endless, far, high)
    low = np.where(np.isinf(low), high - 2 * far, low)
    high = np.where(np.isinf(high), low + 2 * far, high)
    narrow = ~(low < high)
    if narrow.any():
        j = int(np.argmax(narrow))
        raise ModelError(
            f"Joint '{model.velocity_names[j]}' may go from {low[j]:g} to {high[j]:g}, "
            "where it cannot move. Give q_limits, or lock it with jd.lock."
        )
    return low, high


def _positive(name, given, model, of_model, usual) -> np.ndarray:
    x = np.asarray(of_model if given is None else given, float)
    x = np.broadcast_to(x, (model.nv,))
    x = np.where(np.isinf(x), usual, x)
    if not (x > 0).all():
        j = int(np.argmax(~(x > 0)))
        raise ModelError(
            f"{name} of joint '{model.velocity_names[j]}' is {x[j]:g}. Give a positive "
            "number, or lock the joint with jd.lock."
        )
    return x


def _centre(model, middle, half, tau) -> np.ndarray:
    """Where the robot can be held: the middle, or the easiest of many places."""
    rng = np.random.default_rng(0)
    places = middle + 0.5 * half * rng.uniform(-1, 1, (256, model.nv))
    places[0] = middle
    force = jax.jit(jax.vmap(gravity_forces, (None, 0)))(model, places)
    worst = np.max(np.abs(np.asarray(force)) / tau, axis=1)
    if worst[0] <= HOLDS:
        return middle
    best = int(np.argmin(worst))
    if worst[best] >= 1:
        j = int(np.argmax(np.abs(np.asarray(force[best])) / tau))
        raise ModelError(
            f"Joint '{model.velocity_names[j]}' cannot hold the robot up: gravity needs"
            f" {abs(float(force[best, j])):.3g} and tau_limit is {tau[j]:.3g}. Give a "
            "larger tau_limit, or check the masses."
        )
    return places[best]


def torques_of(model: Model, x: Motion) -> Float[Array, "k v"]:
    return jax.vmap(inverse_dynamics, (None, 0, 0, 0))(model, *x)


def fine_times(harmonics: int, period: Array) -> Float[Array, " k"]:
    count = FINE * harmonics
    return period * jnp.arange(count, dtype=jnp.asarray(period).dtype) / count


def used(model: Model, limits: Limits, c: Array, period: Array) -> dict[str, Array]:
    """Of every limit and joint, the share that is used at any time at all."""
    N = c.shape[1] // 2
    x = motion(c, fine_times(N, period), period)
    tau = torques_of(model, x)
    found = {s: jnp.max(y, axis=0) for s, y in limits.shares(x, tau).items()}
    more = excess(N, FINE * N)
    found |= {s: found[s] * more for s in ("q", "qd", "qdd")}
    bend = jnp.abs(tau - (jnp.roll(tau, 1, 0) + jnp.roll(tau, -1, 0)) / 2)
    found["tau"] = jnp.max((jnp.abs(tau) + bend / 2) / limits.tau[None], axis=0)
    return found


def within(limits: Limits, c: Array, period: Array) -> Array:
    """Every joint's motion made smaller, toward the centre, until it keeps to limits.

    q ↦ centre + s (q - centre) , the largest s ≤ 1; torques are not looked at.
    """
    N = c.shape[1] // 2
    x = motion(c, fine_times(N, period), period)
    more = excess(N, FINE * N)
    away = x.q - limits.centre[None]
    rise = (more - 1) * jnp.max(jnp.abs(away), axis=0)
    least = 1e-12 * limits.half
    above = jnp.maximum(jnp.max(away, axis=0) + rise, least)
    below = jnp.maximum(jnp.max(-away, axis=0) + rise, least)
    s = jnp.minimum((limits.upper - limits.centre) / above,
                    (limits.centre - limits.lower) / below)  # fmt: skip
    for y, most in ((x.qd, limits.qd), (x.qdd, limits.qdd)):
        largest = jnp.maximum(more * jnp.max(jnp.abs(y), axis=0), 1e-12 * most)
        s = jnp.minimum(s, most / largest)
    return _smaller(limits, c, jnp.minimum(s, 1 - 1e-12))


def _smaller(limits: Limits, c: Array, s: Array) -> Array:
    still = jnp.zeros_like(c).at[:, 0].set(limits.centre)
    return still + (c - still) * jnp.broadcast_to(s, (len(c),))[:, None]


def feasible(
    model: Model, limits: Limits, c: Array, period: Array, rounds: int = 400
) -> tuple[Array, Array]:
    """Coefficients that break no limit at any time, and whether there are such."""
    c = within(limits, c, period)

    def broken(state):
        s, k = state
        now = used(model, limits, _smaller(limits, c, s), period)
        return (jnp.max(now["tau"]) > 1) & (k < rounds)

    one = jnp.ones((), c.dtype)
    s, k = lax.while_loop(broken, lambda x: (STEP * x[0], x[1] + 1), (one, 0))
    return _smaller(limits, c, s), jnp.asarray(k < rounds)
