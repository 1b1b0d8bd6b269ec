"""The files of the study's images, for a machine that has nothing but this package.

Both data sets are copied as they are published: nothing that reads faster is as small.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from orbical.datasets import data_folder, full_mnist
from orbical.errors import InputError

from ..data import cifar10, cifar100
from ..framework import Results
from .batches import Split, Splits
from .settings import Settings

READERS = {"mnist": full_mnist, "cifar10": cifar10, "cifar100": cifar100}
FILES = {"mnist": "*-ubyte.gz", "cifar10": "*_*", "cifar100": "*_*"}


def pack(settings: Settings, results: Results) -> None:
    """Copy the files of both splits of each data set, and those of the fronts."""
    for name in dict.fromkeys((*settings.data, *settings.fronts)):
        folder = results.work / name
        folder.mkdir(parents=True, exist_ok=True)
        for file in (data_folder() / name).glob(FILES[name]):
            shutil.copy(file, folder)


def unpack(settings: Settings, results: Results, device: torch.device) -> Splits:
    """Read the splits `train` and `test` of each data set onto a device, 32 x 32 pixels."""
    kinds = {"train": ("train",), "test": ("test",)}
    return {n: read(results.work / n, kinds, device, settings.images) for n in settings.data}


def unpack_all(
    work: Path, data: str, device: torch.device, images: int | None = None
) -> dict[str, Split]:
    """Read all training and test images of a data set of the fronts onto a device."""
    train = ("train", "more") if data == "cifar10" else ("train",)
    return read(work / data, {"train": train, "test": ("test",)}, device, images)


def read(
    folder: Path, kinds: Mapping[str, Iterable[str]], device: torch.device, images: int | None
) -> dict[str, Split]:
    """Read packed images, by the name of a split what its files hold one after another."""
    if not folder.is_dir():
        raise InputError(
            "work",
            problem=f"there is no folder {str(folder)!r}",
            remedy="run the step 'pack' first",
        )
    found = {}
    for split, parts in kinds.items():
        every = [READERS[folder.name](folder, part) for part in parts]
        pixels, labels = (torch.cat([torch.as_tensor(one[i]) for one in every]) for i in (0, 1))
        found[split] = Split(
            _resized(pixels[:images]).to(device), labels[:images].long().to(device)
        )
    return found


def _resized(images: Tensor) -> Tensor:
    """Return bytes `[n, 32, 32, c]`; digits are enlarged bilinearly, as the paper does."""
    if images.dtype == torch.uint8:
        return images
    larger = functional.interpolate(
        (255 * images).round(), size=(32, 32), mode="bilinear", align_corners=False
    )
    return larger.round().to(torch.uint8).permute(0, 2, 3, 1).contiguous()
