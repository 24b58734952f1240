"""`batched`: `vmap` at the speed of the machine, on every core and device.

A function of one robot is made one of a batch in three steps:

1. The batch is dealt out to the devices, each of which runs the same program on its
   share (`jax.shard_map`). On a CPU a device is a thread: XLA runs a sweep over links
   on one core, so two cores need `jax.config.update("jax_num_cpu_devices", 2)` at the
   start of a program. The code is the same for GPUs, TPUs, and devices of many hosts.
2. A device's share is cut into tiles whose numbers stay in the cache.
3. On a CPU a tile is one compiled piece of code (`_pieces.py`): a whole rollout then
   runs from its first step to its last before the next tile starts.

What does not divide evenly is filled up with robots of the batch. The derivative of a
batch is a batch of derivatives: forward mode takes `jvp` of a robot, reverse mode its
`vjp`, each in the same three steps, so that a gradient has its tiles as well, and keeps
nothing of the forward pass but the arguments. Gradients with respect to what all robots
share, such as the model, are summed up tile by tile.
"""

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any

import jax
import jax.numpy as jnp
import jax.tree as jt
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from . import _pieces
from ._linear import Pair, linear
from ._moves import moving
from ._pieces import log, one_piece
from ._tiles import TILE, cut, joined

AXIS = "batch"


def batched(
    f: Callable,
    *,
    in_axes: Any = 0,
    tile: int | None = None,
    devices: Sequence | None = None,
) -> Callable:
    """`jax.vmap(f, in_axes)`, in tiles that fit the cache, over the devices.

        fd = jd.batched(jd.forward_dynamics, in_axes=(None, 0, 0, 0))
        qdd = fd(model, q, qd, tau)

    `f` is any function that `jax.vmap` can take, of this library or of yours; `in_axes`
    is as for `vmap`, and results are stacked along their first axis. `tile` is the
    number of robots at a time, chosen if not given; `devices` are all that JAX has if
    not given. It is compiled when called, and works under `jit`, `vmap` and both modes
    of differentiation. Results differ from `vmap` by rounding at most.

    On a CPU one device is one core: say `jax.config.update("jax_num_cpu_devices", n)`
    before anything else for `n` of them.
    """
    if tile is not None and tile < 1:
        raise ValueError(f"tile is {tile}; give the number of robots at a time.")

    @wraps(f)
    def call(*args):
        here = tuple(jax.devices() if devices is None else devices)
        leaves, structure = jt.flatten(args)
        axes = _axes(in_axes, args)
        size = _size(leaves, axes)
        varies = [a is not None for a in axes]
        shared = [jnp.asarray(x) for x, v in zip(leaves, varies, strict=True) if not v]
        rows = [
            jnp.moveaxis(jnp.asarray(x), a, 0)
            for x, a in zip(leaves, axes, strict=True)
            if a is not None
        ]

        def one(shared, row):
            shared, row = iter(shared), iter(row)
            back = [next(row if v else shared) for v in varies]
            return f(*jt.unflatten(structure, back)), ()

        _say(here)
        return _many(one, Plan(size, tile, here))(shared, rows)[0]

    return jax.jit(call)


class Plan:
    """How many robots, how many at a time, and where."""

    def __init__(self, size: int, tile: int | None, devices: tuple):
        self.size, self.tile, self.devices = size, tile or TILE, devices


def _axes(in_axes, args) -> list[int | None]:
    """The mapped axis of every leaf, from a prefix of the arguments as for `vmap`."""
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    try:
        full = jt.broadcast(in_axes, args, is_leaf=lambda x: x is None)
    except ValueError as error:
        raise ValueError(
            f"in_axes {in_axes} does not fit the {len(args)} arguments: give one axis "
            "(or None) for all, or one for each, as for jax.vmap."
        ) from error
    return jt.leaves(full, is_leaf=lambda x: x is None)


