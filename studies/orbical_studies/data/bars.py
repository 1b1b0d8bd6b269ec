"""A progress bar for data that take long to make, on the error stream."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def tracked(items: Sequence[T], label: str, shown: bool) -> Iterable[T]:
    """Iterate over items, with a progress bar if it is to be shown.

    Example:
        >>> list(tracked("ab", "letters", shown=False))
        ['a', 'b']
    """
    from rich import console, progress

    screen = console.Console(stderr=True)
    return progress.track(items, label, console=screen, disable=not shown)
