"""How an adaptive motion stops before its end, and what it gives then."""

from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .._types import Joints, Position
from ..model import neutral
from ._motion import Motion
from ._status import NOT_FINITE, NOT_SOLVED, SOUND, Status, not_finite
from ._trajectory import Trajectory
from .events import DIRECTIONS, Event

if TYPE_CHECKING:
    import diffrax


class Watch(eqx.Module):
    """Looks after a motion: at its start, at its event, and at its end.

    A motion whose start is not finite, or beyond a limit already, is `stuck`. It is
    integrated all the same, as others in a batch may not be, but with all rates zero.
    """

    motion: Motion
    event: Event | None
    start: tuple[Position, Joints]  # the state, made finite
    value: Float[Array, ""]  # of the event at the start; a zero as what it becomes
    stuck: Bool[Array, ""]
    t0: Float[Array, ""]  # as diffrax has it, whose time always runs forward
    forward: Float[Array, ""]  # 1, or -1 of a motion back in time

    def __init__(self, motion: Motion, event: Event | None, ts, q0, qd0):
        lost = jnp.any(not_finite(q0, qd0))
        q0 = jnp.where(lost, neutral(motion.model).astype(q0.dtype), q0)
        self.motion, self.event = motion, event
        self.start = motion.state(q0, jnp.where(lost, 0, qd0))
        self.forward = jnp.where(ts[0] < ts[-1], 1, -1).astype(ts.dtype)
        self.t0 = ts[0] * self.forward
        self.value, self.stuck = jnp.zeros_like(ts[0]), lost
        if event is not None:
            tangent = jnp.ones_like(ts[0]), motion(ts[0], self.start, True)
            value, rate = jax.jvp(self._value, (ts[0], self.start), tangent)
            self.value = jnp.where(value == 0, rate * self.forward, value)
            self.stuck |= event.at_once(self.value)

    def _value(self, t, state) -> Float[Array, ""]:
        assert self.event is not None
        return self.event.value(self.motion.model, t, *self.motion.of(state))

    def __call__(self, t, y, args, **others) -> Float[Array, ""]:
        """The number whose change of sign diffrax looks for."""
        return jnp.where(t == self.t0, self.value, self._value(t * self.forward, y))

    def for_diffrax(self, rtol: float, atol: float) -> "diffrax.Event | None":
        if self.event is None:
            return None
        import diffrax
        import optimistix

        finder = optimistix.Newton(rtol=1e-3 * rtol, atol=1e-3 * atol)
        return diffrax.Event(self, finder, DIRECTIONS[self.event.direction])

    def trajectory(self, ts, q0, qd0, solution, throw: bool) -> Trajectory:
        """The samples, which after a stop hold the state and the time of it."""
        (t, last_t), (states, last) = solution.ts, solution.ys
        reached = jnp.isfinite(t) & ~self.stuck

        def hold(x, last):
            return jnp.where(jnp.expand_dims(reached, range(1, x.ndim)), x, last)

        t, state = jax.tree.map(hold, (t, states), (last_t, last))
        q, qd = jax.vmap(lambda *state: self.motion.of(state))(*state)
        t, q, qd = (
            jnp.where(self.stuck, jnp.broadcast_to(start, x.shape), x)
            for start, x in ((ts[:1], t), (q0, q), (qd0, qd))
        )
        status = self._status(solution.result, q, qd, reached)
        if throw:
            q = _or_error(q, status.reason)
        return Trajectory(t, q, qd, jax.vmap(self.motion.torque)(t, q, qd), status)

    def _status(self, result, q, qd, reached) -> Status:
        from diffrax import RESULTS

        wrong = jax.vmap(not_finite)(q, qd)
        lost = jnp.any(wrong[-1])
        vanished = result == RESULTS.dt_min_reached
        reason = jnp.where(result == RESULTS.successful, SOUND, NOT_SOLVED)
        reason = jnp.where(vanished | lost, NOT_FINITE, reason)
        joint = jnp.where(lost, jnp.argmax(wrong[-1]), -1)
        if self.event is not None:
            met = ~lost & (self.stuck | (result == RESULTS.event_occurred))
            reason = jnp.where(met, self.event.reason, reason)
            blamed = self.event.joint(self.motion.model, q[-1], qd[-1])
            joint = jnp.where(met, blamed, joint)
        last = jnp.maximum(jnp.sum(reached) - 1, 0)  # the start needs no reaching
        step = jnp.where(reason == SOUND, -1, last)
        sound = ~jnp.any(wrong, axis=1) & (jnp.arange(len(q)) <= last)
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
    failed = (reason == NOT_FINITE) | (reason == NOT_SOLVED)
    which = jnp.where(reason == NOT_FINITE, 0, 1)
    return eqx.branched_error_if(q, failed, which, list(failures.values()))
