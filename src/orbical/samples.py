"""Data to scan: inputs with a leading sample dimension, and the truth where it is known."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .errors import InputError
from .trees import Tree, leaves, tree_map

_HASH_BYTES = 1 << 20


class Samples:
    """Inputs and truth, read a slice at a time, so that memory does not grow with the data.

    Takes `x`, `(x, y)` or a torch `Dataset` of such pairs. `x` is a tensor, an array (memory-mapped
    arrays and Zarr arrays stay on disk) or a dictionary or tuple of them. `names` are those of the
    samples, for display.

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
        self.x = tree_map(_as_array, self.x)
        self.y = None if self.y is None else _as_array(self.y)  # the truth is one array, no tree
        self.count = _count(self.x)

    def __len__(self) -> int:
        return self.count

    def inputs(self, start: int, stop: int) -> Tree:
        """Read some inputs as tensors; double precision from NumPy becomes single."""
        return tree_map(lambda leaf: _as_tensor(leaf[start:stop]), self.x)

    def fingerprint(self) -> str:
        """Hash the contents of inputs and truth, a block at a time."""
        digest = hashlib.sha256()
        for leaf in [*leaves(self.x), *([] if self.y is None else [self.y])]:
            for block in _blocks(leaf):
                digest.update(repr((block.dtype.str, block.shape[1:])).encode())
                digest.update(np.ascontiguousarray(block).data)
        return digest.hexdigest()[:16]


def _as_array(leaf: Any) -> Any:
    if isinstance(leaf, Mapping):
        raise InputError("data: nested mappings must be plain dictionaries")
    return leaf if hasattr(leaf, "shape") and hasattr(leaf, "__getitem__") else np.asarray(leaf)


def _as_tensor(block: Any) -> Tensor:
    if isinstance(block, Tensor):
        return block
    array = np.asarray(block)
    if array.dtype == np.float64:
        array = array.astype(np.float32)
    if array.dtype.kind not in "fiub":
        raise InputError(f"data: an array of {array.dtype} given, numbers expected")
    # A copy, because memory-mapped data are read-only and torch would warn about sharing them.
    return torch.from_numpy(np.array(array))


def _count(x: Tree) -> int:
    found = list(leaves(x))
    if not found or any(len(leaf.shape) == 0 for leaf in found):
        raise InputError("data: arrays with a leading sample dimension expected")
    counts = sorted({int(leaf.shape[0]) for leaf in found})
    if len(counts) > 1:
        raise InputError(
            f"data: fields with {counts} samples given, one number expected (point clouds of "
            "unequal sizes are padded with a mask: orbical.datasets.padded)"
        )
    if counts[0] == 0:
        raise InputError("data: no samples given, at least one expected")
    return counts[0]


def _blocks(leaf: Any) -> Iterator[np.ndarray]:
    if isinstance(leaf, Tensor):
        leaf = leaf.detach().cpu().numpy()
    row_bytes = max(1, int(np.prod(leaf.shape[1:])) * np.dtype(leaf.dtype).itemsize)
    step = max(1, _HASH_BYTES // row_bytes)
    for start in range(0, leaf.shape[0], step):
        yield np.asarray(leaf[start : start + step])


class _Column:
    """One field of a map-style torch data set, read on demand."""

    def __init__(self, dataset: Any, pick: Any) -> None:
        self._dataset, self._pick = dataset, pick
        first = self._read(0)
        self.shape = (len(dataset), *first.shape)
        self.dtype = np.asarray(first).dtype

    def __getitem__(self, index: slice) -> Tensor:
        rows = range(*index.indices(self.shape[0]))
        return torch.stack([self._read(row) for row in rows])

    def _read(self, row: int) -> Tensor:
        return torch.as_tensor(np.asarray(self._pick(self._dataset[row])))


def _from_dataset(dataset: Any) -> tuple[Any, Any]:
    if not hasattr(dataset, "__len__") or len(dataset) == 0:
        raise InputError("data: a data set with a length of at least one expected")
    first = dataset[0]
    if not isinstance(first, tuple | list):
        return _Column(dataset, lambda item: item), None
    labels = _Column(dataset, lambda item: item[1])
    return _Column(dataset, lambda item: item[0]), labels[0 : labels.shape[0]]
