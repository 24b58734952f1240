"""A data set of motions: a folder of shards, of which one at a time is in memory."""

import operator
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._errors import ModelError
from .._npz import Format
from ..io import restore
from ..model import Model
from ._folder import fingerprint, read_manifest
from ._trajectory import Trajectory

_FORMAT = Format("jaxdenoc.Shard", 1, "about", "a shard of motions", "`jd.generate`")
_MODEL = "model."  # before the names of those of the model's numbers that vary
_AGAIN = "Call jd.generate again as before: it keeps what is whole and makes the rest."


class Dataset:
    """The motions that `jd.generate` wrote to a folder.

        data = jd.Dataset("swings")
        data[7]                      one Trajectory
        data[100:200], data[[3, 1]]  a batch of them
        for batch in data.batches(): shard after shard, one in memory at a time

    `len` is the number of motions, `request` what was asked for. A shard is read with
    its checksum.
    """

    def __init__(self, folder: str | os.PathLike):
        self.folder = Path(folder)
        request = read_manifest(self.folder)
        if request is None:
            raise ModelError(
                f"{self.folder} holds no data set: it has no manifest.json. Give a "
                "folder that `jd.generate` wrote."
            )
        self.request = request
        self._held: tuple[int, dict[str, np.ndarray]] = -1, {}

    def __len__(self) -> int:
        return self.request["count"]

    def __repr__(self) -> str:
        missing = len(self.missing())
        state = f"{missing} of them missing" if missing else "all there"
        return (
            f"Dataset('{self.folder}': {len(self)} motions of "
            f"{self.request['samples']} samples, {len(self.shards)} shards, {state})"
        )

    @property
    def shards(self) -> list[Path]:
        """The files, in the order of their motions, whether or not they are there."""
        return [self.folder / name_of(s) for s in range(shards_of(self.request))]

    @cached_property
    def model(self) -> Model:
        """The robot, before any randomisation."""
        return restore(self.folder / "model.npz")

    def model_of(self, k: int) -> Model:
        """The robot of motion k."""
        rows = self._rows(np.array([self._number(k)]))
        own = {s.removeprefix(_MODEL): x[0] for s, x in rows.items() if _own(s)}
        return with_leaves(self.model, own)

    def __getitem__(self, index: int | slice | Sequence[int] | np.ndarray):
        """One motion, or a batch: of a slice, or of numbers in any order."""
        if isinstance(index, slice):
            return self._motions(np.arange(*index.indices(len(self))))
        if np.ndim(index):
            return self._motions(np.array([self._number(k) for k in index], int))  # type: ignore[union-attr]
        motion = self._motions(np.array([self._number(index)]))
        return jax.tree.map(lambda x: x[0], motion)

    def __iter__(self) -> Iterator[Trajectory]:
        """Motion after motion."""
        return (self[k] for k in range(len(self)))

    def batches(self) -> Iterator[Trajectory]:
        """Shard after shard, each a batch of motions."""
        for s, path in enumerate(self.shards):
            yield Trajectory.of_arrays(self._shard(s), path.name)

    def missing(self) -> list[Path]:
        """The shards that have not been made yet."""
        return [path for path in self.shards if not path.exists()]

    def is_whole(self, s: int) -> bool:
        """Whether shard s is there as it was written."""
        return is_whole(self.folder, self.request, s)

    def verify(self) -> None:
        """Read everything again; an error names every file that is not as written."""
        bad = [] if self._model_is_whole() else ["model.npz"]
        for s, path in enumerate(self.shards):
            if not path.exists():
                bad.append(f"{path.name} (missing)")
            elif not self.is_whole(s):
                bad.append(path.name)
        if bad:
            raise ModelError(
                f"In {self.folder}, {len(bad)} of {len(self.shards) + 1} files are not "
                f"whole: {', '.join(bad)}. {_AGAIN}"
            )

    def _model_is_whole(self) -> bool:
        try:
            restore(self.folder / "model.npz")
        except ModelError:
            return False
        return True

    def _number(self, k) -> int:
        k = operator.index(k)
        if not -len(self) <= k < len(self):
            raise IndexError(f"motion {k} of a data set of {len(self)} motions.")
        return k % len(self)

    def _motions(self, numbers: np.ndarray) -> Trajectory:
        return Trajectory.of_arrays(self._rows(numbers), str(self.folder))

    def _rows(self, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """The rows of these motions, from one shard after the other."""
        size = self.request["shard"]
        of_shard = numbers // size
        if not len(numbers):  # of no motion, the shapes
            return {name: x[:0] for name, x in self._shard(0).items()}
        shards = np.unique(of_shard)
        parts = []
        for s in shards:
            at = numbers[of_shard == s] - s * size
            parts.append({name: x[at] for name, x in self._shard(int(s)).items()})
        order = np.argsort(np.argsort(of_shard, kind="stable"), kind="stable")
        return {s: np.concatenate([part[s] for part in parts])[order] for s in parts[0]}

    def _shard(self, s: int) -> dict[str, np.ndarray]:
        if self._held[0] != s:
            self._held = s, read_shard(self.folder, self.request, s)
        return self._held[1]


def name_of(s: int) -> str:
    return f"shard-{s:06d}.npz"


def shards_of(request: dict[str, Any]) -> int:
    return -(-request["count"] // request["shard"])


def rows_of_shard(request: dict[str, Any], s: int) -> range:
    """The numbers of its motions."""
    first = s * request["shard"]
    return range(first, min(first + request["shard"], request["count"]))


def write_shard(
    folder: Path,
    request: dict[str, Any],
    s: int,
    motions: Trajectory,
    own: dict[str, Any],
) -> None:
    """The motions of shard s, cut to their number, and the `own` of their robots."""
    rows = rows_of_shard(request, s)
    arrays = motions.arrays() | {_MODEL + k: np.asarray(x) for k, x in own.items()}
    arrays = {name: x[: len(rows)] for name, x in arrays.items()}
    _FORMAT.write(folder / name_of(s), _about(request, s), arrays)


def read_shard(folder: Path, request: dict[str, Any], s: int) -> dict[str, np.ndarray]:
    """Its arrays, or an error if they are not those of this shard of this request."""
    path = folder / name_of(s)
    if not path.exists():
        raise ModelError(f"{path} has not been made yet. {_AGAIN}")
    head, arrays = _FORMAT.read(path)
    if any(head.get(key) != value for key, value in _about(request, s).items()):
        raise ModelError(f"{path} belongs to another data set. {_AGAIN}")
    return arrays


def is_whole(folder: Path, request: dict[str, Any], s: int) -> bool:
    """Whether shard s is there as it was written."""
    try:
        read_shard(folder, request, s)
    except ModelError:
        return False
    return True


def _about(request: dict[str, Any], s: int) -> dict[str, Any]:
    rows = rows_of_shard(request, s)
    about = {"request": fingerprint(request), "first": rows.start}
    return about | {"motions": len(rows)}


def _own(name: str) -> bool:
    return name.startswith(_MODEL)


def leaves_of(model: Model) -> dict[str, Any]:
    """The model's numbers by their dotted paths."""
    leaves = jax.tree_util.tree_leaves_with_path(model)
    return {".".join(k.name for k in path): x for path, x in leaves}


def with_leaves(model: Model, own: dict[str, Any]) -> Model:
    """The model with these of its numbers."""
    leaves = [jnp.asarray(own.get(name, x)) for name, x in leaves_of(model).items()]
    return jax.tree.unflatten(jax.tree.structure(model), leaves)
