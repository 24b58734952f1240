"""Data sets of rollouts, larger than memory and longer than a process lives.

Motion k is drawn from the seed and k alone, so that it does not matter where a run was
cut into shards, interrupted, or shared out to devices and hosts. A shard is one file,
there whole or not at all. A run is therefore taken up again by starting it again.
"""

import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree as jt
import numpy as np

from .._batched import batched
from .._errors import ModelError
from .._progress import progress as progress_bar
from ..io import restore, save
from ..model import Model, random_state
from . import _folder
from ._dataset import (
    Dataset,
    is_whole,
    leaves_of,
    name_of,
    rows_of_shard,
    shards_of,
    write_shard,
)
from ._described import described
from ._rollout import rollout

_KEYS = "threefry2x32"  # whatever JAX is set to: the numbers are the seed's alone
_ARRAY = object()


def generate(
    folder: str | os.PathLike,
    model: Model,
    tau: Any,
    dt: float,
    *,
    count: int,
    steps: int | None = None,
    seed: int = 0,
    start: Callable | None = None,
    torques: Callable | None = None,
    randomize: Callable | None = None,
    shard: int = 1024,
    share: tuple[int, int] | None = None,
    devices: Sequence | None = None,
    progress: bool = True,
    **options: Any,
) -> Dataset:
    """`count` rollouts of the robot, written to a folder, `shard` of them to a file.

        data = jd.generate("swings", model, None, 0.01, count=10**6, torques=torques)

    The joint forces are `tau`, as of `jd.rollout` (a table, or a policy of (t, q, qd)
    with `steps`; None is no force), or each motion's own: `torques(model, key)` gives
    a table or a policy. `start(model, key)` gives (q0, qd0), by default
    `jd.random_state`; `randomize(model, key)` gives each motion a robot of its own,
    whose changed numbers are saved. `options` go to `jd.rollout`.

    Motion k takes its keys for start, robot and forces, in this order, from
    `split(fold_in(key(seed), k), 3)`; other shards, devices or hosts change it by
    rounding at most. Called again with the same request, `generate` keeps the files
    that are whole and makes the others; with another one it refuses the folder. Two
    shards are in memory at a time. `share=(k, n)` makes only every n-th shard from the
    k-th on, for n processes at a time on as many hosts; it is set by itself where JAX
    runs on several of them.
    """
    if tau is not None and torques is not None:
        raise ValueError("give either tau, for all, or torques, for each motion.")
    for name, number in {"count": count, "shard": shard}.items():
        if not 1 <= number < 2**32:
            raise ValueError(f"{name} is {number}; it can be 1 to 2³² - 1.")
    motion = Motion(
        model, tau, torques, start or random_state, randomize, float(dt), steps, options
    )
    request = _request(motion, count, shard, seed)
    folder, share = Path(folder), _checked(share)
    _folder.made(folder)
    with _folder.alone(folder, share):
        _set_up(folder, model, request)
        mine = range(share[0], shards_of(request), share[1])
        devices = tuple(jax.local_devices() if devices is None else devices)
        _make(folder, motion, request, mine, devices, progress)
    return Dataset(folder)


class Motion(eqx.Module):
    """How a motion is drawn from a key."""

    model: Model
    tau: Any
    torques: Any
    start: Any
    randomize: Any
    dt: float
    steps: int | None
    options: dict[str, Any]

    def __call__(self, key):
        """The motion, and the numbers of its robot that are its own."""
        of_start, of_model, of_force = jr.split(key, 3)
        robot = self._robot(of_model)
        q, qd = self.start(robot, of_start)
        tau = self._force(robot, of_force)
        run = rollout(robot, q, qd, tau, self.dt, steps=self.steps, **self.options)
        before, after = leaves_of(self.model), leaves_of(robot)
        return run, {s: x for s, x in after.items() if x is not before[s]}

    def _robot(self, key) -> Model:
        if self.randomize is None:
            return self.model
        robot = self.randomize(self.model, key)
        if _kind(robot) != _kind(self.model):
            raise ModelError(
                "randomize(model, key) gave a robot of other joints, names, shapes or "
                "types. Change numbers only, for instance with eqx.tree_at."
            )
        return robot

    def _force(self, robot: Model, key):
        if self.torques is not None:
            return self.torques(robot, key)
        if self.tau is not None:
            return self.tau
        if self.steps is None:
            raise ValueError("without forces, say how many `steps` there are.")
        return jnp.zeros((self.steps, robot.nv), robot.mass.dtype)


