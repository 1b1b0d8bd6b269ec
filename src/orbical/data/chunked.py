"""Arrays that are stored in chunks, read so that each chunk is opened once."""

from __future__ import annotations

from typing import Any

import numpy as np

_MOST_BYTES = 1 << 28


class Chunked:
    """An array of Zarr, dask or xarray whose last chunks are kept for the next slice.

    A scan reads slices in order. Without this, each of them would decompress or compute all the
    chunks that it lies in anew.

    Args:
        array: the array.
        edges: where its chunks begin along the first dimension, and the end of the last.
    """

    def __init__(self, array: Any, edges: np.ndarray) -> None:
        self._array, self._edges = array, edges
        self._kept: tuple[int, int, np.ndarray] | None = None
        self.shape, self.dtype = tuple(array.shape), array.dtype

    def __getitem__(self, rows: slice) -> np.ndarray:
        start, stop, _ = rows.indices(self.shape[0])
        if self._kept is None or not self._kept[0] <= start <= stop <= self._kept[1]:
            first = int(self._edges[np.searchsorted(self._edges, start, "right") - 1])
            last = int(self._edges[np.searchsorted(self._edges, stop)])
            self._kept = (first, last, self._read(first, last))
        first, _, block = self._kept
        return block[start - first : stop - first]

    def _read(self, first: int, last: int) -> np.ndarray:
        """Read whole chunks; what is kept of them already is not read again."""
        kept = self._kept
        if kept is None or not kept[0] <= first < kept[1] < last:
            return np.asarray(self._array[first:last])
        return np.concatenate([kept[2][first - kept[0] :], np.asarray(self._array[kept[1] : last])])

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: another process keeps its own chunks."""
        return {**self.__dict__, "_kept": None}


def in_chunks(array: Any) -> Any:
    """Return an array that keeps its last chunks, if it has chunks of several samples."""
    chunks = getattr(array, "chunks", None)
    if not isinstance(chunks, tuple) or len(array.shape) == 0:
        return array
    sizes = chunks[0]
    if isinstance(sizes, tuple):  # dask writes the size of each chunk
        edges = np.cumsum([0, *sizes])
    else:
        edges = np.minimum(np.arange(0, array.shape[0] + sizes, sizes), array.shape[0])
    row_bytes = int(np.prod(array.shape[1:])) * np.dtype(array.dtype).itemsize
    largest = int(np.diff(edges).max(initial=0))
    return Chunked(array, edges) if largest > 1 and largest * row_bytes <= _MOST_BYTES else array
