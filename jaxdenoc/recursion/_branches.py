"""Sweeps over a tree: branch by branch, or link by link where the branches are many.

A branch is a run of links without a fork: link after link, each the only child of the
one before. Within a branch a sweep is a `lax.scan`. Branches of one length that hang
equally deep depend on none of each other, so they go side by side in one scan; what
remains at the forks is a few additions.

Side by side means that a step of the scan does every branch's step, one after the
other: that keeps a batch of robots in the lanes, but is a program as long as there are
branches. Beyond `MOST_BRANCHES` those of a group are extra lanes of one step instead,
shorter to compile and slower for a batch. A tree that is mostly forks has many groups,
each a loop of its own to compile, so beyond `MOST_GROUPS` one loop takes the links one
by one and finds every link's parent by its number: dearest to run, cheap to compile at
any size.
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

from .._take import take

MOST_BRANCHES = 10
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


def _few(parent: tuple) -> bool:
    return sum(len(g.rows) for g in groups(parent)) <= MOST_BRANCHES


def _outward_by_branch(step, root, links, parent):
    ends: dict[int, PyTree] = {-1: root}  # x at the last link of every branch so far
    results: dict[int, PyTree] = {}  # y of every branch, by its first link
    few = _few(parent)
    for group in groups(parent):
        starts = [ends[p] for p in group.roots]
        found = _side_by_side(step, starts, links, group, reverse=False, few=few)
        for row, (last, y) in found:
            ends[row[-1]], results[row[0]] = last, y
    return _in_order(results, groups(parent))


def _inward_by_branch(step, zero, links, parent):
    totals: dict[int, PyTree] = {}  # Σ of the messages that have reached a link
    results: dict[int, PyTree] = {}
    few = _few(parent)
    for group in reversed(groups(parent)):
        starts = [totals.get(row[-1], zero) for row in group.rows]
        found = _side_by_side(step, starts, links, group, reverse=True, few=few)
        for p, (row, (message, y)) in zip(group.roots, found, strict=True):
            so_far, results[row[0]] = totals.get(p), y
            totals[p] = message if so_far is None else jt.map(jnp.add, so_far, message)
    return totals[-1], _in_order(results, groups(parent))


def _side_by_side(step, starts, links, group, *, reverse, few):
    """Scans along all branches of a group at a time; yields (rows, (last x, y))."""
    rows = [jt.map(lambda a: take(a, row), links) for row in group.rows]
    scan = _one_by_one if few else _as_lanes
    return zip(group.rows, scan(step, starts, rows, reverse), strict=True)


def _one_by_one(step, starts, rows, reverse):
    def steps(xs, links):
        pairs = [step(x, link) for x, link in zip(xs, links, strict=True)]
        return [x for x, _ in pairs], [y for _, y in pairs]

    return zip(*lax.scan(steps, starts, rows, reverse=reverse), strict=True)


def _as_lanes(step, starts, rows, reverse):
    def stack(axis):
        return lambda *a: jnp.stack(a, axis)

    starts, links = jt.map(stack(0), *starts), jt.map(stack(1), *rows)
    last, y = lax.scan(jax.vmap(step), starts, links, reverse=reverse)
    for k in range(len(rows)):
        yield jt.map(lambda a: a[k], last), jt.map(lambda a: a[:, k], y)


def _in_order(results: dict, groups: tuple) -> PyTree:
    """The branches' results as one row per link, in the order of the links."""
    branches = sorted((row for g in groups for row in g.rows), key=lambda row: row[0])
    back = np.argsort(np.concatenate(branches))

    def join(*parts):
        return take(jnp.concatenate(parts), back)

    return jt.map(join, *(results[row[0]] for row in branches))


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
