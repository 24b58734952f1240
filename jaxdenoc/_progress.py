"""A progress bar that comes when a wait has become long, and only to a person.

Rich is loaded when the bar is first shown: short work, and work whose output goes to a
file, never pay for it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

PATIENCE = 2.0  # seconds without a bar


@contextmanager
def progress(
    title: str,
    total: int,
    unit: str,
    *,
    show: bool = True,
    console: "Console | None" = None,
    patience: float = PATIENCE,
) -> Iterator[Callable[[int], None]]:
    """Inside, call what this gives with how many of the `total` have just been done."""
    start, done, bar = perf_counter(), 0, None
    waiting = show

    def advance(more: int) -> None:
        nonlocal done, bar, waiting
        done += more
        if bar is not None:
            bar.update(bar.task_ids[0], completed=done)
        elif waiting and perf_counter() - start > patience:
            waiting = False
            bar = _bar(title, total, done, unit, console)

    try:
        yield advance
    finally:
        if bar is not None:
            bar.stop()


def _bar(title, total, done, unit, console) -> "Progress | None":
    """Started, and `None` where nobody looks: in logs it would only be lines."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    class Rate(TextColumn):
        def render(self, task):
            speed = task.finished_speed or task.speed
            rate = f"{speed:,.0f}" if speed else "–"
            return type(super().render(task))(f"{rate} {unit}/s")

    console = Console(stderr=True) if console is None else console
    if not (console.is_terminal or console.is_jupyter):
        return None
    columns = (
        *(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()),
        *(Rate(""), TimeRemainingColumn()),
    )
    bar = Progress(*columns, console=console)
    bar.add_task(title, total=total, completed=done)
    bar.start()
    return bar
