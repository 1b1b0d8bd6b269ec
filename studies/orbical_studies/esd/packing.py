"""The study's images in two files, for a machine that has nothing but this package."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from orbical.datasets import full_mnist
from orbical.errors import InputError

from ..data import cifar10
from ..framework import Results
from .batches import Split, Splits
from .settings import Settings


def source(name: str, split: str) -> tuple[NDArray[np.uint8], NDArray[np.integer]]:
    """Read one split from the public files: pixels `[n, h, w, c]` as bytes, and labels."""
    if name == "cifar10":
        return cifar10(split=split)
    images, labels = full_mnist(split=split)
    pixels = (images * 255).round().to(torch.uint8).permute(0, 2, 3, 1)
    return pixels.numpy(), labels.numpy()


def pack(settings: Settings, results: Results) -> None:
    """Write a file with both splits of each data set."""
    results.work.mkdir(parents=True, exist_ok=True)
    for name in settings.data:
        arrays: dict[str, Any] = {}
        for split in ("train", "test"):
            arrays[f"{split}_pixels"], arrays[f"{split}_labels"] = source(name, split)
        np.savez_compressed(results.work / f"{name}.npz", **arrays)


def unpack(settings: Settings, results: Results, device: torch.device) -> Splits:
    """Read the splits `train` and `test` of each data set onto a device, 32 x 32 pixels."""
    found: Splits = {}
    for name in settings.data:
        path = results.work / f"{name}.npz"
        if not path.is_file():
            raise InputError(f"work: there is no file {str(path)!r}; run the step 'pack'")
        with np.load(path) as file:
            arrays = {key: torch.from_numpy(file[key][: settings.images]) for key in file.files}
        found[name] = {
            split: Split(
                _resized(arrays[f"{split}_pixels"]).to(device),
                arrays[f"{split}_labels"].long().to(device),
            )
            for split in ("train", "test")
        }
    return found


def _resized(pixels: Tensor) -> Tensor:
    """Enlarge digits from 28 to 32 pixels bilinearly, as the paper does."""
    if pixels.shape[1:3] == (32, 32):
        return pixels
    images = pixels.permute(0, 3, 1, 2).float()
    larger = functional.interpolate(images, size=(32, 32), mode="bilinear", align_corners=False)
    return larger.round().to(torch.uint8).permute(0, 2, 3, 1).contiguous()