def _request(motion: Motion, count: int, shard: int, seed: int) -> dict[str, Any]:
    """All that determines the numbers. Traces the motion, and so finds its errors."""
    from .. import __version__  # here, because the package is not there before

    run, _ = eqx.filter_eval_shape(motion, jr.key(seed, impl=_KEYS))
    return {
        "count": count,
        "shard": shard,
        "steps": motion.steps,
        "samples": run.t.shape[0],
        "dt": motion.dt,
        "seed": seed,
        "dtype": run.q.dtype.name,
        "model": described(motion.model),
        "tau": described(motion.tau),
        "torques": described(motion.torques),
        "start": described(motion.start),
        "randomize": described(motion.randomize),
        "options": {k: described(x) for k, x in sorted(motion.options.items())},
        "jaxdenoc": __version__,
        "jax": jax.__version__,
    }


def _checked(share: tuple[int, int] | None) -> tuple[int, int]:
    k, n = share or (jax.process_index(), jax.process_count())
    if not 0 <= k < n:
        raise ValueError(f"share is ({k}, {n}); give (k, n) with 0 <= k < n.")
    return k, n


def _set_up(folder: Path, model: Model, request: dict[str, Any]) -> None:
    """The manifest and the model, there and those of this request."""
    with _folder.in_turn(folder):
        there = _folder.read_manifest(folder)
        if there is not None:
            _folder.same_request(folder, there, request)
        _folder.without_strays(folder, (_folder.MANIFEST, "model.npz"))
        if there is None:
            _folder.write_manifest(folder, request)
        try:
            restore(folder / "model.npz")
        except ModelError:
            save(model, folder / "model.npz")


def _make(folder, motion, request, mine: range, devices, show: bool) -> None:
    """Every shard of `mine` that is not there whole."""
    program, arrays = _compiled(motion, devices)
    root = np.asarray(jr.key_data(jr.key(request["seed"], impl=_KEYS)))
    rows = min(request["shard"], request["count"])  # always as many: one program

    def started(s: int) -> tuple[int, Any]:
        if is_whole(folder, request, s):
            return s, None
        k = (s * request["shard"] + np.arange(rows)).astype(np.uint32)
        return s, program(arrays, root, k)

    sizes = {s: len(rows_of_shard(request, s)) for s in mine}
    _folder.without_strays(folder, {name_of(s) for s in mine})
    title, total = folder.name, sum(sizes.values())
    with progress_bar(title, total, "motions", show=show) as advance:
        # by pairs, so that the devices make one shard while the last one is written
        for (s, found), _ in pairwise(chain(map(started, mine), [(-1, None)])):
            if found is not None:
                write_shard(folder, request, s, *found)
                _folder.settled(folder)
            advance(sizes[s])


def _kind(model: Model) -> tuple:
    """What all robots of a data set have in common."""
    return jt.structure(model), [(x.shape, x.dtype) for x in jt.leaves(model)]


def _compiled(motion: Motion, devices: tuple) -> tuple[Callable, list]:
    """The program for a batch of motions, and the arrays that it wants."""
    leaves, structure = jt.flatten(motion)
    given = [isinstance(x, jax.Array | np.ndarray) for x in leaves]
    arrays = [x for x, a in zip(leaves, given, strict=True) if a]
    rest = tuple(_ARRAY if a else x for x, a in zip(leaves, given, strict=True))
    return _program(structure, rest, devices), arrays


@lru_cache(maxsize=8)
def _program(structure, rest: tuple, devices: tuple) -> Callable:
    def one(arrays, root, k):
        found = iter(arrays)
        leaves = [next(found) if x is _ARRAY else x for x in rest]
        key = jr.fold_in(jr.wrap_key_data(root, impl=_KEYS), k)
        return jt.unflatten(structure, leaves)(key)

    return batched(one, in_axes=(None, None, 0), devices=devices)
