"""Adaptive simulation, on diffrax."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._errors import ModelError
from .._types import Joints, Position
from ..dynamics import (
    check_state,
    diagonal_acceleration,
    factorize,
    forward_dynamics,
)
from ..model import Model, configuration_rate
from ..spatial import _quaternion as quaternion
from ._trajectory import Trajectory

if TYPE_CHECKING:
    import diffrax

Torque = Callable[[Float[Array, ""], Position, Joints], Joints]


@eqx.filter_jit
def simulate(
    model: Model,
    q0: Position,
    qd0: Joints,
    ts: Float[Array, " k"],
    *,
    tau: Torque | Joints | None = None,
    rates: Literal["qd", "nu", "xi"] = "qd",
    solver: "diffrax.AbstractSolver | None" = None,
    rtol: float = 1e-8,
    atol: float = 1e-8,
    max_steps: int = 100_000,
) -> Trajectory:
    """The motion from (q0, qd0) at ts[0], sampled at the times `ts`.

    Saha's RFDSIM: O(n) forward dynamics under an adaptive integrator, here one of
    diffrax (Tsit5 if `solver` is not given). `tau` is a function of (t, q, qd), a
    constant vector, or None for a robot left to itself. `rates` says which state is
    integrated beside q: θ̇, or the diagonalised ν or ξ of Jain and Rodriguez, whose
    right-hand side is `diagonal_acceleration`; the motion is the same. Jitted, and
    differentiable in reverse mode through diffrax's checkpointed adjoint.
    """
    import diffrax  # here, because it doubles the time of `import jaxdenoc`

    check_state(model, q=q0, qd=qd0)
    if jnp.ndim(ts) != 1 or jnp.shape(ts)[0] < 2:
        raise ModelError(
            f"ts has shape {jnp.shape(ts)}. Give two or more times in a row."
        )
    dtype = jnp.result_type(q0, qd0)
    ts = jnp.asarray(ts, dtype)
    torque = as_function(model, tau, dtype)

    if rates not in ("qd", "nu", "xi"):
        raise ValueError(f"rates is '{rates}'; it can be 'qd', 'nu' or 'xi'.")
    normalized = rates == "nu"

    def field(t, state, _):
        q, x = state
        if rates == "qd":
            xd, qd = forward_dynamics(model, q, x, torque(t, q, x)), x
        else:
            qd = factorize(model, q).joint_rates(x, normalized=normalized)
            xd = diagonal_acceleration(
                model, q, x, torque(t, q, qd), normalized=normalized
            )
        return configuration_rate(model, q, qd), xd

    start = qd0.astype(dtype)
    if rates != "qd":
        start = factorize(model, q0).total_rates(start, normalized=normalized)
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        diffrax.Tsit5() if solver is None else solver,
        t0=ts[0],
        t1=ts[-1],
        dt0=None,
        y0=(q0.astype(dtype), start),
        saveat=diffrax.SaveAt(ts=ts),
        stepsize_controller=diffrax.PIDController(rtol=rtol, atol=atol),
        max_steps=max_steps,
    )
    assert solution.ys is not None  # SaveAt asks for them
    q, qd = solution.ys
    if rates != "qd":
        qd = jax.vmap(
            lambda q, x: factorize(model, q).joint_rates(x, normalized=normalized)
        )(q, qd)
    if model.floating_base:
        q = q.at[:, 3:7].set(jax.vmap(quaternion.normalized)(q[:, 3:7]))
    return Trajectory(ts, q, qd, jax.vmap(torque)(ts, q, qd))


def as_function(model: Model, tau: Torque | Joints | None, dtype) -> Torque:
    """`tau` as a function of (t, q, qd), whatever it was given as."""
    if tau is None:
        return lambda t, q, qd: jnp.zeros(model.nv, dtype)
    if callable(tau):
        return tau
    check_state(model, tau=tau)
    return lambda t, q, qd: jnp.asarray(tau, dtype)
