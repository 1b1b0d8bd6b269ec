"""A progress bar for data that take long to make, on the error stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def counted(label: str, total: int, shown: bool) -> Iterator[Callable[[], None]]:
    """Show how many of a total are done; call what is given after each one.

    Example:
        >>> with counted("molecules", 2, shown=False) as advance:
        ...     advance()
    """
    if not shown:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        number = bar.add_task("", total=total)
        yield lambda: bar.advance(number)
