"""Motions that tell much of a robot's parameters, within its limits.

Fourier series (`_fourier.py`) are improved by Adam on the information of their torques
(`_information.py`), from several random starts at once, with penalties on what exceeds
a limit; at the end each is made smaller until it keeps to all of them at all times
(`_limits.py`), and the best one is taken.
"""

from dataclasses import dataclass
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array, lax

from .._errors import ModelError
from .._progress import progress
from .._types import Number, Numbers
from ..model import Model
from ._base_parameters import base_parameters
from ._excited import Excitation
from ._fourier import motion, resting
from ._information import Criterion, Question, condition, cost, logdet, regressors
from ._limits import Limits, feasible, limits_of, torques_of, used, within
from ._parameters import all_values, in_double

PER_HARMONIC = 20  # samples of a period, while improving
TRIED = 32  # random series for every start, the best of which it is
ROUNDS = 20  # steps between two looks at the progress bar
RATE = 0.03  # of Adam, in units of what a joint can do
PENALTY = 300.0  # of an excess of one limit's size, all the time


def excitation(
    model: Model,
    *,
    period: Number = 10.0,
    harmonics: int = 5,
    samples: int = 1001,
    q_limits: tuple[Number | Numbers, Number | Numbers] | None = None,
    qd_limit: Number | Numbers | None = None,
    qdd_limit: Number | Numbers | None = None,
    tau_limit: Number | Numbers | None = None,
    share: Number = 0.95,
    criterion: Criterion = "condition",
    joints: bool | tuple[str, ...] = True,
    noise: Number | Numbers | None = None,
    at_rest: bool = True,
    starts: int = 4,
    steps: int = 600,
    key: Array | None = None,
    show: bool = True,
) -> Excitation:
    """A periodic motion whose torques tell as much as can be of the base parameters.

    Every joint follows a Fourier series of so many `harmonics` of the `period`, in
    seconds; with `at_rest` it starts and ends with no velocity and no acceleration.
    The motion makes the `criterion` good: "condition" of the normal matrix with columns
    of length one, or "logdet" of the normal matrix. `joints` are the parameters of
    joints that will be looked for, as in `base_parameters`, and `noise` the standard
    deviation of each joint's torque; if not given, it is thought to be in proportion to
    the limit of the torque.

    Limits are the model's if not given: `q_limits` is a pair of lower and upper ones.
    Without any, a joint turns half a turn either way (or slides half a metre) at up to
    2 rad/s, comes to full speed in 0.2 s at the earliest, and has any torque. No more
    than `share` of a limit is used, so that a controller has something left: not at the
    samples only, but at all times. Torques are those of the model, which may be wrong.

    Self-collisions are not looked at: watch the motion before a robot makes it, and
    give narrower `q_limits` where links come close.
    """
    _check(model, period, harmonics, samples, share, criterion, starts, steps)
    key = jax.random.key(0) if key is None else key
    base = base_parameters(model, joints=joints)
    columns = base.parameters.columns[base.independent]
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        robot, T = in_double(model), jnp.asarray(float(period))
        given = q_limits, qd_limit, qdd_limit, tau_limit
        limits = limits_of(robot, *given, float(share))
        draw = partial(random_series, limits, harmonics, at_rest=at_rest)
        c = draw(key, TRIED * starts)
        question = Question(jnp.asarray(columns), _sigma(robot, limits, c, T, noise))
        values = jnp.asarray(all_values(model))
        given = _Given(robot, limits, values, question, T, _size(limits, harmonics))
        search = _Search(criterion, at_rest, PER_HARMONIC * harmonics, steps)
        c = search.improved(given, search.best_of(given, c, starts), show)
        found = [search.finished(given, x) for x in c]
        c, worth, ok = (np.stack(x) for x in zip(*found, strict=True))
        if not np.any(ok):
            raise ModelError(
                "Every motion that was found breaks a limit of torque, however small. "
                "Give a larger tau_limit, or other q_limits."
            )
        best = c[int(np.argmin(np.where(ok, worth, np.inf)))]
        return _described(given, jnp.asarray(best), samples, float(share))


def random_series(limits: Limits, harmonics: int, key, count: int, *, at_rest: bool):
    """Random motions that keep to all limits but those of torques, (count, v, c)."""
    one, two = jax.random.split(key)
    v = len(limits.qd)
    off = jax.random.uniform(one, (count, v, 1), minval=-0.5, maxval=0.5)
    off = limits.centre[None, :, None] + limits.half[None, :, None] * off
    rates = jax.random.normal(two, (count, v, 2 * harmonics))
    rates = rates * limits.qd[None, :, None]
    c = jnp.concatenate([off, rates], axis=-1)
    return jax.vmap(resting)(c) if at_rest else c


