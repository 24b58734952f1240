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

import weakref
from collections.abc import Callable, Sequence
from functools import cache, partial, wraps
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.tree as jt
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.dtypes import float0
from jax.sharding import Mesh, NamedSharding, PartitionSpec

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

    def here():
        return tuple(jax.devices() if devices is None else devices)

    @jax.jit
    def run(*args):
        leaves, structure = jt.flatten(args)
        axes = _axes(in_axes, args)
        plan = Plan(_size(leaves, axes), tile or TILE, here())
        pairs = list(zip(leaves, axes, strict=True))
        rows = [jnp.moveaxis(x, a, 0) for x, a in pairs if a is not None]
        shared = [x for x, a in pairs if a is None]

        def one(shared, row):
            shared, row = iter(shared), iter(row)
            back = [next(shared if a is None else row) for a in axes]
            return f(*jt.unflatten(structure, back)), ()

        _say(plan.devices)
        return _many(one, plan)(shared, rows)[0]

    @wraps(f)
    def call(*args):
        if len(here()) > 1 and not any(isinstance(x, Tracer) for x in jt.leaves(args)):
            args = _placed(args, _axes(in_axes, args), here())
        return run(*args)

    return call


class Plan(NamedTuple):
    """How many robots, how many at a time, and where."""

    size: int
    tile: int
    devices: tuple


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
    if not sizes:
        raise ValueError("in_axes maps no argument; at least one must not be None.")
    if sizes == {0}:
        raise ValueError("the batch is empty: the mapped axes have length 0.")
    if len(sizes) == 1:
        return sizes.pop()
    raise ValueError(f"the mapped axes have different lengths: {sorted(sizes)}.")


def _placed(args, axes, devices):
    """The arguments where the program wants them.

    JAX would bring them there as well, but one by one and in a millisecond or two, in
    which the program does ten thousand robots. From an array on a CPU it is quickest
    by way of NumPy. What all robots share is sent once, and remembered while it lives.
    """
    leaves, structure = jt.flatten(args)
    dealt, copied = _shardings(devices)
    rows = []
    for k, a in enumerate(axes):
        if a is None:
            leaves[k] = _everywhere(leaves[k], copied)
        elif _divides(leaves[k], a, len(devices)) and not _is(leaves[k], dealt):
            rows.append(k)
    if rows:
        sent = jax.device_put([_on_host(leaves[k]) for k in rows], dealt)
        for k, x in zip(rows, sent, strict=True):
            leaves[k] = x
    return jt.unflatten(structure, leaves)


def _divides(x, axis: int, count: int) -> bool:
    shape = jnp.shape(x)
    return axis == 0 and len(shape) > 0 and shape[0] % count == 0


@cache
def _shardings(devices: tuple) -> tuple[NamedSharding, NamedSharding]:
    """Dealt out along the first axis, and the same for all."""
    mesh = Mesh(np.array(devices), (AXIS,))
    return (
        NamedSharding(mesh, PartitionSpec(AXIS)),
        NamedSharding(mesh, PartitionSpec()),
    )


_SENT: dict[tuple, tuple] = {}  # ids of array and sharding: weak reference, the copy


def _everywhere(x, copied: NamedSharding):
    """`x` on all devices."""
    key = id(x), id(copied)
    if key in _SENT:
        return _SENT[key][1]
    if not isinstance(x, jax.Array):
        return jax.device_put(x, copied)
    if _is(x, copied):
        return x
    alive = weakref.ref(x, lambda _: _SENT.pop(key, None))
    _SENT[key] = alive, jax.device_put(_on_host(x), copied)
    return _SENT[key][1]


def _is(x, there: NamedSharding) -> bool:
    return isinstance(x, jax.Array) and x.sharding.is_equivalent_to(there, x.ndim)


def _on_host(x):
    first = jax.local_devices(backend="cpu")[0]
    here = isinstance(x, jax.Array) and x.sharding.device_set == {first}
    return np.asarray(x) if here else x


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
                return jt.map(_floating, one(*moves.put((shared, row), leaves)))

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
        like = jt.map(_floating, out)
        return out, _filled(linear(Pair(apply, transpose), at, slopes, like), out)

    return many


def _floating(x):
    """`x` if it can have a derivative, or else nothing."""
    return x if jnp.issubdtype(jnp.result_type(x), jnp.inexact) else None


def _filled(slopes, out):
    """The tangents of all of `out`: those of whole numbers are zeros of no type."""
    return jt.map(
        lambda y, t: np.zeros(jnp.shape(y), float0) if t is None else t, out, slopes
    )


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
