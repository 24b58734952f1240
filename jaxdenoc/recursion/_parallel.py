"""The two sweeps in O(log n) depth, for steps that can be composed.

Where what a link does to what arrives is a map of a kind that is closed under
composition (sums, rotations, affine maps, the maps P ↦ P⁺), two links are one longer
link. Pairs of links make a chain of half the length, whose results are those of every
other link; one more step gives the ones between. That is log₂ n compositions and as
many applications one after the other, n of either in all [MATH 9]. A few links go one
by one, which is about as deep as pairs of pairs, and less to compile.

A tree is a set of chains that hang from each other. Each goes on where most of the tree
goes on, so that a path from the base to a tip changes chains log₂ n times at most. All
chains that hang equally deep are one row of links to the scan: where one begins, what
was before is left out.

In what follows `compose(one, two)` is the map of `two` after that of `one`, and
`apply(step, x)` is what the map makes of x, both for rows of links at a time.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import jax.numpy as jnp
import jax.tree as jt
import numpy as np
from jax import lax
from jaxtyping import PyTree

from ..model import Tree

FEW = 8


class Level(NamedTuple):
    """Chains that hang equally deep, one behind the other, each from base to tip."""

    rows: np.ndarray
    first: np.ndarray  # whether a chain begins here


@cache
def levels(parent: tuple[int, ...]) -> tuple[Level, ...]:
    """The chains of a tree, those of one level hanging from those before."""
    beyond = np.ones(len(parent) + 1, int)  # how many links, and a slot for the base
    for i in reversed(range(len(parent))):
        beyond[parent[i]] += beyond[i]
    onward: dict[int, int] = {}  # the link with which a link's chain goes on
    for i, p in enumerate(parent):
        if p >= 0 and (p not in onward or beyond[i] > beyond[onward[p]]):
            onward[p] = i
    depth: list[int] = []
    chains: dict[int, list[list[int]]] = {}
    for i, p in enumerate(parent):
        goes_on = onward.get(p) == i
        depth.append(0 if p < 0 else depth[p] + (not goes_on))
        if not goes_on:
            chain = [i]
            while chain[-1] in onward:
                chain.append(onward[chain[-1]])
            chains.setdefault(depth[i], []).append(chain)
    return tuple(_level(chains[k]) for k in sorted(chains))


def _level(chains: list[list[int]]) -> Level:
    first = np.concatenate([np.arange(len(chain)) == 0 for chain in chains])
    return Level(np.concatenate(chains), first)


def outward(
    compose: Callable, apply: Callable, steps: PyTree, root: PyTree, tree: Tree
) -> PyTree:
    """`x_i = apply(step_i, x_parent)`, with `x = root` at the base."""
    parent = np.array(tree.parent, int)
    found = _row(root)
    place = np.zeros(len(parent) + 1, int)  # of each link in `found`; the base's is 0
    for rows, first in levels(tree.parent):
        start = take(found, place[parent[rows]])
        x = along(compose, apply, take(steps, rows), start, first)
        place[rows] = len(jt.leaves(found)[0]) + np.arange(len(rows))
        found = _join(found, x)
    return take(found, place[:-1])


def inward(
    element: Callable,
    compose: Callable,
    apply: Callable,
    links: PyTree,
    zero: PyTree,
    tree: Tree,
    send: Callable = lambda m: m,
) -> PyTree:
    """`m_i = apply(step_i, m_onward)`, what every link passes on to its parent.

    A step is made of the link and of what comes to it from other chains:
    `step_i = element(Σ send(m), link_i)`. A tip receives `zero`.
    """
    parent = np.array(tree.parent, int)
    total = _repeated(zero, len(parent) + 1)
    found, order = _repeated(zero, 0), [np.zeros(0, int)]
    for depth, (rows, first) in reversed(list(enumerate(levels(tree.parent)))):
        back, tips = rows[::-1], np.roll(first, -1)[::-1]
        steps = element(take(total, back), take(links, back))
        m = along(compose, apply, steps, _repeated(zero, len(back)), tips)
        found, order = _join(found, m), [*order, back]
        if depth > 0:
            ends = np.flatnonzero(first[::-1])
            total = _add_at(total, parent[back[ends]], send(take(m, ends)))
    return take(found, np.argsort(np.concatenate(order)))


def along(
    compose: Callable, apply: Callable, steps: PyTree, start: PyTree, first: np.ndarray
) -> PyTree:
    """`x_i = apply(step_i, x_before)`, or `apply(step_i, start_i)` at a first one."""
    if len(first) == 1:
        return apply(steps, start)
    if len(first) <= FEW:
        return _one_by_one(apply, steps, start, first)
    pairs = len(first) // 2
    one, two = slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)
    whole = compose(_cut(steps, one), _cut(steps, two))
    after_two = along(
        compose,
        apply,
        _choose(first[two], _cut(steps, two), whole),
        _choose(first[two], _cut(start, two), _cut(start, one)),
        first[one] | first[two],
    )
    rest = slice(0, None, 2)
    before = _cut(_join(_cut(start, slice(1)), after_two), slice(len(first[rest])))
    if first[1:].any():
        before = _choose(first[rest], _cut(start, rest), before)
    return _in_turn(apply(_cut(steps, rest), before), after_two)


def _one_by_one(apply, steps, start, first):
    def step(x, row):
        first, start, step = row
        x = jt.map(lambda a, b: jnp.where(first, a, b), start, x)
        x = _one(apply(_row(step), _row(x)), 0)
        return x, x

    return lax.scan(step, _one(start, 0), (jnp.asarray(first), start, steps))[1]


def of_parents(x: PyTree, root: PyTree, tree: Tree) -> PyTree:
    """What every link's parent has, `root` being the base's."""
    return take(_join(_row(root), x), np.array(tree.parent, int) + 1)


def of_children(m: PyTree, tree: Tree) -> tuple[PyTree, PyTree]:
    """Σ over the children of what they send: for every link, and for the base."""
    none = jt.map(lambda a: jnp.zeros(a.shape[1:], a.dtype), m)
    if tree.is_chain:
        total = _join(m, _row(none))
        return _cut(total, slice(1, None)), _one(total, 0)
    parent = np.array(tree.parent, int)
    total = _add_at(_repeated(none, len(parent) + 1), parent, m)
    return _cut(total, slice(-1)), _one(total, -1)


def take(x: PyTree, rows: np.ndarray) -> PyTree:
    """These rows; a slice, which is cheaper, where they are a run of them."""
    if len(rows) and np.array_equal(rows, np.arange(rows[0], rows[0] + len(rows))):
        return _cut(x, slice(int(rows[0]), int(rows[0]) + len(rows)))
    return jt.map(lambda a: a[rows], x)


def _choose(which: np.ndarray, a: PyTree, b: PyTree) -> PyTree:
    """Rows of a where it is true, else of b."""
    if not which.any():
        return b
    return jt.map(lambda a, b: jnp.where(_as_column(which, a), a, b), a, b)


def _as_column(which: np.ndarray, like) -> np.ndarray:
    return which.reshape(-1, *[1] * (like.ndim - 1))


def _in_turn(a: PyTree, b: PyTree) -> PyTree:
    """a0, b0, a1, b1, ..., where a may have one more."""

    def merge(a, b):
        n = len(b)
        pairs = jnp.stack([a[:n], b], axis=1).reshape(2 * n, *b.shape[1:])
        return jnp.concatenate([pairs, a[n:]])

    return jt.map(merge, a, b)


def _add_at(x: PyTree, rows: np.ndarray, more: PyTree) -> PyTree:
    """Behind a barrier: fused with what comes after, XLA's CPU compiler refuses it."""
    return lax.optimization_barrier(jt.map(lambda a, b: a.at[rows].add(b), x, more))


def _cut(x: PyTree, part: slice) -> PyTree:
    return jt.map(lambda a: a[part], x)


def _join(a: PyTree, b: PyTree) -> PyTree:
    return jt.map(lambda a, b: jnp.concatenate([a, b]), a, b)


def _one(x: PyTree, k: int) -> PyTree:
    return jt.map(lambda a: a[k], x)


def _row(x: PyTree) -> PyTree:
    return jt.map(lambda a: a[None], x)


def _repeated(x: PyTree, times: int) -> PyTree:
    return jt.map(lambda a: jnp.broadcast_to(a[None], (times, *a.shape)), x)
