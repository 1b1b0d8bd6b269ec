"""Arrays as data, and arrays that are stored in chunks, each of which is opened once."""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._imports_and_paths import FETCHED, local_file
from .._trees import Tree, leaves, tree_map
from ..errors import InputError
from .source import Batch, Source, data_hash, padded, samples_differ_in_length

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

    def __getstate__(self) -> dict[str, object]:
        """Return what is pickled: another process keeps its own chunks."""
        return {**self.__dict__, "_kept": None}


def _chunked_source_array(array: Any) -> Any:
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


_REMEDY = "pass fields as a dictionary or a tuple"
_OF_LABELS = "pass several labels as 0 or 1 for each, as scikit-learn's MultiLabelBinarizer does"


class Arrays(Source):
    """Inputs with a leading sample dimension, and targets if there are any.

    Args:
        x: a tensor, an array, a list of samples (point clouds of different sizes are padded), or a
            dictionary or tuple of these.
        y: the targets.
    """

    def __init__(self, x: object, y: object = None) -> None:
        self._x = _tree_of_arrays(x)
        self.labels = None if y is None else whole_array(y, "labels")  # one array, not a tree
        self._count = _number_of_samples_in_arrays(self._x)
        self.in_memory = all(type(leaf) in (Tensor, np.ndarray) for leaf in leaves(self._x))
        if self.labels is not None and self.labels.ndim == 0:  # the task checks all others
            check_array_source_labels(self.labels, self._count)

    def __len__(self) -> int:
        return self._count

    def read(self, start: int, stop: int) -> Batch:
        """Return a slice of every array."""
        some = tree_map(lambda leaf: _unmapped_rows_of_array_source(leaf[start:stop]), self._x)
        return some, None if self.labels is None else self.labels[start:stop]

    def stamp(self) -> str | None:
        """Return a stamp if all arrays are mapped from files for reading only."""
        places = [ArrayFilePart.of(leaf) for leaf in leaves(self._x)]
        if not all(place is not None and place.read_only for place in places):
            return None
        parts = [place.stamp() for place in places if place]
        return data_hash([*parts, *_bytes_of_labels(self.labels)])

    def __getstate__(self) -> dict[str, object]:
        """Return what is pickled: of arrays mapped from files only the place in the file."""
        return {
            **self.__dict__,
            "_x": tree_map(lambda leaf: ArrayFilePart.of(leaf) or leaf, self._x),
        }

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._x = tree_map(
            lambda leaf: leaf.open() if isinstance(leaf, ArrayFilePart) else leaf, self._x
        )


@dataclass(frozen=True)
class ArrayFilePart:
    """The part of a file that an array is mapped from."""

    path: Path
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype
    read_only: bool
    url: str | None = None

    @classmethod
    def of(cls, array: object) -> ArrayFilePart | None:
        """Return the place of a contiguous memory-mapped array, or view; None for any other."""
        whole: object = array
        while isinstance(whole, np.ndarray) and not isinstance(whole.base, mmap.mmap):
            whole = whole.base
        if not isinstance(whole, np.memmap) or not isinstance(array, np.ndarray):
            return None
        changed = whole.mode == "c"  # a private copy
        if whole.filename is None or changed or not array.flags.c_contiguous:
            return None
        # The offset of a slice is that of the whole, so it is found from the addresses.
        offset = whole.offset + array.ctypes.data - whole.ctypes.data
        path = Path(whole.filename)
        url = FETCHED.get(path)
        return cls(path, offset, array.shape, array.dtype, whole.mode == "r", url)

    def open(self) -> np.ndarray:
        """Map the part again; on another machine a file at a URL is fetched again."""
        path = self.path if self.url is None else local_file("data", self.url)
        return np.memmap(path, self.dtype, "r", self.offset, self.shape)

    def stamp(self) -> str:
        """Return the size and time of the file, and the place in it."""
        about = self.path.stat()
        place = (self.offset, self.shape, self.dtype.str)
        return f"{about.st_size} {about.st_mtime_ns} {place}"


def _unmapped_rows_of_array_source(rows: Any) -> Any:
    """Copy rows of a mapped file and let its pages go, or memory would grow with the file."""
    place = ArrayFilePart.of(rows) if isinstance(rows, np.memmap) else None
    if place is None or not place.read_only or not hasattr(mmap, "MADV_DONTNEED"):
        return rows
    copied = np.array(rows)
    page = mmap.ALLOCATIONGRANULARITY
    begin = place.offset - (rows.offset - rows.offset % page)  # in the part that is mapped
    begin -= begin % page
    rows._mmap.madvise(mmap.MADV_DONTNEED, begin, place.offset % page + rows.nbytes)
    return copied


def _bytes_of_labels(labels: object) -> list[str | bytes]:
    if labels is None:
        return ["no labels"]
    array = to_numpy(labels)
    return [array.dtype.str, np.ascontiguousarray(array).tobytes()]


