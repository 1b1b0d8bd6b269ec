"""The galaxies of all data sets in one small file, for a machine that has no other."""

from __future__ import annotations

import io

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from ..data import efigi, galaxies, galaxy_zoo, hubble_types
from ..framework import Results
from ..framework.packs import read_pack, write_pack
from .settings import PHOTOGRAPHS, Settings

FILE = "galaxies.npz"
SIZE, GENERATED_SIZE = 64, 32
TEST_SHARE = 0.25
# Photographs are packed as one picture, a hundred to a row, compressed to a tenth.
ACROSS, QUALITY = 100, 90
# Generated galaxies to train on, and to test on: these once as they are and once mirrored.
GENERATED = (700, 300)
# Blur in pixels and noise of the sky of generated galaxies.
TELESCOPE = {"psf": 0.7, "noise": 0.05}
Split = tuple[Tensor, Tensor]


def pack(settings: Settings, results: Results, size: int = SIZE) -> None:
    """Write the images of the data sets, split into train and test, and EFIGI's Hubble types."""
    arrays = {}
    for name in settings.data:
        for part, (images, classes) in SPLITS[name](size).items():
            pixels = images.mul(255).round().byte().numpy()
            # Orbits of generated galaxies are matched exactly: they are packed as they are.
            arrays[f"{name}-{part}-pixels"] = sheet(pixels) if name in PHOTOGRAPHS else pixels
            arrays[f"{name}-{part}-labels"] = classes.numpy()
    if "efigi" in settings.data:
        types = hubble_types()
        arrays["efigi-test-types"] = types[_efigi_rows(len(types))[0]].numpy()
    write_pack(results.work / FILE, arrays)


def unpack(results: Results, device: torch.device) -> dict[str, Split]:
    """Read all splits onto a device: images in 0..1 and labels by `DATA-SPLIT`."""
    packed = read_pack(results.work / FILE)
    splits = {}
    for name in sorted(name.removesuffix("-labels") for name in packed if name.endswith("-labels")):
        labels, pixels = packed[f"{name}-labels"], packed[f"{name}-pixels"]
        if pixels.ndim == 1:
            pixels = from_sheet(pixels, len(labels))
        moved = (torch.from_numpy(part).to(device) for part in (pixels, labels))
        images, classes = moved
        splits[name] = (images.float() / 255, classes)
    return splits


def sheet(pixels: np.ndarray) -> np.ndarray:
    """Compress color images `[n, 3, h, w]` of bytes into one WebP picture, as bytes."""
    empty = np.zeros((-len(pixels) % ACROSS, *pixels.shape[1:]), np.uint8)
    filled = np.concatenate([pixels, empty])
    rows = filled.reshape(-1, ACROSS, *pixels.shape[1:]).transpose(0, 3, 1, 4, 2)
    file = io.BytesIO()
    picture = Image.fromarray(rows.reshape(-1, ACROSS * pixels.shape[3], 3))
    picture.save(file, "WEBP", quality=QUALITY, method=6)
    return np.frombuffer(file.getvalue(), np.uint8)


def from_sheet(encoded: np.ndarray, count: int) -> np.ndarray:
    """Read the first images `[count, 3, h, w]` of what `sheet` wrote; they are square."""
    with Image.open(io.BytesIO(encoded.tobytes())) as picture:
        pixels = np.asarray(picture.convert("RGB"))
    size = pixels.shape[1] // ACROSS
    tiles = pixels.reshape(-1, size, ACROSS, size, 3).transpose(0, 2, 4, 1, 3)
    return np.ascontiguousarray(tiles.reshape(-1, 3, size, size)[:count])


def _efigi_rows(count: int) -> tuple[Tensor, ...]:
    """Draw which galaxies of EFIGI are for the test, and which for training."""
    order = torch.randperm(count, generator=torch.Generator().manual_seed(0))
    return order.tensor_split([int(TEST_SHARE * count)])


def _efigi(size: int) -> dict[str, Split]:
    images, labels = efigi(size=size)
    parts = _efigi_rows(len(labels))
    return {n: (images[i], labels[i]) for n, i in zip(("test", "train"), parts, strict=True)}


def _galaxy_zoo(size: int) -> dict[str, Split]:
    names = {"train": "train", "test": "validation"}
    return {part: galaxy_zoo(split=name, size=size) for part, name in names.items()}


def _generated(size: int) -> dict[str, Split]:
    """Generate spirals of both senses in one size; each test image has its mirror image."""
    trained, tested = GENERATED
    images, labels = galaxies(tested, size=GENERATED_SIZE, seed=1, **TELESCOPE)
    mirrored = torch.tensor([0, 2, 1])[labels]
    return {
        "train": galaxies(trained, size=GENERATED_SIZE, seed=0, **TELESCOPE),
        "test": (torch.cat([images, images.flip(-1)]), torch.cat([labels, mirrored])),
    }


SPLITS = {"efigi": _efigi, "galaxyzoo2": _galaxy_zoo, "generated": _generated}
