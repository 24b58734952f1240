"""Adaptive simulation, on diffrax."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._errors import ModelError
from .._types import Joints, Position
from ..conditioning import along, stride
from ..dynamics import check_state
from ..model import Model
from ._motion import Motion
from ._torque import Torque as Torque
from ._torque import as_function
from ._trajectory import Trajectory
from ._watch import Watch
from .events import Event, as_event

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
    monitor: bool | int = False,
) -> Trajectory:
    """The motion from (q0, qd0) at ts[0], sampled at the times `ts`.

    Saha's RFDSIM: O(n) forward dynamics under an adaptive integrator of diffrax.
    `solver` is "tsit5" (the default), "dopri8" for tolerances of 1e-10 and below,
    "kvaerno5", which is implicit, for stiff robots, or one of diffrax that estimates
    its error. Tsit5 interpolates samples between its steps, the others end a step at
    each. The pose of a free base is integrated on its manifold: its quaternion is a
    unit one.

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

    `monitor` records in `Trajectory.condition` how well conditioned the mass matrix is,
    without eigenvalues: True at every sample, k at every k-th.

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
    method, every = _solver(solver), stride(monitor, 1)
    dtype = jnp.result_type(q0, qd0)
    ts, q0, qd0 = (jnp.asarray(x, dtype) for x in (ts, q0, qd0))
    motion = Motion(model, as_function(model, tau, dtype), rates)
    watch = Watch(motion, None if event is None else as_event(event), ts, q0, qd0)

    # Only Tsit5 interpolates as accurately as it steps: Dopri8 loses a digit between
    # steps, Kvaerno5 most of them.
    at_samples = event is not None or not isinstance(method, diffrax.Tsit5)
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
        y0=watch.start,
        args=~watch.stuck,
        saveat=diffrax.SaveAt(
            subs=[diffrax.SubSaveAt(ts=ts), diffrax.SubSaveAt(t1=True)]
        ),
        stepsize_controller=diffrax.ClipStepSizeController(
            _controller(ts, rtol, atol), ts if at_samples else None, jumps
        ),
        event=watch.for_diffrax(rtol, atol),
        max_steps=max_steps,
        throw=False,
    )
    motion = watch.trajectory(ts, q0, qd0, solution, throw)
    if not every:
        return motion
    watched = along(model, motion.t, motion.q, every)
    return eqx.tree_at(lambda m: m.condition, motion, watched, is_leaf=_is_none)


def _is_none(x) -> bool:
    return x is None


def _solver(solver: "str | diffrax.AbstractSolver | None") -> "diffrax.AbstractSolver":
    import diffrax

    if isinstance(solver, diffrax.AbstractAdaptiveSolver):
        return solver
    name = "tsit5" if solver is None else solver
    if not isinstance(name, str) or name not in SOLVERS:
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
