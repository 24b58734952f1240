"""Who hangs from whom."""

import equinox as eqx
import numpy as np

from .._errors import ModelError


class Tree(eqx.Module):
    """Who hangs from whom. A pytree without leaves: `jit` specialises on it."""

    parent: tuple[int, ...] = eqx.field(static=True)

    def __check_init__(self):
        for i, p in enumerate(self.parent):
            if not -1 <= p < i:
                raise ModelError(
                    f"Link {i} has parent {p}, but a parent must come before its "
                    "children (-1 is the base). Sort the links from base to tip."
                )

    @property
    def is_chain(self) -> bool:
        return self.parent == tuple(range(-1, len(self.parent) - 1))

    @property
    def ancestry(self) -> np.ndarray:
        """`ancestry[j, i]` is true where j is i itself or between i and the base."""
        related = np.eye(len(self.parent), dtype=bool)
        for i, p in enumerate(self.parent):
            if p >= 0:
                related[:, i] |= related[:, p]
        return related