def _size(leaves, axes) -> int:
    sizes = set()
    for x, a in zip(leaves, axes, strict=True):
        shape = jnp.shape(x)
        if a is None:
            continue
        if not -len(shape) <= a < len(shape):
            raise ValueError(f"in_axes maps axis {a} of an array of shape {shape}.")
        sizes.add(shape[a])
    if len(sizes) == 1:
        return sizes.pop()
    if not sizes:
        raise ValueError("in_axes maps no argument; at least one must not be None.")
    raise ValueError(f"the mapped axes have different lengths: {sorted(sizes)}.")


def _say(devices):
    platforms = {d.platform for d in devices}
    if platforms != {"cpu"}:
        log.debug("batched: tiles run as ordinary programs on %s", platforms)
    elif not _pieces.ENABLED:
        log.debug("batched: tiles run as ordinary programs on this jaxlib")


def _many(one: Callable, plan: Plan) -> Callable:
    """`one(shared, row) -> row, total` of all rows; the totals are summed over them."""

    @jax.custom_jvp
    def many(shared, rows):
        return _over_devices(one, plan, shared, rows)

    @partial(many.defjvp, symbolic_zeros=True)
    def rule(at, tangents):
        moves, slopes = moving(at, tangents)
        split = sum(moves.which[: len(jt.leaves(at[0]))])  # of them, moves of `shared`

        def along(shared, row):
            def f(leaves):
                return one(*moves.put((shared, row), leaves))

            return f, moves.of((shared, row))

        def tangent(shared, row):
            (shared, of_shared), (row, of_row) = shared, row
            f, here = along(shared, row)
            return jax.jvp(f, (here,), (of_shared + of_row,))[1]

        def adjoint(shared, row):
            (shared, of_total), (row, of_row) = shared, row
            f, here = along(shared, row)
            (found,) = jax.vjp(f, here)[1]((of_row, of_total))
            return found[split:], found[:split]

        def apply(at, slopes):
            shared, rows = at
            of_shared, of_rows = slopes[:split], slopes[split:]
            return _many(tangent, plan)((shared, of_shared), (rows, of_rows))

        def transpose(at, cotangents):
            shared, rows = at
            of_rows, of_total = cotangents
            found = _many(adjoint, plan)((shared, of_total), (rows, of_rows))
            return found[1] + found[0]

        out = many(*at)
        return out, linear(Pair(apply, transpose), at, slopes, like=out)

    return many


def _over_devices(one, plan, shared, rows):
    """Each device its share of the tiles; totals are summed over all of them."""
    share = len(plan.devices)
    tiles = cut(rows, plan.size, plan.tile, share)
    shape = jt.leaves(tiles)[0].shape[:2]
    real = jnp.arange(np.prod(shape)).reshape(shape) < plan.size
    if share == 1:
        found, total = _tile_by_tile(one, shared, tiles, real)
        return joined(found, plan.size), total

    def on_device(shared, tiles, real):
        found, total = _tile_by_tile(one, shared, tiles, real)
        return found, lax.psum(total, AXIS)

    dealt, all_of_it = PartitionSpec(AXIS), PartitionSpec()
    found, total = jax.shard_map(
        on_device,
        mesh=Mesh(np.array(plan.devices), (AXIS,)),
        in_specs=(all_of_it, dealt, dealt),
        out_specs=(dealt, all_of_it),
        check_vma=False,
    )(shared, tiles, real)
    return joined(found, plan.size), total


def _tile_by_tile(one, shared, tiles, real):
    """On one device, each tile in one piece."""

    def run(tile):
        rows, real = tile
        found, totals = one_piece(jax.vmap(one, (None, 0)), shared, rows)

        def add(x):
            mask = real.reshape(-1, *(1,) * (x.ndim - 1))
            return jnp.sum(jnp.where(mask, x, 0), axis=0)

        return found, jt.map(add, totals)

    found, totals = lax.map(run, (tiles, real))
    return found, jt.map(lambda x: jnp.sum(x, axis=0), totals)
