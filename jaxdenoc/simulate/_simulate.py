"""Adaptive simulation, on diffrax."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .._errors import ModelError
from .._types import Joints, Position
from ..dynamics import (
    check_state,
    diagonal_acceleration,
    factorize,
    forward_dynamics,
)
from ..model import Model, configuration_rate
from ._status import NOT_FINITE, NOT_SOLVED, SOUND, Status, not_finite
from ._torque import Torque as Torque
from ._torque import as_function
from ._trajectory import Trajectory
from .events import DIRECTIONS, Event, as_event

if TYPE_CHECKING:
    import diffrax

SOLVERS = {"tsit5": "Tsit5", "dopri8": "Dopri8", "kvaerno5": "Kvaerno5"}


@eqx.filter_jit
def simulate(
    model: Model,
    q0: Position,
    qd0: Joints,
    ts: Float[Array, " k"],
    *,
    tau: Torque | Joints | None = None,
    rates: Literal["qd", "nu", "xi"] = "qd",
    solver: "str | diffrax.AbstractSolver | None" = None,
    rtol: float = 1e-8,
    atol: float = 1e-8,
    event: Event | Callable | None = None,
    max_steps: int = 100_000,
    throw: bool = True,
) -> Trajectory:
    """The motion from (q0, qd0) at ts[0], sampled at the times `ts`.

    Saha's RFDSIM: O(n) forward dynamics under an adaptive integrator of diffrax.
    `solver` is "tsit5" (the default), "dopri8" for tolerances of 1e-10 and below,
    "kvaerno5", which is implicit, for stiff robots, or any solver of diffrax. The pose
    of a free base is integrated on its manifold, and its quaternion is a unit one.

    `tau` is a function of (t, q, qd), as the laws of `jd.control` are, a
    `jd.TorqueTable`, a constant vector, or None for a robot left to itself. `rates`
    says which state is integrated beside q: θ̇, or the diagonalised ν or ξ of Jain and
    Rodriguez, whose right-hand side is `diagonal_acceleration`; the motion is the same.

    `event` stops the motion: `jd.events.joint_limit()`, `jd.events.speed_limit()`, a
    `jd.events.Crossing`, or a function of (t, q, qd) which stops it where it is zero.
    It is located to the accuracy of the integration, but what happens and is undone
    again between two samples may be missed. All samples after it hold the state *and
    the time* of the event, so that `trajectory.t[-1]` says when the motion stopped;
    `trajectory.status` says why, and which samples are before it.

    A motion that cannot be continued, because it leaves the finite numbers or needs
    more than `max_steps`, is an error. With throw=False, which batches want, it stops
    like one that met an event.

    Jitted, and differentiable in reverse mode through diffrax's checkpointed adjoint
    (a small `max_steps` makes that faster).
    """
    import diffrax  # here, because it doubles the time of `import jaxdenoc`

    check_state(model, q=q0, qd=qd0)
    if jnp.ndim(ts) != 1 or jnp.shape(ts)[0] < 2:
        raise ModelError(
            f"ts has shape {jnp.shape(ts)}. Give two or more times in a row."
        )
    if rates not in ("qd", "nu", "xi"):
        raise ValueError(f"rates is '{rates}'; it can be 'qd', 'nu' or 'xi'.")
    method = _solver(solver)
    dtype = jnp.result_type(q0, qd0)
    ts, q0, qd0 = (jnp.asarray(x, dtype) for x in (ts, q0, qd0))
    motion = Motion(model, as_function(model, tau, dtype), rates)
    watch = None if event is None else Watch(motion, as_event(event), ts, q0, qd0)

    # Samples between the steps of an implicit solver are of third order only.
    at_samples = event is not None or isinstance(method, diffrax.AbstractImplicitSolver)
    jumps, end = _jumps(getattr(tau, "jumps", None), ts)
    if model.floating_base:
        from ._manifold import OnManifold

        method = OnManifold(method, model)
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(motion),
        method,
        t0=ts[0],
        t1=end,
        dt0=None,
        y0=motion.state(q0, qd0),
        args=None if watch is None else ~watch.at_once,
        saveat=diffrax.SaveAt(
            subs=[diffrax.SubSaveAt(ts=ts), diffrax.SubSaveAt(t1=True)]
        ),
        stepsize_controller=diffrax.ClipStepSizeController(
            _controller(ts, rtol, atol), ts if at_samples else None, jumps
        ),
        event=None if watch is None else watch.for_diffrax(rtol, atol),
        max_steps=max_steps,
        throw=False,
    )
    return _held(motion, watch, ts, solution, throw)


class Motion(eqx.Module):
    """The differential equation, for the state (q, x) where x are the rates."""

    model: Model
    torque: Torque
    rates: Literal["qd", "nu", "xi"] = eqx.field(static=True)

    def __call__(self, t, state, moves: Bool[Array, ""] | None):
        """The rates of the state; none if it `moves` not."""
        (q, x), normalized = state, self.rates == "nu"
        q, qd = self.of(state)
        tau = self.torque(t, q, qd)
        if self.rates == "qd":
            xd = forward_dynamics(self.model, q, qd, tau)
        else:
            xd = diagonal_acceleration(self.model, q, x, tau, normalized=normalized)
        rate = configuration_rate(self.model, q, qd), xd
        if moves is None:
            return rate
        return jax.tree.map(lambda x: jnp.where(moves, x, 0), rate)

    def state(self, q: Position, qd: Joints):
        if self.rates == "qd":
            return q, qd
        f = factorize(self.model, q)
        return q, f.total_rates(qd, normalized=self.rates == "nu")

    def of(self, state) -> tuple[Position, Joints]:
        q, x = state
        if self.rates == "qd":
            return q, x
        f = factorize(self.model, q)
        return q, f.joint_rates(x, normalized=self.rates == "nu")


class Watch(eqx.Module):
    """An event as diffrax looks at it."""

    motion: Motion
    event: Event
    start: Float[Array, ""]
    at_start: Float[Array, ""]
    forward: Float[Array, ""]  # 1, or -1 of a motion back in time, which diffrax turns

    def __init__(self, motion: Motion, event: Event, ts, q0, qd0):
        """At the start a zero counts as what it is about to become."""
        self.motion, self.event = motion, event
        self.forward = jnp.where(ts[0] < ts[-1], 1, -1).astype(ts.dtype)
        self.start = ts[0] * self.forward

        def value_of(t, state):
            return event.value(motion.model, t, *motion.of(state))

        state = motion.state(q0, qd0)
        tangent = jnp.ones_like(ts[0]), motion(ts[0], state, None)
        value, rate = jax.jvp(value_of, (ts[0], state), tangent)
        self.at_start = jnp.where(value == 0, rate * self.forward, value)

    @property
    def at_once(self) -> Bool[Array, ""]:
        return self.event.at_once(self.at_start)

    def for_diffrax(self, rtol: float, atol: float) -> "diffrax.Event":
        import diffrax
        import optimistix

        finder = optimistix.Newton(rtol=1e-3 * rtol, atol=1e-3 * atol)
        return diffrax.Event(self, finder, DIRECTIONS[self.event.direction])

    def __call__(self, t, y, args, **others) -> Float[Array, ""]:
        q, qd = self.motion.of(y)
        value = self.event.value(self.motion.model, t * self.forward, q, qd)
        return jnp.where(t == self.start, self.at_start, value)


def _solver(solver: "str | diffrax.AbstractSolver | None") -> "diffrax.AbstractSolver":
    import diffrax

    if isinstance(solver, diffrax.AbstractAdaptiveSolver):
        return solver
    name = "tsit5" if solver is None else solver
    if name not in SOLVERS:
        names = ", ".join(f"'{name}'" for name in SOLVERS)
        raise ValueError(
            f"solver is '{solver}'; it can be {names}, or one "
            "of diffrax that estimates its error."
        )
    return getattr(diffrax, SOLVERS[name])()


def _controller(ts, rtol: float, atol: float) -> "diffrax.PIDController":
    """Gives up where steps vanish: far below rounding, as short ones are no failure."""
    import diffrax

    shortest = jnp.finfo(ts.dtype).eps ** 2 * jnp.abs(ts[-1] - ts[0])
    return diffrax.PIDController(
        rtol=rtol, atol=atol, dtmin=shortest.astype(ts.dtype), force_dtmin=False
    )


def _jumps(jumps: Float[Array, " jumps"] | None, ts):
    """The jumps within the motion, and where to end it.

    That is a little later than its last sample, as a jump there must be stepped over
    for diffrax to take the sample.
    """
    if jumps is None:
        return None, ts[-1]
    low, high = jnp.minimum(ts[0], ts[-1]), jnp.maximum(ts[0], ts[-1])
    inside = (low <= jumps) & (jumps <= high)
    little = 1000 * jnp.finfo(ts.dtype).eps * jnp.maximum(jnp.abs(low), jnp.abs(high))
    end = ts[-1] + jnp.sign(ts[-1] - ts[0]) * little.astype(ts.dtype)
    return jnp.where(inside, jumps.astype(ts.dtype), jnp.inf), end


def _held(motion: Motion, watch: Watch | None, ts, solution, throw: bool) -> Trajectory:
    """The samples, which after a stop hold the state and the time of it."""
    (t, last_t), (states, last) = solution.ts, solution.ys
    reached = jnp.isfinite(t)
    if watch is not None:
        reached &= ~watch.at_once
        last_t = jnp.where(watch.at_once, ts[:1], last_t)

    def hold(x, last):
        return jnp.where(jnp.expand_dims(reached, range(1, x.ndim)), x, last)

    t, (q, x) = jax.tree.map(hold, (t, states), (last_t, last))
    q, qd = jax.vmap(lambda *state: motion.of(state))(q, x)
    status = _status(motion.model, watch, solution.result, q, qd, reached)
    if throw:
        q = _or_error(q, status.reason)
    return Trajectory(t, q, qd, jax.vmap(motion.torque)(t, q, qd), status)


def _status(model: Model, watch: Watch | None, result, q, qd, reached) -> Status:
    from diffrax import RESULTS

    vanished = result == RESULTS.dt_min_reached
    reason = jnp.where(vanished, NOT_FINITE, NOT_SOLVED)
    reason = jnp.where(result == RESULTS.successful, SOUND, reason)
    wrong = not_finite(q[-1], qd[-1])
    joint = jnp.where(jnp.any(wrong), jnp.argmax(wrong), -1)
    if watch is not None:
        met = watch.at_once | (result == RESULTS.event_occurred)
        reason = jnp.where(met, watch.event.reason, reason)
        joint = jnp.where(met, watch.event.joint(model, q[-1], qd[-1]), joint)
    last = jnp.maximum(jnp.sum(reached) - 1, 0)  # the start needs no reaching
    step = jnp.where(reason == SOUND, -1, last)
    finite = ~jnp.any(jax.vmap(not_finite)(q, qd), axis=1)
    sound = finite & (jnp.arange(len(q)) <= last)
    return Status(sound, *(x.astype(jnp.int32) for x in (step, joint, reason)))


def _or_error(q, reason: Int[Array, ""]):
    failures = {
        NOT_FINITE: "simulate: the motion left the finite numbers, or its steps became "
        "too short to count. Look at where it goes with throw=False; check the start, "
        "the torques, and that every joint moves some mass.",
        NOT_SOLVED: "simulate: the end was not reached within max_steps. Raise "
        "max_steps, loosen rtol and atol, or take solver='kvaerno5' for a stiff robot; "
        "throw=False gives the motion as far as it came.",
    }
    failed = jnp.isin(reason, jnp.array(list(failures), reason.dtype))
    which = jnp.where(reason == NOT_FINITE, 0, 1)
    return eqx.branched_error_if(q, failed, which, list(failures.values()))
