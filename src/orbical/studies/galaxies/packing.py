"""The galaxies of both catalogues in one small file, for a machine that has no other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from orbical.datasets import efigi, galaxy_zoo

from .settings import SIZE

FILE = "galaxies.npz"
TEST_SHARE = 0.25

Split = tuple[Tensor, Tensor]


def pack(folder: Path) -> Path:
    """Write the images as bytes, split into train and test: EFIGI by a seeded draw."""
    images, labels = efigi(size=SIZE)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    tested = int(TEST_SHARE * len(labels))
    parts = {
        "efigi-test": (images[order[:tested]], labels[order[:tested]]),
        "efigi-train": (images[order[tested:]], labels[order[tested:]]),
        "galaxyzoo2-train": galaxy_zoo(split="train", size=SIZE),
        "galaxyzoo2-test": galaxy_zoo(split="validation", size=SIZE),
    }
    arrays = {}
    for name, (pixels, classes) in parts.items():
        arrays[f"{name}-pixels"] = pixels.mul(255).round().byte().numpy()
        arrays[f"{name}-labels"] = classes.numpy()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type] # its keywords are arrays
    return path


def unpack(path: Path, device: torch.device) -> dict[str, Split]:
    """Read all splits onto a device: images in 0..1 and labels by `DATA-SPLIT`."""
    with np.load(path) as file:
        arrays = {name: torch.from_numpy(file[name]).to(device) for name in file.files}
    names = sorted({name.rsplit("-", 1)[0] for name in arrays})
    return {n: (arrays[f"{n}-pixels"].float() / 255, arrays[f"{n}-labels"]) for n in names}
