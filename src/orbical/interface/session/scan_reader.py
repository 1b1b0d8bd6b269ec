"""Read a scan in small parts: single rows, and passes over blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from ...store.scan_result import Scan
from .cache import Cache

Array = np.ndarray

BLOCK_ROWS = 1 << 16
BLOCK_BYTES = 1 << 23
CACHE_BYTES = 64 << 20
_NONE: tuple[Any, Array] = (None, np.empty(0))


class ScanReader:
    """The arrays of a stored scan, with a cache of what was used last.

    `row` reads the one chunk that holds a sample; `blocks` iterates over all samples in runs of
    whole chunks. Both share a cache of at most `size` bytes.
    """

    def __init__(self, scan: Scan, size: int = CACHE_BYTES) -> None:
        self.scan = scan
        self.samples = scan.record.data.samples
        self.chunk = scan.record.run.chunk
        arrays: Any = scan.arrays  # zarr types both versions of its format
        self._arrays: dict[str, Any] = {
            name: array for name, array in arrays.items() if name != "answer"
        }  # a code that only counts of equal answers can use
        self.dims: dict[str, tuple[str, ...]] = {
            name: tuple(array.metadata.dimension_names) for name, array in self._arrays.items()
        }
        self.meanings = {
            name: str(array.attrs.get("meaning", name)) for name, array in self._arrays.items()
        }
        self._size = size
        self._cache = Cache(entries=1 << 16, size=size)
        self._last: tuple[Any, Array] = _NONE

    def attributes(self, name: str) -> dict[str, Any]:
        """Return the attributes of an array; empty if it is not stored."""
        return dict(self._arrays[name].attrs) if name in self._arrays else {}

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of an array."""
        return tuple(self._arrays[name].shape)

    def dtype(self, name: str) -> np.dtype[Any]:
        """Return the data type of an array."""
        kind: np.dtype[Any] = np.dtype(self._arrays[name].dtype)
        return kind

    def by_model(self, name: str) -> bool:
        """Check whether an array has a model dimension."""
        return self.dims[name][:1] == ("model",)

    def rows_of_block(self, name: str) -> int:
        """Return the number of samples in a block: whole chunks of a few megabytes at most."""
        shape = self.shape(name)
        numbers = prod(shape[2:] if self.by_model(name) else shape[1:])
        row = max(1, numbers * self.dtype(name).itemsize)
        most = min(BLOCK_ROWS, BLOCK_BYTES // row)
        return self.chunk * max(1, most // self.chunk)

    def block(self, name: str, number: int, model: int | None, keep: bool = True) -> Array:
        """Read one block of samples, of one model if the array has a model dimension.

        With `keep=False` the block is not added to the cache.
        """
        size = self.rows_of_block(name)

        def read() -> Array:
            return self._read(name, number * size, (number + 1) * size, model)

        key = ("block", name, number, model)
        if keep:
            return self._cache.get_or_compute(key, read)
        held: Array | None = self._cache.get(key)
        return read() if held is None else held

    def blocks(self, name: str) -> Iterator[slice]:
        """Iterate over the blocks of an array: the samples that each holds."""
        size = self.rows_of_block(name)
        for start in range(0, self.samples, size):
            yield slice(start, min(start + size, self.samples))

    def span(self, name: str, rows: slice, model: int | None, keep: bool = True) -> Array:
        """Read a range of samples, which may lie in several blocks."""
        size = self.rows_of_block(name)
        numbers = range(rows.start // size, -(-rows.stop // size))
        parts = [self.block(name, number, model, keep) for number in numbers]
        first = numbers[0] * size
        joined = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return joined[rows.start - first : rows.stop - first]

    def row(self, name: str, sample: int, model: int | None) -> Array:
        """Read one sample, and no more of the disk than its chunk."""
        size = self.rows_of_block(name)
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

    def _read(self, name: str, start: int, stop: int, model: int | None) -> Array:
        rows = slice(start, min(stop, self.samples))
        return np.asarray(self._arrays[name][rows if model is None else (model, rows)])

    def _chunk_bytes(self, name: str) -> int:
        numbers: int = prod(self._arrays[name].chunks)
        return numbers * self.dtype(name).itemsize

    def whole(self, name: str) -> Array:
        """Read a small array at once, such as the labels."""
        return np.asarray(self._arrays[name][:])
