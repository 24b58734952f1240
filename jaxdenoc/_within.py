"""Whether what is being traced is to be part of one compiled piece (`_pieces.py`)."""

import jax

_within = jax.make_user_context(False)


def within_piece() -> bool:
    """True while a piece is traced: what it calls then needs no piece of its own."""
    return _within.value


def in_piece(inside: bool):
    """A context in which `within_piece()` is `inside`; `jax.jit` takes notice of it."""
    return _within(inside)
