"""Spread independent work over the processors, in threads of this process.

NumPy and torch let other threads run while they sort, draw and sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")

MOST = 4
"""The most threads: each holds the arrays of what it works on."""


def in_threads(work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Return `work(item)` of each item, in their order, by as many threads as torch may use.

    In each of them torch uses one thread, so that results have the same bits for any number of
    threads, and work that spreads its own parts does them one after the other.

    >>> in_threads(abs, [-2, 3, -1])
    [2, 3, 1]
    """
    allowed = torch.get_num_threads()
    if allowed == 1:
        return [work(item) for item in items]
    try:
        with ThreadPoolExecutor(min(MOST, allowed), "orbical", _use_one_thread) as pool:
            return [*pool.map(work, items)]
    finally:
        torch.set_num_threads(allowed)  # for threads that begin later


def _use_one_thread() -> None:
    torch.get_num_threads()  # a thread takes the common number where it first needs one
    torch.set_num_threads(1)
