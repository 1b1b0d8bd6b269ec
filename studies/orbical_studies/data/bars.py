"""A progress bar for data that take long to make, on the error stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def counted(label: str, total: int, shown: bool) -> Iterator[Callable[[], None]]:
    """Show how many of a total are done; call the function it yields after each one.

    Example:
        >>> with counted("molecules", 2, shown=False) as advance:
        ...     advance()
    """
    if not shown:
        yield lambda: None
        return
    from rich import console, progress

    kinds = (progress.BarColumn, progress.MofNCompleteColumn, progress.TimeRemainingColumn)
    columns = (progress.TextColumn(label), *(kind() for kind in kinds))
    with progress.Progress(*columns, console=console.Console(stderr=True)) as bar:
        number = bar.add_task("", total=total)
        yield lambda: bar.advance(number)
