"""A bounded cache that computes each entry once, also across threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")


class Cache:
    """A least-recently-used cache, bounded in entries and in bytes.

    If several threads request the same key, one computes and the others wait. Errors are raised and
    not cached.

    >>> memo = Cache(entries=2)
    >>> memo.get_or_compute("a", lambda: 1), memo.get_or_compute("a", lambda: 2)
    (1, 1)
    """

    def __init__(self, entries: int = 64, size: int = 1 << 62) -> None:
        self._entries, self._most = entries, size
        self._held: OrderedDict[Hashable, Any] = OrderedDict()
        self.size = 0  # in bytes
        self._lock = threading.Lock()
        self._working: dict[Hashable, threading.Lock] = {}

    def get(self, key: Hashable) -> Any | None:
        """Return the value of a key, or None."""
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
                return self._held[key]
            return None

    def get_or_compute(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the value of a key, computed if it is not in the cache."""
        found: T | None = self.get(key)
        if found is not None:
            return found
        with self._lock:
            turn = self._working.setdefault(key, threading.Lock())
        with turn:
            meanwhile: T | None = self.get(key)
            if meanwhile is not None:
                return meanwhile
            try:
                made = compute()
                self._keep(key, made)
            finally:
                with self._lock:
                    self._working.pop(key, None)
            return made

    def _keep(self, key: Hashable, value: Any) -> None:
        with self._lock:
            self._held[key] = value
            self.size += _size_of(value)
            while len(self._held) > self._entries or (
                self.size > self._most and len(self._held) > 1
            ):
                _, dropped = self._held.popitem(last=False)
                self.size -= _size_of(dropped)


def _size_of(value: Any) -> int:
    """Return the bytes of an array, or of the arrays in a dictionary or an object."""
    if hasattr(value, "nbytes"):
        return int(value.nbytes)
    parts = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    return sum(map(_size_of, parts.values()))
