"""The study's images in two small files, for a machine that has nothing but torch and numpy.

Digits go through LZMA as they are. Bytes of a colour photograph are first predicted from their
left, upper and upper-left neighbours (the median edge detector of JPEG-LS), red and blue from
green, and what remains goes through LZMA: lossless, half the size of the bytes, and undone in
seconds, all images at once.
"""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from orbical.errors import InputError

DATA_SETS = ("mnist", "cifar10")
SPLITS = ("train", "test")
Bytes = NDArray[np.uint8]


def _predicted(left: NDArray, up: NDArray, corner: NDArray) -> NDArray:
    low, high = np.minimum(left, up), np.maximum(left, up)
    return np.where(corner >= high, low, np.where(corner <= low, high, left + up - corner))


def encode(pixels: Bytes) -> bytes:
    """Compress images `[n, height, width, channels]` (1 or 3 channels), lossless.

    Example:
        >>> pixels = np.arange(2 * 4 * 4 * 3, dtype=np.uint8).reshape(2, 4, 4, 3)
        >>> bool((decode(encode(pixels), pixels.shape) == pixels).all())
        True
    """
    if pixels.shape[-1] == 1:
        return lzma.compress(pixels.tobytes(), preset=6)
    red, green, blue = (pixels[..., channel].astype(np.int16) for channel in range(3))
    planes = np.stack([green, red - green, blue - green])
    framed = np.pad(planes, ((0, 0), (0, 0), (1, 0), (1, 0)))
    guess = _predicted(framed[..., 1:, :-1], framed[..., :-1, 1:], framed[..., :-1, :-1])
    return lzma.compress((planes - guess).astype(np.uint8).tobytes(), preset=6)


def decode(content: bytes, shape: tuple[int, ...]) -> Bytes:
    """Undo `encode`; see there.

    Args:
        content: what `encode` gave.
        shape: of the images, `(n, height, width, channels)`.
    """
    stored = np.frombuffer(lzma.decompress(content), np.uint8)
    n, height, width, channels = shape
    if channels == 1:
        return stored.reshape(shape).copy()
    steps = np.ascontiguousarray(stored.reshape(3, n, height, width).transpose(2, 3, 0, 1))
    framed = np.zeros((height + 1, width + 1, 3, n), np.int16)
    for row in range(height):
        for column in range(width):
            above, here = framed[row], framed[row + 1]
            guess = _predicted(here[column], above[column + 1], above[column])
            value = (guess + steps[row, column]) & 255
            green = value[0]
            here[column + 1, 0] = green
            # Known modulo 256; that red = green + difference is a byte says which one it is.
            here[column + 1, 1:] = ((green + value[1:]) & 255) - green
    green, red_green, blue_green = framed[1:, 1:].transpose(2, 3, 0, 1)
    return np.stack([red_green + green, green, blue_green + green], axis=-1).astype(np.uint8)


def source(name: str, split: str) -> tuple[Bytes, Bytes]:
    """Read one split from the public files: pixels `[n, h, w, c]` and labels, as bytes.

    Args:
        name: `"mnist"` or `"cifar10"`.
        split: `"train"` or `"test"`.
    """
    if name == "cifar10":
        from orbical_studies.data.cifar10_images import cifar10_pixels

        pixels, labels = cifar10_pixels(split=split)
        return pixels, labels.astype(np.uint8)
    from orbical.datasets import full_mnist

    images, numbers = full_mnist(split=split)
    pixels = (images * 255).round().to(torch.uint8).permute(0, 2, 3, 1).numpy()
    return pixels, numbers.numpy().astype(np.uint8)


def pack(folder: Path, name: str, count: int | None = None) -> Path:
    """Write `NAME.npz` with both splits compressed.

    Args:
        folder: where to.
        name: `"mnist"` or `"cifar10"`.
        count: keep only the first so many images of each split.

    Returns:
        The file.
    """
    arrays: dict[str, NDArray] = {}
    for split in SPLITS:
        pixels, labels = (array[:count] for array in source(name, split))
        arrays[f"{split}_pixels"] = np.frombuffer(encode(pixels), np.uint8)
        arrays[f"{split}_shape"] = np.array(pixels.shape)
        arrays[f"{split}_labels"] = labels
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.npz"
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return path


def unpack(folder: Path | None, name: str) -> dict[str, tuple[Tensor, Tensor]]:
    """Read what `pack` wrote, or the public files themselves, as 32 x 32 images.

    Digits are resized from 28 to 32 pixels bilinearly, as the paper does.

    Args:
        folder: holds `NAME.npz`; None reads the public files (`orbical.datasets`).
        name: `"mnist"` or `"cifar10"`.

    Returns:
        for `"train"` and `"test"`: pixels `[n, 32, 32, c]`, uint8, and labels `[n]`, int64.
    """
    if folder is None:
        return {split: _as_tensors(*source(name, split)) for split in SPLITS}
    path = folder / f"{name}.npz"
    if not path.is_file():
        raise InputError(
            f"data: there is no file {path.name!r} in {str(folder)!r}; make it with "
            f"`python -m orbical_studies.esd pack {folder}`"
        )
    splits = {}
    with np.load(path, allow_pickle=False) as arrays:
        for split in SPLITS:
            shape = tuple(arrays[f"{split}_shape"].tolist())
            pixels = decode(arrays[f"{split}_pixels"].tobytes(), shape)
            splits[split] = _as_tensors(pixels, arrays[f"{split}_labels"])
    return splits


def _as_tensors(pixels: Bytes, labels: Bytes) -> tuple[Tensor, Tensor]:
    return _resized(torch.tensor(pixels)), torch.from_numpy(labels.astype(np.int64))


def _resized(pixels: Tensor) -> Tensor:
    if pixels.shape[1:3] == (32, 32):
        return pixels
    images = pixels.permute(0, 3, 1, 2).float()
    larger = functional.interpolate(images, size=(32, 32), mode="bilinear", align_corners=False)
    return larger.round().to(torch.uint8).permute(0, 2, 3, 1).contiguous()
