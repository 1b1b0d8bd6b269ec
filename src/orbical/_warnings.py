"""Warnings that point at the line of the user's that led to them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_BETWEEN = {"contextlib", "functools", "torch.utils._contextlib"}
"""Modules whose frames stand between those of orbical: of context managers and decorators."""

_silent: ContextVar[bool] = ContextVar("silent", default=False)


@contextmanager
def silent() -> Iterator[None]:
    """Leave out the warnings of orbical in this thread.

    `warnings.catch_warnings` would change the filters of the others too.
    """
    before = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(before)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn about the first line outside of orbical that led here.

    Python shows a warning once for each line, and the reader needs the one to change. A fixed
    level does not tell it, as the same function is reached on several ways.
    """
    if _silent.get():
        return
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _is_within(str(frame.f_globals.get("__name__"))):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _is_within(module: str) -> bool:
    return module.partition(".")[0] == "orbical" or module in _BETWEEN
