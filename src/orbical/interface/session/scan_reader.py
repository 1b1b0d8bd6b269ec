"""Read a stored scan with a cache: single rows, and passes over blocks of rows."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...store import Scan
from ...store.blocks import StoredArrays
from .cache import Cache

Array = np.ndarray

CACHE_BYTES = 64 << 20
_NONE: tuple[Any, Array] = (None, np.empty(0))


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
        self._last: tuple[Any, Array] = _NONE

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
        key = ("block", name, number, owner)
        if keep:
            return self._cache.get_or_compute(
                key, lambda: super(ScanReader, self).read(name, rows, owner)
            )
        held: Array | None = self._cache.get(key)
        return super().read(name, rows, owner) if held is None else held

    def row(self, name: str, sample: int, model: int | None) -> Array:
        """Read one sample, and no more of the disk than its chunk."""
        size, model = self.rows_of_block(name), model if self.by_model(name) else None
        held = self._cache.get(("block", name, sample // size, model))
        if held is not None:
            return np.asarray(held[sample % size])
        chunk, place = divmod(sample, self.chunk)
        if self._chunk_bytes(name) > self._size // 16:  # a few would fill the cache

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

    def _chunk_bytes(self, name: str) -> int:
        numbers: int = prod(self._arrays[name].chunks)
        return numbers * self.dtype(name).itemsize

    def whole(self, name: str) -> Array:
        """Read a small array of all models at once, such as the labels."""
        return np.asarray(self._arrays[name][:])
