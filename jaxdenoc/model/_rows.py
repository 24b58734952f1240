"""Rows: one per velocity, which is what the sweeps travel along.

A joint of one degree of freedom is one row, and its row is its link. A joint of d
degrees of freedom is d rows at one place: the columns of H one after the other, with
nothing between them that has mass. Eliminating its d×d block D_i = L Lᵀ is then d
scalar steps of the same sweep, and no algorithm has a second case for it. The columns
stand in reverse, the last one nearest to the base, because the sweep eliminates from
the tip: that makes L the lower triangular factor of Cholesky.
"""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from .._take import take
from ._tree import Tree

DEGREES = {"revolute": 1, "continuous": 1, "prismatic": 1, "helical": 1, "free": 6}
COORDINATES = DEGREES | {"free": 7}


class Rows(eqx.Module):
    """The rows of a mechanism: their tree, their links, their places in `qd`."""

    tree: Tree
    link: tuple[int, ...] = eqx.field(static=True)  # of each row
    body: tuple[int, ...] = eqx.field(
        static=True
    )  # of each link, the row it moves with
    velocity: tuple[int, ...] = eqx.field(static=True)  # of each row, its index in `qd`

    @property
    def are_links(self) -> bool:
        return len(self.link) == len(self.body)

    def from_velocities(self, x: Array) -> Array:
        return x if self.are_links else take(x, self.velocity)

    def to_velocities(self, x: Array) -> Array:
        return x if self.are_links else take(x, np.argsort(self.velocity))

    def from_links(self, x: PyTree) -> PyTree:
        """What belongs to a link, given to each of its joint's rows."""
        return x if self.are_links else _take(x, self.link)

    def from_bodies(self, x: PyTree) -> PyTree:
        """What a link has, inertia or wrench: at its last row, and zero before."""
        if self.are_links:
            return x
        last = np.zeros(len(self.link), bool)
        last[list(self.body)] = True
        return jax.tree.map(
            lambda a: a * jnp.asarray(last, a.dtype), self.from_links(x)
        )

    def to_links(self, x: PyTree) -> PyTree:
        """What a row has come to, read off at the row each link moves with."""
        return x if self.are_links else _take(x, self.body)


def _take(x: PyTree, rows: tuple[int, ...]) -> PyTree:
    return jax.tree.map(lambda a: take(a, rows), x)


@cache
def rows_of(parent: tuple[int, ...], kinds: tuple[str, ...]) -> Rows:
    up, link, body, velocity = [], [], [], []
    for i, (p, kind) in enumerate(zip(parent, kinds, strict=True)):
        first, d = len(link), DEGREES[kind]
        up += [body[p] if p >= 0 else -1, *range(first, first + d - 1)]
        link += [i] * d
        velocity += range(first + d - 1, first - 1, -1)
        body.append(first + d - 1)
    return Rows(Tree(tuple(up)), tuple(link), tuple(body), tuple(velocity))
