"""The operators that others are made of: blocks on the diagonal, blocks to the parent,
sweeps, and the joints' axes. Stacked vectors have six numbers per link, or one per
velocity."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..model import Tree
from ..recursion import base_to_tip, tip_to_base
from ..spatial import Vec3, skew
from ._algebra import Operator

Blocks = Float[Array, "n 6 6"]


class OfBlocks(Operator):
    """An operator made of one 6×6 block per link."""

    blocks: Blocks

    @property
    def shape(self):
        return 6 * len(self.blocks), 6 * len(self.blocks)

    @property
    def dtype(self):
        return self.blocks.dtype


class Diagonal(OfBlocks):
    """The blocks on the diagonal."""

    def apply(self, x):
        return _times(self.blocks, x.reshape(-1, 6)).ravel()

    @property
    def T(self):
        return Diagonal(_transposed(self.blocks))


class AlongTree(OfBlocks):
    """An operator whose blocks go from links to their parents, or, transposed, back."""

    tree: Tree
    outward: bool = eqx.field(static=True, default=False)

    @property
    def T(self):
        return type(self)(self.blocks, self.tree, not self.outward)


class ToParent(AlongTree):
    """E_φ or E_ψ: block i stands in the row of i's parent. Transposed, its column."""

    def apply(self, x):
        x = x.reshape(-1, 6)
        parent = np.array(self.tree.parent)
        has_one = np.flatnonzero(parent >= 0)
        if self.outward:
            y = _times(_transposed(self.blocks[has_one]), x[parent[has_one]])
            return jnp.zeros_like(x).at[has_one].set(y).ravel()
        y = _times(self.blocks[has_one], x[has_one])
        return jnp.zeros_like(x).at[parent[has_one]].add(y).ravel()


class Sweep(AlongTree):
    """(1 - E)⁻¹ = 1 + E + E² + …: an inward sweep. Transposed, an outward one.

    y = x + Σ E y over the children ,   y = x + Eᵀ y_parent
    """

    def apply(self, x):
        x = x.reshape(-1, 6)
        zero = jnp.zeros_like(x[0])

        def out(y, link):
            E, x = link
            y = x + E.T @ y
            return y, y

        def inward(total, link):
            E, x = link
            y = x + total
            return E @ y, y

        links = self.blocks, x
        if self.outward:
            return base_to_tip(out, zero, links, self.tree).ravel()
        return tip_to_base(inward, zero, links, self.tree)[1].ravel()


class AtJoints(Operator):
    """One six-vector per velocity, at the link that it moves: H, or G transposed."""

    vectors: Float[Array, "v 6"]
    link: tuple[int, ...] = eqx.field(static=True)  # of each velocity
    n_links: int = eqx.field(static=True)

    @property
    def shape(self):
        return len(self.link), 6 * self.n_links

    @property
    def dtype(self):
        return self.vectors.dtype

    def apply(self, x):
        return jnp.sum(self.vectors * x.reshape(-1, 6)[np.array(self.link)], axis=1)

    @property
    def T(self):
        return FromJoints(self.vectors, self.link, self.n_links)


class FromJoints(Operator):
    """`AtJoints` transposed: each velocity's six-vector, added up at its link."""

    vectors: Float[Array, "v 6"]
    link: tuple[int, ...] = eqx.field(static=True)
    n_links: int = eqx.field(static=True)

    @property
    def shape(self):
        return 6 * self.n_links, len(self.link)

    @property
    def dtype(self):
        return self.vectors.dtype

    def apply(self, x):
        y = jnp.zeros((self.n_links, 6), self.dtype)
        return y.at[np.array(self.link)].add(self.vectors * x[:, None]).ravel()

    @property
    def T(self):
        return AtJoints(self.vectors, self.link, self.n_links)


class Pivots(Operator):
    """D: a number per joint, and before them the block of a free base."""

    base: Float[Array, "6 6"] | None
    joints: Float[Array, " k"]

    @property
    def shape(self):
        size = len(self.joints) + (0 if self.base is None else 6)
        return size, size

    @property
    def dtype(self):
        return self.joints.dtype

    def apply(self, x):
        if self.base is None:
            return self.joints * x
        return jnp.concatenate([self.base @ x[:6], self.joints * x[6:]])

    @property
    def inverse(self) -> "Pivots":
        base = None if self.base is None else jnp.linalg.inv(self.base)
        return Pivots(base, 1 / self.joints)

    @property
    def T(self):
        base = None if self.base is None else self.base.T
        return Pivots(base, self.joints)


def _times(blocks, x):
    return jnp.einsum("nij,nj->ni", blocks, x)


def _transposed(blocks):
    return jnp.swapaxes(blocks, 1, 2)


def crf(V):
    """crf(V) = [[ω̃, ṽ], [0, ω̃]] of every link."""
    w, v = (skew(Vec3.of(x)).array for x in (V[:, :3], V[:, 3:]))
    top = jnp.concatenate([w, v], axis=2)
    return jnp.concatenate([top, jnp.concatenate([v * 0, w], axis=2)], axis=1)
