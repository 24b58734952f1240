"""The two sweeps. `links` is a pytree with one row per link, and so is what returns.

These are the only loops over links. A chain is one `lax.scan`; a tree is one for each
group of branches that can go side by side (`_branches.py`).
"""

from collections.abc import Callable

from jax import lax
from jaxtyping import PyTree

from ..model import Tree
from ._branches import inward, outward


def base_to_tip(step: Callable, root: PyTree, links: PyTree, tree: Tree) -> PyTree:
    """Outward: `x_i, y_i = step(x_parent, link_i)`, with `x = root` at the base."""
    if tree.is_chain:
        return lax.scan(step, root, links)[1]
    return outward(step, root, links, tree.parent)


def tip_to_base(step: Callable, zero: PyTree, links: PyTree, tree: Tree) -> tuple:
    """Inward: `m_i, y_i = step(Σ m_child, link_i)`. Returns `Σ m` at the base, `y`."""
    if tree.is_chain:
        return lax.scan(step, zero, links, reverse=True)
    return inward(step, zero, links, tree.parent)
