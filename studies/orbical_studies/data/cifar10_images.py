"""CIFAR-10 and CIFAR-100 from sheets of tiles."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from orbical.datasets import data_file
from orbical.errors import InputError, check_name

TILE = 32
KINDS = ("webp", "png", "jpg")
Images = tuple[NDArray[np.uint8], NDArray[np.integer]]


def cifar10(folder: str | Path | None = None, split: str = "test") -> Images:
    """Read CIFAR-10 from sheets of tiles: the whole test set, and the training images.

    A sheet is an image file (WebP, PNG or JPEG) with tiles of 32 x 32 pixels, row by row;
    the sheets of a split are `SPLIT_00.webp`, `SPLIT_01.webp`, ... and the labels
    `SPLIT_labels.npy`. The last sheet may have more tiles than there are labels left.

    Args:
        folder: Contains the sheets and the labels; default `cifar10` in the data folder.
        split: `"train"` or `"test"`, without loss; `"more"` are further training images as JPEG.

    Returns:
        Pixels `[n, 32, 32, 3]`, uint8, and labels `[n]` in 0..9, in the order of the files.

    Example:
        >>> cifar10(split="valid")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: split: unknown name 'valid' (known: more, test, train)
    """
    check_name("split", split, ("train", "test", "more"))
    return _read("cifar10", folder, split)


def cifar100(folder: str | Path | None = None, split: str = "test") -> Images:
    """Read CIFAR-100 from sheets as those of `cifar10`; its training images are JPEG.

    Args:
        folder: Contains the sheets and the labels; default `cifar100` in the data folder.
        split: `"train"` or `"test"`.

    Returns:
        Pixels `[n, 32, 32, 3]`, uint8, and labels `[n]` in 0..99, in the order of the files.

    Example:
        >>> cifar100(split="more")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: split: unknown name 'more' (known: test, train)
    """
    check_name("split", split, ("train", "test"))
    return _read("cifar100", folder, split)


def _read(name: str, folder: str | Path | None, split: str) -> Images:
    path = data_file(f"{split}_labels.npy", folder, name)
    labels = np.load(path, allow_pickle=False)
    sheets = sorted(s for end in KINDS for s in path.parent.glob(f"{split}_[0-9]*.{end}"))
    with ThreadPoolExecutor() as pool:  # decoding releases the interpreter
        tiles = list(pool.map(_read_tiles, sheets))
    count = sum(map(len, tiles))
    if count < len(labels):
        raise InputError(
            "folder",
            f"at least {len(labels)} tiles, one for each label",
            f"{count} in {len(sheets)} sheets of {split!r} in {str(path.parent)!r}",
        )
    return np.concatenate(tiles)[: len(labels)], labels


def _read_tiles(path: Path) -> NDArray[np.uint8]:
    """Cut one sheet into its tiles `[n, 32, 32, 3]`, row by row."""
    try:
        with Image.open(path) as image:
            sheet = np.asarray(image.convert("RGB"))
    except OSError as broken:
        raise InputError(
            "folder", problem=f"{path.name!r} is not a whole image ({broken})"
        ) from broken
    height, width = sheet.shape[:2]
    if height % TILE or width % TILE:
        raise InputError(
            "folder",
            f"sheets whose sides are multiples of {TILE}",
            f"{width} x {height} pixels in {path.name!r}",
        )
    split = sheet.reshape(height // TILE, TILE, width // TILE, TILE, 3).transpose(0, 2, 1, 3, 4)
    return split.reshape(-1, TILE, TILE, 3)
