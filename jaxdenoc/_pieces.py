"""A program as one compiled piece of code, instead of the many kernels XLA makes of it.

XLA runs a scan over links on a CPU as thousands of small kernels. For a tile of robots
that fits the cache, launching them is most of the cost; a call that carries two of
XLA's own attributes is compiled as one function, loops and all. The attributes are not
documented, so they are set on the CPU only, for the releases of jaxlib that were tried,
and for programs of operations that are known to compile that way; anything else runs as
usual, which the log of this library says at debug level.
"""

import logging
import os
from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import version
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import jax.tree as jt
from jax import lax
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend.core import Jaxpr, jaxpr_as_fun

from ._reductions import programs, without_kernels
from ._within import in_piece, within_piece

TRIED = ("0.10.",)  # releases of jaxlib
ENABLED = version("jaxlib").startswith(TRIED) and (
    os.environ.get("JAXDENOC_TILES", "1") != "0"
)
log = logging.getLogger("jaxdenoc")

# What XLA can compile into one piece, of what this library uses. Not among them:
# scatter, matrix products, factorisations.
IN_A_PIECE = frozenset(
    """
    abs add add_any and atan2 broadcast_in_dim clamp concatenate convert_element_type
    copy cos div dynamic_slice eq exp expand_dims floor gather ge gt integer_pow iota
    is_finite le log log1p logistic lt max min mul ne neg not or pad pow reduce_max
    reduce_min reduce_sum reshape rev round rsqrt select_n sign sin slice split sqrt
    square squeeze stack stop_gradient sub tanh transpose unstack xor
    """.split()  # noqa: SIM905
)


def one_piece(function: Callable, *args) -> Any:
    """`function(*args)`, compiled as one piece of code where that can be.

    The arguments go in as one array for each type, and the first number of each comes
    out again: XLA ends the process if a piece has a parameter that nothing in it reads,
    and takes a piece with a single large result for one that runs on several threads.
    """
    if within_piece() or not ENABLED:
        return function(*args)
    leaves, structure = jt.flatten(args)
    shapes = tuple((jnp.shape(x), jnp.result_type(x)) for x in leaves)
    packed = list(pack(leaves).values())
    run = _unpacked(function, structure, shapes)
    traced = run.trace(*packed)
    strange = primitives(traced.jaxpr.jaxpr) - IN_A_PIECE
    if strange:
        log.debug("not in one piece, because of %s", ", ".join(sorted(strange)))
        return function(*args)

    fit = without_kernels(traced.jaxpr)
    changed = jax.jit(jaxpr_as_fun(fit))

    def piece(*packed):
        # `run` is not traced again
        out = run(*packed) if fit is traced.jaxpr else changed(*packed)
        tags = {"inlineable": "false", "xla_cpu_small_call": "true"}
        out = lax.optimization_barrier(set_xla_metadata(out, **tags))  # all is needed
        return jt.unflatten(jt.structure(traced.out_info), jt.leaves(out))

    return lax.platform_dependent(*packed, cpu=piece, default=run)[0]


@lru_cache(maxsize=256)
def _unpacked(function, structure, shapes):
    """`function` of packed arguments. Kept, so that JAX need not trace it again."""

    def unpacked(*packed):
        kinds = dict.fromkeys(str(kind) for _, kind in shapes)
        here = unpack(dict(zip(kinds, packed, strict=True)), shapes)
        with in_piece(True):
            out = function(*jt.unflatten(structure, here))
        return out, [x[:1] for x in packed]

    return jax.jit(unpacked)


def pack(leaves: list) -> dict[str, Any]:
    """All numbers of each type in a row."""
    kinds: dict[str, list] = {}
    for x in leaves:
        kinds.setdefault(str(jnp.result_type(x)), []).append(jnp.reshape(x, -1))
    return {kind: jnp.concatenate(parts) for kind, parts in kinds.items()}


def unpack(packed: dict[str, Any], shapes) -> list:
    """The arrays again, by their shapes and types."""
    rest, leaves = dict(packed), []
    for shape, kind in shapes:
        kind, k = str(kind), prod(shape)
        leaves.append(rest[kind][:k].reshape(shape))
        rest[kind] = rest[kind][k:]
    return leaves


def primitives(jaxpr: Jaxpr) -> set[str]:
    """The names of all operations in a program, those of its loops included."""
    names = set()
    for equation in jaxpr.eqns:
        inner = [primitives(p.jaxpr) for p in programs(equation)]
        names |= set().union(*inner) if inner else {equation.primitive.name}
    return names
