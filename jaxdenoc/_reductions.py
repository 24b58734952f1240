"""Sums, maxima and minima that XLA compiles itself.

Of 4096 floats and more XLA's CPU compiler leaves them to a library of kernels, which
cannot be called from within a piece (`_pieces.py`). It knows them by the function that
they combine two numbers with; with another that does the same they are loops.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from ._linear import linear_p, program

LARGE = 1024  # floats, as a `vmap` around the piece makes them more
COMBINE = {
    "reduce_sum": (0.0, lambda a, b: a - (-b)),
    "reduce_max": (-np.inf, lambda a, b: jnp.where((a > b) | (a != a), a, b)),
    "reduce_min": (np.inf, lambda a, b: jnp.where((a < b) | (a != a), a, b)),
}


def without_kernels(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The same program, with no large reduction that is left to a library."""
    if not _reduces(closed.jaxpr):
        return closed
    return jax.make_jaxpr(partial(_run, closed))(*closed.in_avals)


def programs(equation) -> list[ClosedJaxpr]:
    """The programs that an operation runs: the body of a loop, the function called."""
    if equation.primitive is linear_p:
        return [program(equation)]
    return [
        p if isinstance(p, ClosedJaxpr) else ClosedJaxpr(p, ())
        for p in equation.params.values()
        if isinstance(p, ClosedJaxpr | Jaxpr)
    ]


def _reduces(jaxpr: Jaxpr) -> bool:
    return any(
        _is_large(e) or any(_reduces(p.jaxpr) for p in programs(e)) for e in jaxpr.eqns
    )


def _is_large(equation) -> bool:
    if equation.primitive.name not in COMBINE:
        return False
    x = equation.invars[0].aval
    return x.size >= LARGE and jnp.issubdtype(x.dtype, jnp.floating)


def _run(closed: ClosedJaxpr, *args) -> list:
    """The program, operation by operation, in place of the call of it."""
    jaxpr = closed.jaxpr
    at = dict(zip(jaxpr.constvars + jaxpr.invars, [*closed.consts, *args], strict=True))

    def read(v):
        return v.val if isinstance(v, Literal) else at[v]

    for e in jaxpr.eqns:
        with e.ctx.manager:
            out = _result(e, [read(v) for v in e.invars])
        out = out if e.primitive.multiple_results else [out]
        at.update(zip(e.outvars, out, strict=True))
    return [read(v) for v in jaxpr.outvars]


def _result(e, ins):
    if _is_large(e):
        start, combine = COMBINE[e.primitive.name]
        return lax.reduce(ins[0], ins[0].dtype.type(start), combine, e.params["axes"])
    bodies = programs(e)
    if not any(_reduces(p.jaxpr) for p in bodies):
        return e.primitive.bind(*ins, **e.primitive.get_bind_params(e.params))
    if e.primitive.name in ("scan", "while"):
        changed = {
            k: without_kernels(p)
            for k, p in e.params.items()
            if isinstance(p, ClosedJaxpr)
        }
        return e.primitive.bind(*ins, **(e.params | changed))
    (body,) = bodies
    return _run(body, *ins)
