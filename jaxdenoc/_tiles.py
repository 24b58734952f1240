"""A batch in tiles: what `jax.vmap` of this library's functions runs as on a CPU.

`vmap` turns a scan over links into a scan whose every number is an array as long as the
batch. XLA runs such a loop as many small kernels, each of which reads and writes those
arrays: beyond a few hundred robots they no longer fit the cache, below that launching
the kernels is most of the cost. So the batch is cut into tiles that fit, and the whole
program of a tile is compiled as one piece of code.

That is done in the batching rule, so that a plain `vmap` has it. The derivative rule
stands outside of it: a function of this module is differentiated as if it were written
plainly, in both modes.

The attributes that make one piece of a call are XLA's own and not documented, so they
are set on the CPU only and for the releases of jaxlib that were tried; elsewhere, and
with the environment variable JAXDENOC_TILES=0, `vmap` is the plain one.
"""

import os
from collections.abc import Callable
from contextlib import contextmanager
from functools import lru_cache, partial
from importlib.metadata import version
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import jax.tree as jt
from jax import lax
from jax.custom_batching import custom_vmap
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend.core import ClosedJaxpr, Jaxpr, jaxpr_as_fun

from ._moves import moving

TILE = 128  # robots; 64 to 256 were equally fast
TRIED = ("0.10.",)  # releases of jaxlib
ENABLED = version("jaxlib").startswith(TRIED) and (
    os.environ.get("JAXDENOC_TILES", "1") != "0"
)

# What XLA can compile into one piece, of what this library uses. Not among them:
# scatter, matrix products, factorisations.
IN_A_PIECE = frozenset(
    """
    abs add add_any and broadcast_in_dim clamp concatenate convert_element_type copy
    cos div dynamic_slice eq exp expand_dims floor gather ge gt integer_pow iota le log
    log1p logistic lt max min mul ne neg not or pad pow reduce_max reduce_min
    reduce_sum reshape rev round rsqrt select_n sign sin slice sqrt square squeeze
    stack stop_gradient sub tanh transpose unstack xor
    """.split()  # noqa: SIM905
)


def in_tiles(
    function: Callable, finish: Callable | None = None, like: Callable | None = None
) -> Callable[..., Any]:
    """`function`, whose `vmap` goes tile by tile on a CPU.

    With `finish` it is `finish(function(...))`, where `finish` takes arrays that may
    have a last axis more than for one robot, the lanes, and only does elementwise
    arithmetic and loops with them: `vmap` moves the lanes of a table of numbers to the
    front each time that a loop makes one, and to move them back costs more than the
    table. The derivative is that of `like`, which has the same value, or else its own.
    """
    single = function if finish is None else _then(function, finish)
    lanes = _lanes(single, 1, partial(_many, function, finish))

    @jax.custom_jvp
    def whole(*args):
        return lanes(*args) if ENABLED else single(*args)

    whole.defjvp(partial(_jvp, like or single), symbolic_zeros=True)
    return whole


def _then(function, finish):
    return lambda *args: finish(function(*args))


def _many(function, finish, axes):
    """`function` and `finish` of a batch, with the batch on the first axis."""
    if finish is None:
        return jax.vmap(function, axes)
    rows = jax.vmap(function, axes, out_axes=-1)
    return lambda *args: jt.map(lambda y: jnp.moveaxis(y, -1, 0), finish(rows(*args)))


@contextmanager
def no_tiles():
    """Within it, programs are as they are written: to count and to compare them."""
    global ENABLED
    before, ENABLED = ENABLED, False
    jax.clear_caches()  # of programs that were made the other way
    try:
        yield
    finally:
        ENABLED = before
        jax.clear_caches()


def _lanes(function: Callable, width: int, many: Callable) -> Callable:
    """`function` of `width` robots, which knows what to do about more of them.

    `many(axes)` is its `vmap` over these axes.
    """
    lanes = custom_vmap(partial(_one_piece, function))
    lanes.def_vmap(partial(_batched, many, width))
    return lanes


