"""The galaxies of all data sets in one small file, for a machine that has no other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from orbical.errors import InputError
from orbical_studies.data import efigi, galaxies, galaxy_zoo

from .settings import DATA, SIZE

TEST_SHARE = 0.25
GENERATED = (700, 300)
"""Generated galaxies to train on, and to test on: these once as they are and once mirrored."""

TELESCOPE = {"psf": 0.7, "noise": 0.05}
"""Blur in pixels and noise of the sky of generated galaxies."""

GENERATED_SIZE = 32

Split = tuple[Tensor, Tensor]


def pack(path: Path, data: Sequence[str] = DATA) -> Path:
    """Write the images of some data sets as bytes, split into train and test."""
    arrays = {}
    for name in data:
        try:
            splits = SPLITS[name]()
        except InputError as error:
            raise InputError(f"{error}; `--data generated` needs no files") from error
        for part, (pixels, classes) in splits.items():
            arrays[f"{name}-{part}-pixels"] = pixels.mul(255).round().byte().numpy()
            arrays[f"{name}-{part}-labels"] = classes.numpy()
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type] # its keywords are arrays
    return path


def packed(path: Path) -> list[str]:
    """Name the data sets in a packed file."""
    if not path.is_file():
        raise InputError(f"pack: there is no file {str(path)!r}; `pack` writes it")
    with np.load(path) as file:
        return [name for name in DATA if f"{name}-train-labels" in file.files]


def unpack(path: Path, device: torch.device) -> dict[str, Split]:
    """Read all splits onto a device: images in 0..1 and labels by `DATA-SPLIT`."""
    with np.load(path) as file:
        arrays = {name: torch.from_numpy(file[name]).to(device) for name in file.files}
    names = sorted({name.rsplit("-", 1)[0] for name in arrays})
    return {n: (arrays[f"{n}-pixels"].float() / 255, arrays[f"{n}-labels"]) for n in names}


def _efigi() -> dict[str, Split]:
    images, labels = efigi(size=SIZE)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    tested, trained = order.tensor_split([int(TEST_SHARE * len(labels))])
    return {
        "test": (images[tested], labels[tested]),
        "train": (images[trained], labels[trained]),
    }


def _galaxy_zoo() -> dict[str, Split]:
    return {
        "train": galaxy_zoo(split="train", size=SIZE),
        "test": galaxy_zoo(split="validation", size=SIZE),
    }


def _generated() -> dict[str, Split]:
    """Give spirals of both senses; a mirrored test image stands beside each, of the other sense."""
    trained, tested = GENERATED
    images, labels = galaxies(tested, size=GENERATED_SIZE, seed=1, **TELESCOPE)
    mirrored = torch.tensor([0, 2, 1])[labels]
    return {
        "train": galaxies(trained, size=GENERATED_SIZE, seed=0, **TELESCOPE),
        "test": (torch.cat([images, images.flip(-1)]), torch.cat([labels, mirrored])),
    }


SPLITS = {"efigi": _efigi, "galaxyzoo2": _galaxy_zoo, "generated": _generated}