@dataclass(frozen=True)
class _Search:
    """Three programs, compiled once for a kind of robot and what is asked for."""

    criterion: Criterion
    at_rest: bool
    samples: int
    steps: int

    @partial(jax.jit, static_argnames=("self", "starts"))
    def best_of(self, given: "_Given", c, starts: int):
        """The best of every group of the candidates, as they are within limits."""
        c = jax.vmap(within, (None, 0, None))(given.limits, c, given.period)
        found = lax.map(lambda c: self.cost(given, c)[0], c).reshape(starts, -1)
        first = jnp.arange(starts) * found.shape[1]
        return c[first + jnp.argmin(found, axis=1)]

    @partial(jax.jit, static_argnames="self")
    def some_steps(self, given: "_Given", z, state):
        """`ROUNDS` steps of Adam, for all starts at once."""

        def loss(z):
            found, excess = jax.vmap(lambda z: self.cost(given, self.series(given, z)))(
                z
            )
            return jnp.sum(found + PENALTY * excess)

        def step(carry, _):
            z, state = carry
            g = jax.grad(loss)(z)
            change, state = self.adam.update(jnp.where(jnp.isfinite(g), g, 0), state)
            return (z + change, state), None

        return lax.scan(step, (z, state), length=ROUNDS)[0]

    @partial(jax.jit, static_argnames="self")
    def finished(self, given: "_Given", c):
        """Within limits at all times, what that is worth, and whether there is any."""
        c, ok = feasible(given.robot, given.limits, c, given.period)
        return c, self.cost(given, c)[0], ok

    def cost(self, given: "_Given", c):
        """What is to become small, and the squares of what exceeds limits."""
        T = given.period
        x = motion(c, T * jnp.arange(self.samples, dtype=T.dtype) / self.samples, T)
        Y = regressors(given.robot, x)
        shares = given.limits.shares(x, jnp.matmul(Y, given.values))
        over = [jnp.maximum(s - 1, 0) ** 2 for s in shares.values()]
        excess = sum(jnp.sum(jnp.mean(s, axis=0)) for s in over)
        return cost(given.question.of(Y), self.criterion), excess

    def series(self, given: "_Given", z):
        """Coefficients, of numbers in units of what a joint can do."""
        c = z * given.size
        return resting(c) if self.at_rest else c

    @property
    def adam(self):
        return optax.adam(optax.cosine_decay_schedule(RATE, max(self.steps, 1), 0.02))

    def improved(self, given: "_Given", c, show: bool):
        z = c / given.size[None]
        state = self.adam.init(z)
        with progress("Improving a motion", self.steps, "steps", show=show) as advance:
            for _ in range(-(-self.steps // ROUNDS)):
                z, state = jax.block_until_ready(self.some_steps(given, z, state))
                advance(ROUNDS)
        return [self.series(given, x) for x in z]


class _Given(eqx.Module):
    """The numbers that a search works with."""

    robot: Model
    limits: Limits
    values: Array  # of all parameters: torques are Y times these
    question: Question
    period: Array
    size: Array  # of coefficients


def _sigma(robot, limits, c, T, noise) -> Array:
    """What was given, or torques' limits, or the torques of random motions."""
    v = len(limits.qd)
    if noise is not None:
        sigma = np.broadcast_to(np.asarray(noise, float), (v,))
        if not (np.isfinite(sigma) & (sigma > 0)).all():
            raise ModelError(
                "noise needs a positive standard deviation for every joint."
            )
        return jnp.asarray(sigma)
    if np.isfinite(limits.tau).all():
        return limits.tau

    @jax.jit
    def squares(robot, limits, c, T):
        t = T * jnp.arange(50, dtype=T.dtype) / 50
        x = jax.vmap(lambda c: motion(within(limits, c, T), t, T))(c)
        rows = jax.tree.map(lambda x: x.reshape(-1, v), x)
        return jnp.mean(torques_of(robot, rows) ** 2, axis=0)

    usual = np.sqrt(np.asarray(squares(robot, limits, c[:16], T)))
    return jnp.asarray(np.maximum(usual, 1e-6 * usual.max() or 1.0))


def _size(limits: Limits, harmonics: int) -> Array:
    """Of coefficients: the range for a place, the fastest for the rest."""
    fast = jnp.repeat(limits.qd[:, None], 2 * harmonics, axis=1)
    return jnp.concatenate([limits.half[:, None], fast], axis=1)


@eqx.filter_jit
def _rows(given: _Given, c, t):
    x = motion(c, t, given.period)
    F = given.question.matrix(given.robot, x)
    tau = torques_of(given.robot, x)
    now = used(given.robot, given.limits, c, given.period)
    return x, tau, condition(F), logdet(F), now


def _described(given: _Given, c, samples: int, share: float) -> Excitation:
    t = jnp.linspace(0, given.period, samples)
    x, tau, kappa, volume, now = _rows(given, c, t)
    return Excitation(
        t=np.asarray(t),
        **{s: np.asarray(y) for s, y in x._asdict().items()},
        tau=np.asarray(tau),
        coefficients=np.asarray(c),
        period=float(given.period),
        condition=float(kappa),
        logdet=float(volume),
        margin={s: 1 - share * np.asarray(y) for s, y in now.items()},
        names=given.robot.velocity_names,
    )


def _check(model, period, harmonics, samples, share, criterion, starts, steps) -> None:
    if model.floating_base:
        raise ModelError(
            f"Model '{model.name}' has a free base, which no motor moves. Load it with "
            "floating_base=False for a motion of its joints."
        )
    if criterion not in ("logdet", "condition"):
        raise ModelError(f"criterion is '{criterion}'; give 'condition' or 'logdet'.")
    if not (np.isfinite(period) and period > 0):
        raise ModelError(f"period is {period}. Give a positive number of seconds.")
    if not 0 < share <= 1:
        raise ModelError(f"share is {share}. Give a number up to 1.")
    for name, x, least in (
        ("harmonics", harmonics, 2),
        ("samples", samples, 2 * harmonics + 2),
        ("starts", starts, 1),
        ("steps", steps, 0),
    ):
        if int(x) != x or x < least:
            raise ModelError(f"{name} is {x}. Give a whole number, {least} at least.")
