"""CIFAR-10 from lossless sheets of tiles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from orbical.datasets.folders import data_file, data_folder
from orbical.errors import InputError, unknown_name

CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
TILE = 32


def cifar10(folder: str | Path | None = None, split: str = "test") -> tuple[Tensor, Tensor]:
    """Read CIFAR-10 from sheets of tiles: the whole test set, and the training images at hand.

    A sheet is an image file (WebP or PNG, lossless) with tiles of 32 x 32 pixels, row by row;
    the sheets of a split are `SPLIT_00.webp`, `SPLIT_01.webp`, ... and the labels
    `SPLIT_labels.npy`. The last sheet may have more tiles than there are labels left.

    Args:
        folder: holds the sheets and the labels; None looks in `cifar10` under `data_folder()`.
        split: `"train"` or `"test"`.

    Returns:
        images `[n, 3, 32, 32]`, float32 in 0..1, and labels `[n]`, int64 in 0..9
        (`CLASSES` names them).

    Example:
        >>> cifar10(split="valid")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: split: unknown name 'valid' (known: test, train)
    """
    pixels, labels = cifar10_pixels(folder, split)
    images = torch.as_tensor(pixels.transpose(0, 3, 1, 2).astype(np.float32) / 255)
    return images, torch.as_tensor(labels.astype(np.int64))


def cifar10_pixels(
    folder: str | Path | None = None, split: str = "test"
) -> tuple[NDArray[np.uint8], NDArray[np.integer]]:
    """Read the same images as bytes `[n, 32, 32, 3]`, a quarter of the memory; labels `[n]`.

    Args:
        folder: as in `cifar10`.
        split: `"train"` or `"test"`.

    Returns:
        pixels, uint8, and labels, in the order of the files.

    Example:
        >>> cifar10_pixels(folder=".", split="test")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: folder: there is no file 'test_labels.npy' in '.'; ...
    """
    if split not in ("train", "test"):
        raise unknown_name("split", split, ["train", "test"])
    labels = np.load(data_file(f"{split}_labels.npy", folder, "cifar10"), allow_pickle=False)
    place = Path(folder).expanduser() if folder is not None else data_folder() / "cifar10"
    sheets = sorted([*place.glob(f"{split}_[0-9]*.webp"), *place.glob(f"{split}_[0-9]*.png")])
    tiles = [read_tiles(path) for path in sheets]
    count = sum(len(t) for t in tiles)
    if count < len(labels):
        raise InputError(
            f"folder: {len(sheets)} sheets of {split!r} in {str(place)!r} hold {count} tiles; "
            f"expected at least {len(labels)}, one a label"
        )
    return np.concatenate(tiles)[: len(labels)], labels


def read_tiles(path: Path) -> NDArray[np.uint8]:
    """Cut one sheet into its tiles `[n, 32, 32, 3]`, row by row.

    Args:
        path: an image file whose sides are multiples of 32.

    Returns:
        The tiles, uint8.

    Example:
        >>> import pathlib, tempfile
        >>> from PIL import Image
        >>> with tempfile.TemporaryDirectory() as there:
        ...     path = pathlib.Path(there) / "sheet.png"
        ...     Image.new("RGB", (64, 32)).save(path)
        ...     read_tiles(path).shape
        (2, 32, 32, 3)
    """
    from PIL import Image, UnidentifiedImageError  # here: only readers of images need it

    try:
        with Image.open(path) as image:
            sheet = np.asarray(image.convert("RGB"))
    except (OSError, UnidentifiedImageError) as broken:
        raise InputError(f"folder: {path.name!r} is not a whole image ({broken})") from broken
    rows, columns = sheet.shape[0] // TILE, sheet.shape[1] // TILE
    if sheet.shape != (rows * TILE, columns * TILE, 3):
        raise InputError(
            f"folder: {path.name!r} is {sheet.shape[1]} x {sheet.shape[0]} pixels; "
            f"expected sides that are multiples of {TILE}"
        )
    split = sheet.reshape(rows, TILE, columns, TILE, 3).transpose(0, 2, 1, 3, 4)
    return split.reshape(rows * columns, TILE, TILE, 3)
