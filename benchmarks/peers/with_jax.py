"""What all JAX peers share: from one robot's functions to a compiled batch."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from . import clock
from .names import NotOffered
from .states import OURS


@dataclass
class Peer:
    """A peer's functions of q, qd, x of one robot, its joints and its convention."""

    names: tuple[str, ...]
    inverse: Callable
    forward: Callable
    mass: Callable
    twist: str = OURS


def measure(peer, quantity, args, options):
    """Numbers of one quantity, and the batch of results."""
    import jax.numpy as jnp

    args = tuple(jnp.asarray(a, dtype=options.dtype) for a in args)
    functions = _functions(peer, quantity, options)
    if options.mode is not None:
        functions = {options.mode: functions[options.mode]}
    kinds = {kind: _compiled(f, args) for kind, f in functions.items()}
    kind = _fastest(kinds, args)
    program, numbers = kinds[kind]
    found = np.asarray(_call(program, args))
    times = clock.median(
        lambda: clock.timed(lambda: _call(program, args)), options.repeats
    )
    return numbers | times | ({"mode": kind} if kind else {}), found


def _fastest(kinds, args):
    """Of several ways to the same numbers, the one that is faster here."""
    if len(kinds) == 1:
        return next(iter(kinds))
    rough = {
        kind: min(clock.timed(lambda: _call(program, args)) for _ in range(3))
        for kind, (program, _) in kinds.items()
    }
    return min(rough, key=rough.get)


def _functions(peer, quantity, options):
    """The function of q, qd, x and a cotangent, by the kinds worth trying."""
    import jax
    import jax.numpy as jnp

    def jacobian(mode):
        def f(q, qd, x, y):
            return jnp.concatenate(mode(peer.forward, (0, 1, 2))(q, qd, x), axis=-1)

        return f

    def vjp(q, qd, x, y):
        return jnp.concatenate(jax.vjp(peer.forward, q, qd, x)[1](y))

    if options.floating and quantity.startswith("rollout"):
        raise NotOffered("rollouts of JAX peers are written for fixed bases")
    functions = {
        "inverse dynamics": {"": lambda q, qd, x, y: peer.inverse(q, qd, x)},
        "forward dynamics": {"": lambda q, qd, x, y: peer.forward(q, qd, x)},
        "mass matrix": {"": lambda q, qd, x, y: peer.mass(q)},
        "FD Jacobian": {k: jacobian(getattr(jax, k)) for k in ("jacfwd", "jacrev")},
        "FD VJP": {"": vjp},
        "rollout": {"": _rollout(_step(peer, options), options.steps)},
        "rollout gradient": _gradients(_step(peer, options), options.steps),
    }
    return functions[quantity]


def _step(peer, options):
    """A semi-implicit step of (q, qd) under x."""

    def step(q, qd, x):
        qd = qd + options.dt * peer.forward(q, qd, x)
        return q + options.dt * qd, qd

    return step


def _rollout(step, steps):
    """The last q and qd after steps under a constant force."""
    import jax
    import jax.numpy as jnp

    def f(q, qd, x, y):
        last, _ = jax.lax.scan(lambda s, _: (step(*s, x), None), (q, qd), length=steps)
        return jnp.concatenate(last)

    return f


def _gradients(step, steps):
    """The gradient of the sum of squares of the last q and qd, by q, qd and x.

    With every step kept for the way back, or its state alone.
    """
    import jax
    import jax.numpy as jnp

    def gradient(step):
        last = _rollout(step, steps)
        slope = jax.grad(lambda *s: jnp.sum(last(*s) ** 2), (0, 1, 2))
        return lambda *s: jnp.concatenate(slope(*s))

    return {"kept": gradient(step), "checkpoint": gradient(jax.checkpoint(step))}


def _compiled(f, args):
    import jax

    start = perf_counter()
    lowered = jax.jit(jax.vmap(f)).lower(*args)
    middle = perf_counter()
    program = lowered.compile()
    numbers = {
        "trace seconds": middle - start,
        "compile seconds": perf_counter() - middle,
        "memory MB": program.memory_analysis().temp_size_in_bytes / 1e6,
    }
    if numbers["memory MB"] > clock.total_MB() / 2:
        raise NotOffered(f"would take {numbers['memory MB'] / 1e3:.0f} GB")
    return program, numbers


def _call(program, args):
    import jax

    return jax.block_until_ready(program(*args))
