"""Along which arguments a derivative is taken: those whose tangent may not be zero."""

from typing import Any, NamedTuple

import jax.tree as jt
from jax.custom_derivatives import SymbolicZero


class Moves(NamedTuple):
    """Which leaves of the arguments move, and the structure to put them back into."""

    structure: Any
    which: tuple[bool, ...]

    def of(self, tree: Any) -> list:
        """The leaves that move."""
        leaves = zip(jt.leaves(tree), self.which, strict=True)
        return [x for x, m in leaves if m]

    def put(self, tree: Any, moving: list) -> Any:
        """`tree`, with these in the place of its leaves that move."""
        new = iter(moving)
        leaves = zip(jt.leaves(tree), self.which, strict=True)
        return jt.unflatten(self.structure, [next(new) if m else x for x, m in leaves])


def moving(args: Any, tangents: Any) -> tuple[Moves, list]:
    """The moves of `args`, and the tangents of those that do, for a rule of JAX's."""
    slopes = jt.leaves(tangents, is_leaf=lambda t: isinstance(t, SymbolicZero))
    which = tuple(not isinstance(t, SymbolicZero) for t in slopes)
    found = [t for t, m in zip(slopes, which, strict=True) if m]
    return Moves(jt.structure(args), which), found
