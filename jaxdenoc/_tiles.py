"""A batch in tiles: what `jax.vmap` of this library's functions runs as on a CPU.

`vmap` turns a scan over links into a scan whose every number is an array as long as the
batch. XLA runs such a loop as many small kernels, each of which reads and writes those
arrays: beyond a few hundred robots they no longer fit the cache, below that launching
the kernels is most of the cost. So the batch is cut into tiles that fit, and the whole
program of a tile is compiled as one piece of code.

That is done in the batching rule, so that a plain `vmap` has it. The derivative rule
stands outside of it: a function of this module is differentiated as if it were written
plainly, in both modes.

On other platforms than the CPU, for releases of jaxlib that were not tried and with the
environment variable JAXDENOC_TILES=0, `vmap` is the plain one.
"""

from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import jax.tree as jt
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap
from jaxtyping import PyTree

from . import _pieces
from ._moves import moving
from ._pieces import one_piece
from ._within import within_piece

# robots at a time; of 32, 64, 128, 256 it or 64 was fastest for 7, 50 and 200 links
TILE = 128
VECTOR = 16  # numbers that a core may take at once


def in_tiles(
    function: Callable,
    finish: Callable | None = None,
    like: Callable | None = None,
    alone: Callable | None = None,
) -> Callable[..., Any]:
    """`function`, whose `vmap` goes tile by tile on a CPU.

    With `finish` it is `finish(function(...))`, where `finish` takes arrays that may
    have a last axis more than for one robot, the lanes, and only does elementwise
    arithmetic and loops with them: `vmap` moves the lanes of a table of numbers to the
    front each time that a loop makes one, and to move them back costs more than the
    table. The derivative is that of `like`, which has the same value, or else its own.
    `alone` also has the same value, and is what runs for one robot without a batch.
    """
    single = function if finish is None else _then(function, finish)
    lanes = _lanes(alone or single, 1, partial(_many, function, finish))

    @jax.custom_jvp
    def whole(*args):
        return lanes(*args) if _pieces.ENABLED else single(*args)

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
    before, _pieces.ENABLED = _pieces.ENABLED, False
    jax.clear_caches()  # of programs that were made the other way
    try:
        yield
    finally:
        _pieces.ENABLED = before
        jax.clear_caches()


def _lanes(function: Callable, width: int, many: Callable) -> Callable:
    """`function` of `width` robots, which knows what to do about more of them.

    `many(axes)` is its `vmap` over these axes.
    """
    lanes = custom_vmap(partial(one_piece, function))
    lanes.def_vmap(partial(_batched, many, width))
    return lanes


def _batched(many, width, size, batched, *args):
    """The rule of `vmap`: `size` calls of a function, each of `width` robots."""
    whole = many(jt.map(lambda b: 0 if b else None, batched))
    if within_piece():
        out = whole(*args)
    elif width * size <= TILE:
        out = _lanes(whole, width * size, partial(jax.vmap, whole))(*args)
    else:
        tiles = partial(_by_tiles, whole, size, max(TILE // width, 1), batched)
        out = lax.platform_dependent(*args, cpu=tiles, default=whole)
    return out, jt.map(lambda _: True, out)


def _by_tiles(whole, size, tile, batched, *args):
    leaves, structure = jt.flatten(args)
    varies = jt.leaves(batched)

    def run(part):
        part = iter(part)
        here = [next(part) if b else x for x, b in zip(leaves, varies, strict=True)]
        return one_piece(whole, *jt.unflatten(structure, here))

    rows = [x for x, b in zip(leaves, varies, strict=True) if b]
    return joined(lax.map(run, cut(rows, size, tile)), size)


def cut(rows: PyTree, size: int, tile: int, share: int = 1) -> PyTree:
    """`size` rows as tiles of equal length, `tile` at most, `share` of them or a
    multiple of it.

    The last are filled up with rows from the front, which are as valid as any. Tiles
    are whole vectors of the machine, so that a row's numbers do not depend, to the last
    bit, on how many others there are.
    """
    count = -(-size // (tile * share)) * share
    tile = min(-(-size // (count * VECTOR)) * VECTOR, tile)
    again = np.arange(count * tile - size) % size

    def into_tiles(x):
        x = jnp.concatenate([x, x[again]]) if again.size else x
        return x.reshape(count, tile, *x.shape[1:])

    return jt.map(into_tiles, rows)


def joined(tiles: PyTree, size: int) -> PyTree:
    """The rows of tiles again, without those that were filled in."""

    def rows(y):
        count, tile, *shape = y.shape
        return y.reshape(count * tile, *shape)[:size]

    return jt.map(rows, tiles)


def _jvp(function, primals, tangents):
    """Plain forward mode along the arguments that move at all."""
    moves, slopes = moving(primals, tangents)

    def along(here):
        return function(*moves.put(primals, here))

    out = jax.jvp(along, (moves.of(primals),), (slopes,))
    # JAX wants the batch on the same axis here as `_batched` has it, the first; a
    # reshape puts it there, and costs nothing.
    return jt.map(lambda y: y[None].reshape(y.shape), out)
