"""The bar: when it is shown, to whom, and what it says."""

import io

import pytest
from rich.console import Console

from jaxdenoc._progress import progress


@pytest.mark.parametrize(
    "terminal, patience, show, seen",
    [
        (True, 0.0, True, True),
        (True, 60.0, True, False),
        (True, 0.0, False, False),
        (False, 0.0, True, False),
    ],
)
def test_a_bar_comes_late_and_only_to_a_terminal(terminal, patience, show, seen):
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=100)
    how = {"show": show, "console": console, "patience": patience}
    with progress("swings", 40, "motions", **how) as advance:
        for _ in range(4):
            advance(10)
    if not seen:
        assert text.getvalue() == ""
        return
    for words in ("swings", "40/40", "motions/s"):
        assert words in text.getvalue()


def test_an_error_ends_the_bar():
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=100)
    with (
        pytest.raises(KeyboardInterrupt),
        progress("swings", 40, "motions", console=console, patience=0.0) as advance,
    ):
        advance(10)
        raise KeyboardInterrupt
    assert text.getvalue().endswith("\x1b[?25h")  # the cursor is there again
