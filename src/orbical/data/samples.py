"""Data to scan: inputs with a leading sample dimension, and targets if there are any."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._imports import words_of
from .._trees import Tree, leaves, tree_map
from ..errors import InputError

_HASH_BYTES = 1 << 20


class Samples:
    """Inputs and targets, read a slice at a time, so that memory does not grow with the data.

    Args:
        data: `x`, `(x, y)` or a torch `Dataset` of such items. `x` is a tensor, an array
            (memory-mapped arrays and Zarr arrays stay on disk), a list of samples of the same
            shape, or a dictionary or tuple of these.
        names: the names of the samples, for display.

    Example:
        >>> import numpy as np
        >>> samples = Samples((np.zeros((3, 1, 8, 8)), [0, 1, 2]))
        >>> len(samples), samples.inputs(0, 2).shape
        (3, torch.Size([2, 1, 8, 8]))
    """

    def __init__(self, data: Any, names: list[str] | None = None) -> None:
        self.names = names
        self.x: Tree
        self.y: Any
        if isinstance(data, Samples):
            self.x, self.y = data.x, data.y
        elif isinstance(data, torch.utils.data.Dataset):
            self.x, self.y = _from_dataset(data)
        elif isinstance(data, tuple | list) and len(data) == 2:
            self.x, self.y = data
        else:
            self.x, self.y = data, None
        self.x = _arrays(self.x)
        self.y = None if self.y is None else _whole(self.y, "labels")  # one array, not a tree
        self.count = _count(self.x)

    def __len__(self) -> int:
        return self.count

    def inputs(self, start: int, stop: int) -> Tree:
        """Return some inputs as tensors; NumPy arrays in double precision become single."""
        return tree_map(lambda leaf: _as_tensor(leaf[start:stop], longest=4), self.x)

    def whole(self) -> Tree:
        """Return all inputs as tensors in their own precision."""
        return tree_map(lambda leaf: _as_tensor(leaf[: self.count]), self.x)

    def fingerprint(self) -> str:
        """Return a hash of inputs and targets, computed a block at a time."""
        digest = hashlib.sha256()
        for leaf in [*leaves(self.x), *([] if self.y is None else [self.y])]:
            for block in _blocks(leaf):
                digest.update(repr((block.dtype.str, block.shape[1:])).encode())
                digest.update(np.ascontiguousarray(block).data)
        return digest.hexdigest()[:16]


def _arrays(x: Tree) -> Tree:
    """Return a tree of arrays; a list is not a tree but a sequence of samples."""
    if isinstance(x, dict):
        return {key: _arrays(value) for key, value in x.items()}
    if isinstance(x, tuple):
        return tuple(_arrays(value) for value in x)
    if isinstance(x, Mapping):
        raise InputError(f"data: expected plain dictionaries, got {type(x).__name__}")
    if isinstance(x, torch.utils.data.DataLoader):
        raise InputError("data: expected a data set, got a DataLoader; pass loader.dataset")
    if isinstance(x, Tensor) or not (hasattr(x, "shape") and hasattr(x, "__getitem__")):
        return _whole(x)
    if isinstance(x, np.ma.MaskedArray):
        raise InputError("data: expected an array without a mask, got a masked array")
    return x


def _whole(x: Any, argument: str = "data") -> Any:
    """Return a tensor as it is, and anything else as a NumPy array."""
    if isinstance(x, Tensor):
        if x.layout != torch.strided or x.is_quantized or x.is_meta or x.is_complex():
            raise InputError(
                f"{argument}: expected a dense tensor of real numbers, got {_described(x)}"
            )
        return x
    try:
        if isinstance(x, list) and x and all(isinstance(one, Tensor) for one in x):
            return torch.stack(x)
        return np.asarray(x)
    except (ValueError, TypeError, RuntimeError) as error:
        raise InputError(
            f"{argument}: expected samples of the same shape, got {_described(x)}; pass fields as "
            "a dictionary or a tuple, and pad point clouds of different sizes with "
            "orbical.datasets.padded"
        ) from error


def _described(x: Any) -> str:
    if isinstance(x, Tensor):
        kind = "a quantized" if x.is_quantized else "a complex" if x.is_complex() else "a"
        where = "meta" if x.is_meta else str(x.layout).removeprefix("torch.")
        return f"{kind} tensor ({x.dtype}, {where})"
    return f"a list of {len(x)}" if isinstance(x, list) else type(x).__name__


def _as_tensor(block: Any, longest: int = 8) -> Tensor:
    """Return numbers as a tensor; floats of more than `longest` bytes become single precision."""
    if isinstance(block, Tensor):
        return block
    array = np.asarray(block)
    if array.dtype.kind not in "fiub":
        raise InputError(f"data: expected numbers, got an array of {array.dtype}")
    long = array.dtype.kind == "f" and array.dtype.itemsize > longest
    dtype = np.dtype(np.float32) if long else array.dtype.newbyteorder("=")
    # A copy, because memory-mapped data are read-only and torch would warn about sharing them.
    return torch.from_numpy(np.array(array, dtype))


def _to_numpy(block: Any) -> np.ndarray:
    if isinstance(block, Tensor):
        block = block.detach().cpu()
        block = block.float() if block.dtype == torch.bfloat16 else block  # NumPy has no such type
    return np.asarray(block)


def _count(x: Tree) -> int:
    found = list(leaves(x))
    if not found:
        raise InputError("data: expected arrays with a leading sample dimension, got nothing")
    for leaf in found:
        if len(leaf.shape) == 0:
            given = leaf if isinstance(leaf, Tensor) else leaf[()]
            raise InputError(
                f"data: expected arrays with a leading sample dimension, got {_described(given)}"
            )
    counts = sorted({int(leaf.shape[0]) for leaf in found})
    if len(counts) > 1:
        raise InputError(
            f"data: expected fields with the same number of samples, got {counts}; pad point "
            "clouds of different sizes with orbical.datasets.padded"
        )
    if counts[0] == 0:
        raise InputError("data: expected at least one sample, got none")
    return counts[0]


def _blocks(leaf: Any) -> Iterator[np.ndarray]:
    size = leaf.dtype.itemsize if isinstance(leaf, Tensor) else np.dtype(leaf.dtype).itemsize
    row_bytes = max(1, int(np.prod(leaf.shape[1:])) * size)
    step = max(1, _HASH_BYTES // row_bytes)
    for start in range(0, leaf.shape[0], step):
        yield _to_numpy(leaf[start : start + step])


class _Column:
    """One field of a map-style torch data set, read on demand."""

    def __init__(self, dataset: Any, pick: Any) -> None:
        self._dataset, self._pick = dataset, pick
        first = self._read(0)
        self.shape = (len(dataset), *first.shape)
        self.dtype = _to_numpy(first).dtype

    def __getitem__(self, index: slice) -> Tensor:
        rows = range(*index.indices(self.shape[0]))
        read = [self._read(row) for row in rows]
        for row, values in zip(rows, read, strict=True):
            if values.shape != self.shape[1:]:
                raise InputError(
                    f"data: expected samples of shape {self.shape[1:]}, the shape of the first, "
                    f"got {tuple(values.shape)} for sample {row}; pad point clouds of different "
                    "sizes with orbical.datasets.padded"
                )
        return torch.stack(read)

    def _read(self, row: int) -> Tensor:
        return _as_tensor(self._pick(_item(self._dataset, row)))


def _item(dataset: Any, row: int) -> Any:
    """Return an item of a data set, and name the sample if reading it fails."""
    try:
        return dataset[row]
    except Exception as error:
        raise InputError(
            f"data: {type(dataset).__name__} raised {type(error).__name__} for sample {row}: "
            f"{words_of(error)}"
        ) from error


def _columns(dataset: Any, first: Any, pick: Callable[[Any], Any]) -> Tree:
    """Return a column for each field of the items."""
    if isinstance(first, dict):
        return {key: _columns(dataset, value, _part(pick, key)) for key, value in first.items()}
    if isinstance(first, tuple):
        return tuple(
            _columns(dataset, value, _part(pick, place)) for place, value in enumerate(first)
        )
    return _Column(dataset, pick)


def _part(pick: Callable[[Any], Any], key: Any) -> Callable[[Any], Any]:
    return lambda item: pick(item)[key]


def _from_dataset(dataset: Any) -> tuple[Any, Any]:
    if not hasattr(dataset, "__len__") or len(dataset) == 0:
        raise InputError(
            "data: expected a data set with a length of at least 1, got "
            f"{type(dataset).__name__}, which is empty or has no length"
        )
    first = _item(dataset, 0)
    if not isinstance(first, tuple | list):
        return _columns(dataset, first, lambda item: item), None
    x = _columns(dataset, first[0], lambda item: item[0])
    if len(first) == 1:
        return x, None
    labels = _Column(dataset, lambda item: item[1])
    return x, labels[0 : labels.shape[0]]
