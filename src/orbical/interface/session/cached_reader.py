"""Read a stored scan with a cache, and take turns at passes over all of its samples."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import partial
from math import prod
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from ...store import FINISHED, Scan, StoredArrays

Array = np.ndarray

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
        self._held: OrderedDict[Hashable, object] = OrderedDict()
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


def _size_of(value: object) -> int:
    """Return the bytes of an array, or of the arrays in a dictionary or an object."""
    if hasattr(value, "nbytes"):
        return int(value.nbytes)
    parts = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    return sum(map(_size_of, parts.values()))


class ReaderTurns:
    """Turns at reading a scan.

    Concurrent passes would all finish late. A patient pass takes a turn for each block of samples
    and lets others go first. A pass waits for nothing else during its turn.

    Within a turn matrix products use one thread: blocks are small, and on a busy machine threads
    that wait for each other cost twenty times what they save.

    >>> passes = ReaderTurns()
    >>> with passes.turn():
    ...     "reading"
    'reading'
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._busy = False
        self._urgent = 0
        self._libraries = ThreadpoolController()

    @contextmanager
    def turn(self, patient: bool = False) -> Iterator[None]:
        """Wait for a turn and hold it."""
        with self._changed:
            self._urgent += not patient
            self._changed.wait_for(lambda: not self._busy and not (patient and self._urgent))
            self._busy = True
        try:
            with self._libraries.limit(limits=1, user_api="blas"):
                yield
        finally:
            with self._changed:
                self._busy = False
                self._urgent -= not patient
                self._changed.notify_all()


CACHE_BYTES = 64 << 20
_NONE: tuple[object, Array] = (None, np.empty(0))


class ScanReader(StoredArrays):
    """The arrays of a stored scan, with a cache of what was used last.

    `row` reads the one chunk that holds a sample; `read` reads runs of whole chunks. Both share a
    cache of at most `size` bytes.
    """

    def __init__(self, scan: Scan, size: int = CACHE_BYTES) -> None:
        super().__init__(scan)
        self.dims.pop("answer", None)  # a code that only counts of equal answers can use
        self._size = size
        self._cache = Cache(entries=1 << 16, size=size)
        self._last: tuple[object, Array] = _NONE
        self._finished: set[tuple[int, int, int]] = set()

    def responses(self, name: str, rows: slice, model: int, keep: bool = True) -> Array:
        """Read responses as others do; where a score is known to have no NaN it is not read again.

        Classes, and what is right or wrong, are missing where that score is.
        """
        start, stop, _ = rows.indices(self.samples)
        place = start, stop, model

        def read(stored: str) -> Array:
            if stored != FINISHED or name == FINISHED:
                return self.read(stored, rows, model, keep)
            if place in self._finished:
                return np.zeros((stop - start, len(self.group)), np.float32)
            score = self.read(stored, rows, model, keep)
            if not np.isnan(score).any():
                self._finished.add(place)
            return score

        return self.as_numbers(name, read)

    def read(
        self, name: str, rows: slice = slice(None), model: int | None = None, keep: bool = True
    ) -> Array:
        """Read a range of samples, which may lie in several blocks."""
        size = self.rows_of_block(name)
        start, stop, _ = rows.indices(self.samples)
        numbers = range(start // size, -(-stop // size))
        parts = [self._block(name, number, model, keep) for number in numbers]
        joined = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return joined[start - numbers[0] * size : stop - numbers[0] * size]

    def _block(self, name: str, number: int, model: int | None, keep: bool) -> Array:
        size = self.rows_of_block(name)
        rows = slice(number * size, min((number + 1) * size, self.samples))
        owner = model if self.by_model(name) else None
        key, read = ("block", name, number, owner), partial(super().read, name, rows, owner)
        if keep:
            return self._cache.get_or_compute(key, read)
        held: Array | None = self._cache.get(key)
        return read() if held is None else held

    def row(self, name: str, sample: int, model: int | None) -> Array:
        """Read one sample, and no more of the disk than its chunk."""
        size, model = self.rows_of_block(name), model if self.by_model(name) else None
        held = self._cache.get(("block", name, sample // size, model))
        if held is not None:
            return np.asarray(held[sample % size])
        chunk, place = divmod(sample, self.chunk)
        chunk_bytes = prod(self._arrays[name].chunks) * self.dtype(name).itemsize
        if chunk_bytes > self._size // 16:  # a few would fill the cache

            def read() -> Array:
                return np.array(self._large_chunk(name, chunk, model)[place])

            return self._cache.get_or_compute(("row", name, sample, model), read)
        key = ("chunk", name, chunk, model)
        rows = self._cache.get_or_compute(key, lambda: self.scan.read(name, chunk, model))
        return np.asarray(rows[place])

    def _large_chunk(self, name: str, number: int, model: int | None) -> Array:
        """Read a chunk that is too large for the cache; the last one is kept for its neighbors."""
        key = (name, number, model)
        last, chunk = self._last
        if last != key:
            chunk = self.scan.read(name, number, model)
            self._last = (key, chunk) if chunk.nbytes <= self._size else _NONE
        return chunk

    def whole(self, name: str) -> Array:
        """Read a small array of all models at once, such as the labels."""
        return np.asarray(self._arrays[name][:])