def _tree_of_arrays(x: object) -> Tree:
    """Return a tree of arrays; a list is not a tree but a sequence of samples."""
    if isinstance(x, dict):
        return {key: _tree_of_arrays(value) for key, value in x.items()}
    if isinstance(x, tuple):
        return tuple(_tree_of_arrays(value) for value in x)
    if isinstance(x, Mapping):
        remedy = "pass its path" if hasattr(x, "files") else ""
        raise InputError("data", "plain dictionaries", type(x), remedy=remedy)
    if isinstance(x, list) and samples_differ_in_length(x):
        return padded(x, "data")
    if isinstance(x, Tensor) or not (hasattr(x, "shape") and hasattr(x, "__getitem__")):
        return whole_array(x)
    if isinstance(x, np.ma.MaskedArray):
        raise InputError("data", "an array without a mask", "a masked array")
    return _chunked_source_array(x)


def whole_array(x: object, argument: str = "data") -> Any:
    """Return a tensor as it is, and anything else as a NumPy array."""
    if isinstance(x, Tensor):
        if x.layout != torch.strided or x.is_quantized or x.is_meta or x.is_complex():
            raise InputError(argument, "a dense tensor of real numbers", _array_source_in_words(x))
        return x
    try:
        if isinstance(x, list) and x and all(isinstance(one, Tensor) for one in x):
            return torch.stack(x)
        return np.asarray(x)
    except (ValueError, TypeError, RuntimeError) as error:
        raise InputError(
            argument,
            "samples of the same shape",
            _array_source_in_words(x),
            remedy=_OF_LABELS if argument == "labels" else _remedy(x),
        ) from error


def check_array_source_labels(labels: Any, count: int) -> None:
    """Refuse targets that are not one for each sample."""
    if isinstance(labels, np.ndarray) and isinstance(fields := labels[()], Mapping):
        raise InputError(
            "labels",
            f"one for each of {count} samples",
            f"fields {sorted(fields)}",
            remedy="energies and forces of molecules are for the task atoms",
        )
    if labels is not None and (labels.ndim == 0 or len(labels) != count):
        given = str(len(labels)) if labels.ndim else "a single number"
        raise InputError("labels", f"one for each of {count} samples", given)


def _array_source_in_words(x: object) -> str:
    if isinstance(x, Tensor):
        kind = "a quantized" if x.is_quantized else "a complex" if x.is_complex() else "a"
        where = "meta" if x.is_meta else str(x.layout).removeprefix("torch.")
        return f"{kind} tensor ({x.dtype}, {where})"
    if not isinstance(x, list):
        return type(x).__name__
    shapes = list(dict.fromkeys(tuple(one.shape) for one in x if hasattr(one, "shape")))
    some = " and ".join(map(str, shapes[:2]))
    return f"a list of {len(x)}" + (f" with shapes such as {some}" if len(shapes) > 1 else "")


def _remedy(x: object) -> str:
    images = isinstance(x, list) and all(len(getattr(one, "shape", ())) == 3 for one in x)
    if isinstance(x, list) and all(hasattr(one, "get_atomic_numbers") for one in x):
        return "pass task='atoms' for molecules"
    return "resize or crop images to one size" if images else _REMEDY


def _number_of_samples_in_arrays(x: Tree) -> int:
    found = list(leaves(x))
    if not found:
        raise InputError("data", "arrays with a leading sample dimension", "nothing")
    for leaf in found:
        if len(leaf.shape) == 0:
            given = leaf if isinstance(leaf, Tensor) else leaf[()]
            raise InputError(
                "data", "arrays with a leading sample dimension", _array_source_in_words(given)
            )
    counts = sorted({int(leaf.shape[0]) for leaf in found})
    if len(counts) > 1:
        raise InputError(
            "data",
            "fields with the same number of samples",
            counts,
            remedy="pad point clouds of different sizes with orbical.datasets.padded",
        )
    if counts[0] == 0:
        raise InputError("data", "at least one sample", "none")
    return counts[0]


def source_array_as_tensor(block: object, longest: int = 8) -> Tensor:
    """Return numbers as a tensor; floats of more than `longest` bytes become single precision."""
    if isinstance(block, Tensor):
        return block
    array = np.asarray(block)
    if array.dtype.kind not in "fiub":
        remedy = "pass real and imaginary parts as channels" if array.dtype.kind == "c" else ""
        raise InputError("data", "numbers", f"an array of {array.dtype}", remedy=remedy)
    long = array.dtype.kind == "f" and array.dtype.itemsize > longest
    dtype = np.dtype(np.float32) if long else array.dtype.newbyteorder("=")
    # A copy, because memory-mapped data are read-only and torch would warn about sharing them.
    return torch.from_numpy(np.array(array, dtype))


def to_numpy(block: object) -> np.ndarray:
    """Return numbers as an array; NumPy has no bfloat16, which becomes single precision."""
    if isinstance(block, Tensor):
        block = block.detach().cpu()
        block = block.float() if block.dtype == torch.bfloat16 else block
    return np.asarray(block)
