"""Read arrays of a scan a block at a time: some samples at all elements, or all samples at some.

A chunk on disk holds some samples at all elements. A block of samples is therefore read once; each
block of elements reads the whole store, so it is as large as memory allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import xarray as xr

READ_VALUES = 1 << 20
"""Values of one array that are read at once."""
HELD_VALUES = 1 << 24
"""Values of one array that a block of elements holds."""


def read_together(*arrays: xr.DataArray) -> list[np.ndarray]:
    """Read several arrays in one pass over the store."""
    from dask.base import compute

    return [np.asarray(part) for part in compute(*(array.data for array in arrays))]


def sample_blocks(*arrays: xr.DataArray) -> Iterator[tuple[slice, list[np.ndarray]]]:
    """Yield runs of samples, of whole chunks if possible, and what the arrays hold there.

    >>> import xarray as xr
    >>> values = xr.DataArray(np.arange(6.0).reshape(3, 2), dims=("sample", "element"))
    >>> [(rows, part.shape) for rows, (part,) in sample_blocks(values)]
    [(slice(0, 3, None), (3, 2))]
    """
    for rows in _runs_of_samples(arrays[0]):
        yield rows, read_together(*(array.isel(sample=rows) for array in arrays))


def element_blocks(*arrays: xr.DataArray) -> Iterator[tuple[slice, list[np.ndarray]]]:
    """Yield runs of elements, and what arrays `[sample, element]` hold there, turned to `[K, N]`.

    >>> import xarray as xr
    >>> values = xr.DataArray(np.arange(6.0).reshape(3, 2), dims=("sample", "element"))
    >>> [(run, part.tolist()) for run, (part,) in element_blocks(values)]
    [(slice(0, 2, None), [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]])]
    """
    samples, elements = (arrays[0].sizes[dim] for dim in ("sample", "element"))
    for run in runs(elements, samples, HELD_VALUES):
        chosen = [array.isel(element=run).transpose("sample", "element") for array in arrays]
        held = [np.empty(one.shape[::-1], one.dtype) for one in chosen]
        for rows, parts in sample_blocks(*chosen):
            for whole, part in zip(held, parts, strict=True):
                whole[:, rows] = part.T
        yield run, held


def runs(count: int, each: int, most: int) -> Iterator[slice]:
    """Split a number of rows of `each` values into runs of at most `most` values, or of one row.

    >>> [(run.start, run.stop) for run in runs(5, 10, 25)]
    [(0, 2), (2, 4), (4, 5)]
    """
    step = max(1, most // max(1, each))
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))


def _runs_of_samples(values: xr.DataArray) -> Iterator[slice]:
    total = values.sizes["sample"]
    each = values.size // max(1, total)
    chunks = (values.chunksizes or {}).get("sample")
    if chunks is None:  # in memory
        yield from runs(total, each, READ_VALUES)
        return
    start = stop = 0
    for size in chunks:
        if stop > start and (stop + size - start) * each > READ_VALUES:
            yield slice(start, stop)
            start = stop
        stop += size
    yield slice(start, stop)
