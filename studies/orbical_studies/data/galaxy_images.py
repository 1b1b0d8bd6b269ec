"""Galaxies with their morphology: EFIGI, Galaxy Zoo 2, and the blur of a telescope."""

from __future__ import annotations

import csv
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from orbical.datasets.folders import data_file
from orbical.datasets.image_folders import archived, read_images
from orbical.errors import InputError, unknown_name

EFIGI_CLASSES = ("elliptical or lenticular", "early spiral", "late spiral or irregular")
"""Hubble type T up to 0, 1 to 4, and from 5 on."""

GALAXY_ZOO_CLASSES = ("not spiral", "spiral")


def efigi(folder: str | Path | None = None, size: int = 100) -> tuple[Tensor, Tensor]:
    """Read the EFIGI catalogue: 4,458 galaxies with the Hubble types given by experts.

    Args:
        folder: holds `images100.zip` and `EFIGI_labels.csv`; None looks in `efigi` under
            `data_folder()`.
        size: side of the images in pixels.

    Returns:
        images `[n, 3, size, size]`, float32 in 0..1, and labels `[n]`, int64 (`EFIGI_CLASSES`).

    Example:
        >>> efigi(folder=".")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: folder: there is no file 'EFIGI_labels.csv' in '.'; ...

    Paper: Baillard et al. 2011.
    """
    table = data_file("EFIGI_labels.csv", folder, "efigi")
    images = archived(data_file("images100.zip", folder, "efigi"))
    with table.open(newline="") as file:
        types = {row["pgc_id"]: float(row["T"]) for row in csv.DictReader(file)}
    missing = [name for name in images if Path(name).stem not in types]
    if missing:
        raise InputError(f"folder: {missing[0]!r} has no row in {table.name!r}")
    hubble = torch.tensor([types[Path(name).stem] for name in images])
    labels = torch.bucketize(hubble, torch.tensor([0.5, 4.5]))
    return read_images(images.items(), size), labels


def galaxy_zoo(
    folder: str | Path | None = None, split: str = "train", size: int = 100
) -> tuple[Tensor, Tensor]:
    """Read 2,000 galaxies of Galaxy Zoo 2, spiral or not by the votes of volunteers.

    Args:
        folder: holds `gz2_spiral_106.zip`; None looks in `galaxyzoo2` under `data_folder()`.
        split: `"train"` (1,400) or `"validation"` (600).
        size: side of the images in pixels.

    Returns:
        images `[n, 3, size, size]`, float32 in 0..1, and labels `[n]`, int64 (1: spiral).

    Example:
        >>> galaxy_zoo(split="test")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: split: unknown name 'test' (known: train, validation)

    Paper: Willett et al. 2013.
    """
    if split not in ("train", "validation"):
        raise unknown_name("split", split, ["train", "validation"])
    files = archived(data_file("gz2_spiral_106.zip", folder, "galaxyzoo2"))
    chosen = {name: read for name, read in files.items() if name.startswith(f"{split}/")}
    labels = torch.tensor([int(Path(name).parent.name == "spirals") for name in chosen])
    return read_images(chosen.items(), size), labels


def point_spread(images: Tensor, sigma: float) -> Tensor:
    """Blur images `[n, c, h, w]` as a telescope does: by a Gaussian of `sigma` pixels, once.

    The border is mirrored. A corruption to be applied to the original images: blurs add up in
    their squares, so that blurring twice is another blur.

    Example:
        >>> star = torch.zeros(1, 1, 17, 17)
        >>> star[..., 8, 8] = 1
        >>> blurred = point_spread(star, 1.0)
        >>> f"{blurred.sum():.3f} {blurred.max():.3f}"
        '1.000 0.159'
    """
    if not 0 <= sigma < float("inf"):
        raise InputError(f"sigma: {sigma!r} given, a width of 0 or more pixels expected")
    if sigma == 0:
        return images
    reach = min(int(4 * sigma + 0.5), min(images.shape[-2:]) - 1)
    offsets = torch.arange(-reach, reach + 1, dtype=images.dtype, device=images.device)
    profile = torch.exp(-0.5 * (offsets / sigma) ** 2)
    profile = profile / profile.sum()
    channels = images.shape[1]
    for axis in (-1, -2):
        shape = [1, 1, 1, 1]
        shape[axis] = len(profile)
        pad = (reach, reach, 0, 0) if axis == -1 else (0, 0, reach, reach)
        images = functional.conv2d(
            functional.pad(images, pad, mode="reflect"),
            profile.view(shape).expand(channels, 1, -1, -1),
            groups=channels,
        )
    return images
