"""The galaxies of all data sets in one small file, for a machine that has no other."""

from __future__ import annotations

import torch
from torch import Tensor

from ..data import efigi, galaxies, galaxy_zoo
from ..framework import Results
from ..framework.packs import read_pack, write_pack
from .settings import Settings

FILE = "galaxies.npz"
SIZE, GENERATED_SIZE = 64, 32
TEST_SHARE = 0.25
# Generated galaxies to train on, and to test on: these once as they are and once mirrored.
GENERATED = (700, 300)
# Blur in pixels and noise of the sky of generated galaxies.
TELESCOPE = {"psf": 0.7, "noise": 0.05}
Split = tuple[Tensor, Tensor]


def pack(settings: Settings, results: Results) -> None:
    """Write the images of the data sets as bytes, split into train and test."""
    arrays = {}
    for name in settings.data:
        for part, (pixels, classes) in SPLITS[name]().items():
            arrays[f"{name}-{part}-pixels"] = pixels.mul(255).round().byte().numpy()
            arrays[f"{name}-{part}-labels"] = classes.numpy()
    write_pack(results.work / FILE, arrays)


def unpack(results: Results, device: torch.device) -> dict[str, Split]:
    """Read all splits onto a device: images in 0..1 and labels by `DATA-SPLIT`."""
    packed = read_pack(results.work / FILE)
    arrays = {name: torch.from_numpy(values).to(device) for name, values in packed.items()}
    names = sorted({name.rsplit("-", 1)[0] for name in arrays})
    return {n: (arrays[f"{n}-pixels"].float() / 255, arrays[f"{n}-labels"]) for n in names}


def _efigi() -> dict[str, Split]:
    images, labels = efigi(size=SIZE)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    parts = order.tensor_split([int(TEST_SHARE * len(labels))])
    return {n: (images[i], labels[i]) for n, i in zip(("test", "train"), parts, strict=True)}


def _galaxy_zoo() -> dict[str, Split]:
    names = {"train": "train", "test": "validation"}
    return {part: galaxy_zoo(split=name, size=SIZE) for part, name in names.items()}


def _generated() -> dict[str, Split]:
    """Generate spirals of both senses; each test image has its mirror image beside it."""
    trained, tested = GENERATED
    images, labels = galaxies(tested, size=GENERATED_SIZE, seed=1, **TELESCOPE)
    mirrored = torch.tensor([0, 2, 1])[labels]
    return {
        "train": galaxies(trained, size=GENERATED_SIZE, seed=0, **TELESCOPE),
        "test": (torch.cat([images, images.flip(-1)]), torch.cat([labels, mirrored])),
    }


SPLITS = {"efigi": _efigi, "galaxyzoo2": _galaxy_zoo, "generated": _generated}