def _batched(many, width, size, batched, *args):
    """The rule of `vmap`: `size` calls of a function, each of `width` robots."""
    whole = many(jt.map(lambda b: 0 if b else None, batched))
    if width * size <= TILE:
        out = _lanes(whole, width * size, partial(jax.vmap, whole))(*args)
    else:
        tiles = partial(_by_tiles, whole, size, max(TILE // width, 1), batched)
        out = lax.platform_dependent(*args, cpu=tiles, default=whole)
    return out, jt.map(lambda _: True, out)


def _by_tiles(whole, size, tile, batched, *args):
    count = -(-size // tile)
    tile = -(-size // count)
    extra = count * tile - size  # padded with robots of the batch, so with valid ones

    def cut(x):
        x = jnp.concatenate([x, x[:extra]]) if extra else x
        return x.reshape(count, tile, *x.shape[1:])

    leaves, structure = jt.flatten(args)
    varies = jt.leaves(batched)

    def run(part):
        part = iter(part)
        here = [next(part) if b else x for x, b in zip(leaves, varies, strict=True)]
        return _one_piece(whole, *jt.unflatten(structure, here))

    out = lax.map(run, [cut(x) for x, b in zip(leaves, varies, strict=True) if b])
    return jt.map(lambda y: y.reshape(count * tile, *y.shape[2:])[:size], out)


def _one_piece(function, *args):
    """`function(*args)`, compiled as one piece of code instead of many kernels.

    The arguments go in as one array for each type, and the first number of each comes
    out again: XLA ends the process if a piece has a parameter that nothing in it reads,
    and takes a piece with a single large result for one that runs on several threads.
    """
    leaves, structure = jt.flatten(args)
    shapes = tuple((x.shape, x.dtype) for x in leaves)
    kinds = dict.fromkeys(kind for _, kind in shapes)
    packed = [
        jnp.concatenate([jnp.reshape(x, -1) for x in leaves if x.dtype == kind])
        for kind in kinds
    ]
    traced = _unpacked(function, structure, shapes).trace(*packed)
    run = jaxpr_as_fun(traced.jaxpr)

    def piece(*packed):
        tags = {"inlineable": "false", "xla_cpu_small_call": "true"}
        result = set_xla_metadata(jax.jit(run)(*packed), **tags)
        return lax.optimization_barrier(result)  # or what is not needed is left out

    if _primitives(traced.jaxpr.jaxpr) <= IN_A_PIECE:
        result = lax.platform_dependent(*packed, cpu=piece, default=run)
    else:
        result = run(*packed)
    return jt.unflatten(jt.structure(traced.out_info), result)[0]


@lru_cache(maxsize=256)
def _unpacked(function, structure, shapes):
    """`function` of packed arguments. Kept, so that JAX need not trace it again."""

    def unpacked(*packed):
        kinds = dict.fromkeys(kind for _, kind in shapes)
        rest = dict(zip(kinds, packed, strict=True))
        here = []
        for shape, kind in shapes:
            k = prod(shape)
            here.append(rest[kind][:k].reshape(shape))
            rest[kind] = rest[kind][k:]
        return function(*jt.unflatten(structure, here)), [x[:1] for x in packed]

    return jax.jit(unpacked)


def _primitives(jaxpr: Jaxpr) -> set[str]:
    """The names of all operations in a program, those of its loops included."""
    names = set()
    for equation in jaxpr.eqns:
        inner = [
            p.jaxpr if isinstance(p, ClosedJaxpr) else p
            for p in equation.params.values()
            if isinstance(p, ClosedJaxpr | Jaxpr)
        ]
        names |= (
            set().union(*map(_primitives, inner))
            if inner
            else {equation.primitive.name}
        )
    return names


def _jvp(function, primals, tangents):
    """Plain forward mode along the arguments that move at all."""
    moves, slopes = moving(primals, tangents)

    def along(here):
        return function(*moves.put(primals, here))

    out = jax.jvp(along, (moves.of(primals),), (slopes,))
    # JAX wants the batch on the same axis here as `_batched` has it, the first; a
    # reshape puts it there, and costs nothing.
    return jt.map(lambda y: y[None].reshape(y.shape), out)
