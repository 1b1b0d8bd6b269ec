"""Microscope images of cell nuclei, with masks."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from orbical.errors import InputError

from .folders import data_file

LEAST_CONTRAST = 20


def nuclei(
    folder: str | Path | None = None, count: int | None = None, kind: str = "fluorescence"
) -> tuple[Tensor, Tensor]:
    """Read images of cell nuclei with their masks, from the Data Science Bowl 2018 (BBBC038, CC0).

    Args:
        folder: Contains `dsb2018_256.zip` with `images/ID.webp` and `masks/ID.png` (0 is the
            background, 1 .. n the nuclei), and `meta.json` with `id` and `kind` of each image. By
            default, `data_folder() / "nuclei"`.
        count: The number of images, in the order of their names; all by default.
        kind: How they were taken, as `meta.json` says: "fluorescence" for example.

    Returns:
        Images `[n, 1, 256, 256]`, gray in 0..1, from the darkest pixel of each to its 99th
        percentile (at least 20 of 255 levels), and label maps `[n, 256, 256]`: 1 in a nucleus, 0
        elsewhere.

    Raises:
        InputError: If a file does not exist, or there are no images of that kind.

    Example:
        >>> nuclei(folder=".")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: folder: expected a folder with the file 'dsb2018_256.zip', ...
    """
    from PIL import Image

    archive = data_file("dsb2018_256.zip", folder, "nuclei")
    entries = json.loads(data_file("meta.json", folder, "nuclei").read_text(encoding="utf-8"))
    names = sorted(entry["id"] for entry in entries if entry["kind"] == kind)[:count]
    if not names:
        known = ", ".join(sorted({entry["kind"] for entry in entries}))
        raise InputError("kind", f"one of {known}", repr(kind))
    with zipfile.ZipFile(archive) as file:

        def picture(path: str, mode: str) -> np.ndarray:
            return np.array(Image.open(io.BytesIO(file.read(path))).convert(mode))

        images = np.stack([picture(f"images/{name}.webp", "L") for name in names])
        masks = np.stack([picture(f"masks/{name}.png", "L") for name in names])
    low, high = np.percentile(images, (0, 99), axis=(1, 2), keepdims=True)
    gray = ((images - low) / np.maximum(high - low, LEAST_CONTRAST)).clip(0, 1)
    return torch.from_numpy(gray).float()[:, None], torch.from_numpy(masks > 0).long()
