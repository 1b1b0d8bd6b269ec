"""Galaxies with their morphology: EFIGI, Galaxy Zoo 2, and the blur of a telescope."""

from __future__ import annotations

import csv
import zipfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from PIL.Image import Resampling
from torch import Tensor
from torch.nn import functional

from orbical.datasets import data_file
from orbical.errors import InputError, check_name


def efigi(folder: str | Path | None = None, size: int = 100) -> tuple[Tensor, Tensor]:
    """Read the EFIGI catalog: 4,458 galaxies with Hubble types assigned by experts.

    Args:
        folder: Contains `images100.zip` and `EFIGI_labels.csv`; default `efigi` in the data folder.
        size: Side of the images in pixels.

    Returns:
        Images `[n, 3, size, size]`, float32 in 0..1, and labels `[n]`, int64: 0 elliptical or
        lenticular (Hubble type T up to 0), 1 early spiral (1 to 4), 2 late spiral, irregular
        or dwarf elliptical (from 5 on).

    Example:
        >>> efigi(folder=".")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: folder: expected a folder with the file 'EFIGI_labels.csv', ...

    Paper: Baillard et al. 2011.
    """
    hubble = hubble_types(folder)
    archive = data_file("images100.zip", folder, "efigi")
    return _pixels(archive, size), torch.bucketize(hubble, torch.tensor([0.5, 4.5]))


def hubble_types(folder: str | Path | None = None) -> Tensor:
    """Read the Hubble types T of the EFIGI catalog, `[n]`, in the order of `efigi`.

    From -6 to 0 ellipticals and lenticulars, 1 to 9 spirals, 10 irregulars, 11 dwarf ellipticals.

    Args:
        folder: As for `efigi`.

    Example:
        >>> hubble_types(folder=".")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: folder: expected a folder with the file 'EFIGI_labels.csv', ...

    Paper: Baillard et al. 2011.
    """
    table = data_file("EFIGI_labels.csv", folder, "efigi")
    archive = data_file("images100.zip", folder, "efigi")
    with table.open(newline="") as file:
        types = {row["pgc_id"]: float(row["T"]) for row in csv.DictReader(file)}
    galaxies = [Path(name).stem for name in _images_in(archive)]
    unknown = [galaxy for galaxy in galaxies if galaxy not in types]
    if unknown:
        missing = f"none for {unknown[0]!r}"
        raise InputError("folder", f"a row in {table.name!r} for each image", missing)
    return torch.tensor([types[galaxy] for galaxy in galaxies])


def galaxy_zoo(
    folder: str | Path | None = None, split: str = "train", size: int = 100
) -> tuple[Tensor, Tensor]:
    """Read 2,000 galaxies of Galaxy Zoo 2, spiral or not by the votes of volunteers.

    Args:
        folder: Contains `gz2_spiral_106.zip`; default `galaxyzoo2` in the data folder.
        split: `"train"` (1,400) or `"validation"` (600).
        size: Side of the images in pixels.

    Returns:
        Images `[n, 3, size, size]`, float32 in 0..1, and labels `[n]`, int64 (1: spiral).

    Example:
        >>> galaxy_zoo(split="test")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: split: unknown name 'test' (known: train, validation)

    Paper: Willett et al. 2013.
    """
    check_name("split", split, ("train", "validation"))
    archive = data_file("gz2_spiral_106.zip", folder, "galaxyzoo2")
    names = _images_in(archive)
    rows = torch.tensor([name.startswith(f"{split}/") for name in names])
    spiral = torch.tensor([Path(name).parent.name == "spirals" for name in names])
    return _pixels(archive, size)[rows], spiral[rows].long()


def _images_in(archive: Path) -> list[str]:
    """List the images of an archive in alphabetical order."""
    with zipfile.ZipFile(archive) as files:
        names = sorted(files.namelist())
    return [name for name in names if name.lower().endswith((".jpg", ".jpeg", ".png"))]


def _pixels(archive: Path, size: int) -> Tensor:
    """Read the images of an archive, `[n, 3, size, size]`, float32 in 0..1."""
    pixels = []
    with zipfile.ZipFile(archive) as files:
        for name in _images_in(archive):
            with files.open(name) as file, Image.open(file) as image:
                resized = image.convert("RGB").resize((size, size), Resampling.LANCZOS)
            pixels.append(np.asarray(resized))
    return torch.as_tensor(np.stack(pixels)).permute(0, 3, 1, 2).contiguous().float().div_(255)


def point_spread(images: Tensor, sigma: float) -> Tensor:
    """Blur images `[n, c, h, w]` as a telescope does: by a Gaussian of `sigma` pixels, once.

    The border is mirrored. Apply it to the original images: the squares of the widths add up, so
    blurring twice is another blur.

    Example:
        >>> star = torch.zeros(1, 1, 17, 17)
        >>> star[..., 8, 8] = 1
        >>> blurred = point_spread(star, 1.0)
        >>> f"{blurred.sum():.3f} {blurred.max():.3f}"
        '1.000 0.159'
    """
    if not 0 <= sigma < float("inf"):
        raise InputError("sigma", "a width of 0 or more pixels", repr(sigma))
    if sigma == 0:
        return images
    reach = min(int(4 * sigma + 0.5), min(images.shape[-2:]) - 1)
    offsets = torch.arange(-reach, reach + 1, dtype=images.dtype, device=images.device)
    profile = torch.exp(-0.5 * (offsets / sigma) ** 2)
    kernel = (profile / profile.sum()).expand(images.shape[1], 1, 1, -1)
    for _ in ("rows", "columns"):
        padded = functional.pad(images, (reach, reach, 0, 0), mode="reflect")
        images = functional.conv2d(padded, kernel, groups=images.shape[1]).mT
    return images
