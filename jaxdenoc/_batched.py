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
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.tree as jt
import numpy as np
from jax import lax
from jax.extend.core import jaxpr_as_fun
from jax.sharding import AbstractMesh, Mesh, PartitionSpec

from . import _pieces
from ._arguments import Axes, Known, batch_size
from ._linear import Pair, linear
from ._moves import moving
from ._pieces import log, one_piece
from ._placing import as_mesh, known_to_be_on, placed
from ._tiles import TILE, cut, joined


def batched(
    f: Callable,
    *,
    in_axes: Any = 0,
    tile: int | None = None,
    devices: Sequence | Mesh | None = None,
) -> Callable:
    """`jax.vmap(f, in_axes)`, in tiles that fit the cache, over the devices.

        fd = jd.batched(jd.forward_dynamics, in_axes=(None, 0, 0, 0))
        qdd = fd(model, q, qd, tau)

    `f` is any function that `jax.vmap` can take, of this library or of yours; `in_axes`
    is as for `vmap`, and results are stacked along their first axis. What an argument
    holds besides numbers, such as the activation of a neural network, must not be
    mapped; the program is compiled for it. `tile` is the number of robots at a time,
    chosen if not given. It is compiled when called, and works under `jit`, `vmap` and
    both modes of differentiation. Results differ from `vmap` by rounding at most.

    `devices` are a sequence of them or a `jax.sharding.Mesh`, over all of whose axes
    the batch is dealt, in order; if not given, they are all that JAX has. On a CPU one
    device is one core: say `jax.config.update("jax_num_cpu_devices", n)` before
    anything else for `n` of them. After `jax.distributed.initialize` they are those of
    all processes: every one makes the same call, with global arrays, or with values
    that are the same everywhere, and has its part of the global arrays that come out.
    """
    if tile is not None and tile < 1:
        raise ValueError(f"tile is {tile}; give the number of robots at a time.")
    chosen = Axes(in_axes)

    @partial(jax.jit, static_argnums=0)
    def run(known: Known, arrays: list):
        axes = known.layout.axes
        plan = Plan(batch_size(arrays, axes), tile or TILE, as_mesh(devices))
        pairs = list(zip(arrays, axes, strict=True))
        rows = [jnp.moveaxis(x, a, 0) for x, a in pairs if a is not None]
        shared = [x for x, a in pairs if a is None]
        if plan.mesh.size > 1:
            shared, rows = known_to_be_on(plan.mesh, shared, rows)

        def one(shared, row):
            return f(*known.whole(shared, row)), ()

        _say(plan.mesh)
        return _many(one, plan)(shared, rows)[0]

    @wraps(f)
    def call(*args):
        arrays, known, traced = chosen.read(*args)
        mesh = as_mesh(devices)
        if not traced and (devices is not None or mesh.size > 1):
            arrays = placed(arrays, known.layout.axes, mesh)
        return run(known, arrays)

    return call


class Plan(NamedTuple):
    """How many robots, how many at a time, and where."""

    size: int
    tile: int
    mesh: Mesh


def _say(mesh: Mesh):
    platforms = {d.platform for d in mesh.devices.flat}
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
                return _floats(one(*moves.put((shared, row), leaves)))

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
        found = linear(Pair(apply, transpose), at, slopes, like=_floats(out))
        return out, _tangents(out, found)

    return many


def _floats(out) -> tuple[list, list]:
    """Of a row and a total, the leaves that have a derivative."""
    row, total = map(jt.leaves, out)
    return [x for x in row if _is_float(x)], [x for x in total if _is_float(x)]


def _tangents(out, floats):
    """What JAX takes for the tangent of `out`: the others have none."""
    leaves, structure = jt.flatten(out)
    slopes = iter(jt.leaves(floats))
    none = jax.dtypes.float0
    return jt.unflatten(
        structure,
        [next(slopes) if _is_float(x) else np.zeros(x.shape, none) for x in leaves],
    )


def _is_float(x) -> bool:
    return jnp.issubdtype(jnp.result_type(x), jnp.inexact)


def _over_devices(one, plan, shared, rows):
    """Each device its share of the tiles; totals are summed over all of them."""
    share = plan.mesh.size
    tiles = cut(rows, plan.size, plan.tile, share)
    shape = jt.leaves(tiles)[0].shape[:2]
    real = jnp.arange(np.prod(shape)).reshape(shape) < plan.size
    if share == 1:
        found, total = _tile_by_tile(one, shared, tiles, real)
        return joined(found, plan.size), total

    def on_device(*share):
        found, total = _apart(partial(_tile_by_tile, one), *share)
        return found, lax.psum(total, plan.mesh.axis_names)

    dealt, all_of_it = PartitionSpec(plan.mesh.axis_names), PartitionSpec()
    found, total = jax.shard_map(
        on_device,
        mesh=plan.mesh,
        in_specs=(all_of_it, dealt, dealt),
        out_specs=(dealt, all_of_it),
        check_vma=False,
    )(shared, tiles, real)
    return joined(found, plan.size), total


def _apart(f, *args):
    """`f(*args)`, traced as the program of one device that knows of no others.

    JAX's types of what is made within `shard_map` name its mesh, and some of JAX's
    loops, Equinox's checkpointed one among them, take a number with it and the same
    without it for different ones.
    """
    plain = jt.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), args)
    with jax.sharding.use_abstract_mesh(AbstractMesh((), ())):
        program, out = jax.make_jaxpr(f, return_shape=True)(*plain)
    return jt.unflatten(jt.structure(out), jaxpr_as_fun(program)(*jt.leaves(args)))


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
