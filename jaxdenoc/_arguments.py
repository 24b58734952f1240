"""The arguments of a batch: which of their leaves are mapped, shared, or no numbers.

All of it but the length of the batch follows from the structure of the arguments and
the types of their leaves. So it is read once for each, and a call costs a look-up.
"""

from functools import cache, lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.tree as jt
import numpy as np
from jax.core import Tracer
from jax.tree_util import keystr

NUMBERS = (jax.Array, Tracer, np.ndarray, np.generic, bool, int, float, complex)


class Axes:
    """`in_axes` as `jax.vmap` takes them, for arguments of any structure."""

    def __init__(self, in_axes: Any):
        self.given = tuple(in_axes) if isinstance(in_axes, list) else in_axes
        self._layout = cache(self._new_layout)
        self._look_up = lru_cache(maxsize=64)(self._look)

    def read(self, *args) -> "Arguments":
        leaves, structure = jt.flatten(args)
        layout, traced = self._look_up(structure, tuple(map(type, leaves)))
        if not layout.fixed:
            return Arguments(leaves, layout.known, traced)
        fixed = tuple(leaves[k] for k in layout.fixed)
        arrays = [x for k, x in enumerate(leaves) if k not in layout.fixed]
        return Arguments(arrays, Known(layout, fixed), traced)

    def _look(self, structure, kinds: tuple[type, ...]):
        fixed = tuple(k for k, kind in enumerate(kinds) if not _is_number(kind))
        layout = self._layout(structure, fixed)
        for k in fixed:
            if layout.of_leaves[k] is not None:
                raise ValueError(
                    f"in_axes maps {_name(structure, k)}, which is no array but a "
                    f"{kinds[k].__name__}. Give None for it: it is then the same for "
                    "the whole batch."
                )
        return layout, any(issubclass(kind, Tracer) for kind in kinds)

    def _new_layout(self, structure, fixed: tuple[int, ...]) -> "Layout":
        args = jt.unflatten(structure, [0] * structure.num_leaves)
        try:
            full = jt.broadcast(self.given, args, is_leaf=lambda x: x is None)
        except ValueError as error:
            raise ValueError(
                f"in_axes {self.given} does not fit the {len(args)} arguments: give "
                "one axis (or None) for all, or one for each, as for jax.vmap."
            ) from error
        of_leaves = jt.leaves(full, is_leaf=lambda x: x is None)
        return Layout(structure, of_leaves, fixed)


class Layout:
    """The structure of the arguments, and what becomes of each of their leaves.

    There is one object for each, so that to compare them costs nothing.
    """

    def __init__(self, structure, of_leaves: list[int | None], fixed: tuple[int, ...]):
        self.structure = structure
        self.of_leaves = of_leaves
        self.fixed = fixed  # the leaves that are no numbers
        self.axes = [a for k, a in enumerate(of_leaves) if k not in fixed]
        self.known = Known(self, ())


class Known(NamedTuple):
    """What a program is compiled for: the layout, the leaves that are no numbers."""

    layout: Layout
    fixed: tuple

    def whole(self, shared, row) -> tuple:
        """The arguments for one robot again."""
        shared, row, fixed = iter(shared), iter(row), iter(self.fixed)
        leaves = [
            next(fixed if k in self.layout.fixed else shared if a is None else row)
            for k, a in enumerate(self.layout.of_leaves)
        ]
        return jt.unflatten(self.layout.structure, leaves)


class Arguments(NamedTuple):
    arrays: list
    known: Known
    traced: bool  # under a transformation of JAX


def _is_number(kind: type) -> bool:
    return issubclass(kind, NUMBERS) or hasattr(kind, "__jax_array__")


def _name(structure, k: int) -> str:
    paths = jt.leaves_with_path(jt.unflatten(structure, range(structure.num_leaves)))
    where, *path = paths[k][0]
    return f"argument {where.idx}{keystr(tuple(path))}"


def batch_size(arrays, axes) -> int:
    sizes = set()
    for x, a in zip(arrays, axes, strict=True):
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
