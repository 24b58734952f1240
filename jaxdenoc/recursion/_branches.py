"""Sweeps over a tree: branch by branch, or link by link where the branches are many.

A branch is a run of links without a fork: link after link, each the only child of the
one before. Within a branch a sweep is a `lax.scan`. Branches of one length that hang
equally deep depend on none of each other, so they go side by side, as extra lanes of
one scan; what remains at the forks is a few additions.

Each group of branches is a loop of its own to compile. A tree that is mostly forks has
many, so beyond `MOST_GROUPS` one loop takes the links one by one instead and finds
every link's parent by its number: dearer to run, cheap to compile at any size.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.tree as jt
import numpy as np
from jax import lax
from jaxtyping import PyTree

MOST_GROUPS = 8


class Group(NamedTuple):
    """Branches of one length at one depth, to be swept side by side."""

    rows: np.ndarray  # (branches, length): the links, base to tip
    roots: tuple[int, ...]  # the link each branch hangs from, or -1


@cache
def groups(parent: tuple[int, ...]) -> tuple[Group, ...]:
    """The branches of a tree, deeper groups after those that they hang from."""
    n_children = np.bincount(np.array(parent) + 1, minlength=len(parent) + 1)[1:]
    branches: list[list[int]] = []
    at: list[int] = []  # the branch of each link
    depth: list[int] = []  # of each branch, in branches
    for i, p in enumerate(parent):
        if p >= 0 and n_children[p] == 1:
            branches[at[p]].append(i)
            at.append(at[p])
        else:
            depth.append(depth[at[p]] + 1 if p >= 0 else 0)
            at.append(len(branches))
            branches.append([i])
    alike: dict[tuple[int, int], list[list[int]]] = {}
    for d, branch in zip(depth, branches, strict=True):
        alike.setdefault((d, len(branch)), []).append(branch)
    return tuple(
        Group(np.array(rows), tuple(parent[branch[0]] for branch in rows))
        for _, rows in sorted(alike.items())
    )


def outward(step: Callable, root: PyTree, links: PyTree, parent: tuple) -> PyTree:
    """`x_i, y_i = step(x_parent, link_i)`; returns y."""
    many = len(groups(parent)) > MOST_GROUPS
    return (_outward_by_link if many else _outward_by_branch)(step, root, links, parent)


def inward(step: Callable, zero: PyTree, links: PyTree, parent: tuple) -> tuple:
    """`m_i, y_i = step(Σ m_child, link_i)`; returns `Σ m` at the base, and y."""
    many = len(groups(parent)) > MOST_GROUPS
    return (_inward_by_link if many else _inward_by_branch)(step, zero, links, parent)


def _outward_by_branch(step, root, links, parent):
    ends: dict[int, PyTree] = {-1: root}  # x at the last link of every branch so far
    results = []
    for group in groups(parent):
        start = _stack([ends[p] for p in group.roots])
        last, y = _side_by_side(step, start, _take(links, group.rows), reverse=False)
        for k, row in enumerate(group.rows):
            ends[row[-1]] = _one(last, k)
        results.append(y)
    return _in_order(results, parent)


def _inward_by_branch(step, zero, links, parent):
    totals: dict[int, PyTree] = {}  # Σ of the messages that have reached a link
    results = []
    for group in reversed(groups(parent)):
        start = _stack([totals.get(row[-1], zero) for row in group.rows])
        message, y = _side_by_side(step, start, _take(links, group.rows), reverse=True)
        for k, p in enumerate(group.roots):
            so_far, one = totals.get(p), _one(message, k)
            totals[p] = one if so_far is None else jt.map(jnp.add, so_far, one)
        results.append(y)
    return totals[-1], _in_order(results[::-1], parent)


def _side_by_side(step, start, links, *, reverse):
    """Scans over the second axis, all branches (the first axis) at a time."""
    links = jt.map(lambda a: jnp.moveaxis(a, 0, 1), links)
    return lax.scan(jax.vmap(step), start, links, reverse=reverse)


def _one(x: PyTree, k: int) -> PyTree:
    return jt.map(lambda a: a[k], x)


def _stack(xs: list) -> PyTree:
    return jt.map(lambda *a: jnp.stack(a), *xs)


def _take(links: PyTree, rows: np.ndarray) -> PyTree:
    return jt.map(lambda a: a[rows], links)


def _in_order(results: list, parent: tuple) -> PyTree:
    """The groups' results (length, branches, ...) as one row per link, in order."""
    order = np.concatenate([g.rows.T.ravel() for g in groups(parent)])
    back = np.argsort(order)

    def join(*parts):
        return jnp.concatenate([a.reshape(-1, *a.shape[2:]) for a in parts])[back]

    return jt.map(join, *results)


def _outward_by_link(step, root, links, parent):
    def visit(x, row):
        i, p, link = row
        here, y = step(jt.map(lambda x: x[p], x), link)
        return jt.map(lambda x, h: x.at[i].set(h), x, here), y

    return lax.scan(visit, *_slots(root, links, parent))[1]


def _inward_by_link(step, zero, links, parent):
    def visit(total, row):
        i, p, link = row
        message, y = step(jt.map(lambda t: t[i], total), link)
        return jt.map(lambda t, m: t.at[p].add(m), total, message), y

    total, y = lax.scan(visit, *_slots(zero, links, parent), reverse=True)
    return jt.map(lambda t: t[-1], total), y


def _slots(x, links, parent):
    """A slot per link, and a last one, -1, for the base."""
    n = len(parent)
    slots = jt.map(lambda x: jnp.broadcast_to(x, (n + 1, *jnp.shape(x))), x)
    return slots, (jnp.arange(n), jnp.array(parent), links)
