"""Persons of COCO with their 17 key points, each in an image of its own."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from .folders import data_file

MARGIN = 1.25


def coco_persons(
    folder: str | Path | None = None,
    size: int = 64,
    least: int = 8,
    margin: float = MARGIN,
    most: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Read persons of COCO val2017 with their key points, cut out as squares.

    Args:
        folder: Contains `coco_val_400px.zip` with the images and `annotations.json`, which has for
            each image the `keypoints`: `box` (center, width, height) and 17 `kp` (x, y, visibility)
            of each person, in shares of the image. By default, `data_folder() / "coco_val2017"`.
        size: The side of the squares in pixels.
        least: The least number of labeled points of a person.
        margin: The side of a square over the longer side of the box in its middle.
        most: The largest number of persons of one photograph, those with the largest boxes; all by
            default. With 1, samples are photographs, and independent.

    Returns:
        Images `[n, 3, size, size]` in 0..1, the box of a person with a margin, black outside of the
        photograph, and key points `[n, 17, 3]`: x, y in pixels of the square, and visibility (0
        unlabeled, 1 hidden, 2 visible).

    Raises:
        InputError: If a file does not exist.

    Example:
        >>> coco_persons(folder=".")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: folder: expected a folder with the file 'coco_val_400px.zip', ...
    """
    from PIL import Image

    archive = data_file("coco_val_400px.zip", folder, "coco_val2017")
    entries = json.loads(data_file("annotations.json", folder, "coco_val2017").read_text("utf-8"))
    images, points = [], []
    with zipfile.ZipFile(archive) as file:
        for name, entry in sorted(entries.items()):
            persons = [
                person
                for person in entry.get("keypoints", ())
                if sum(point[2] > 0 for point in person["kp"]) >= least
            ]
            if most is not None:
                persons.sort(key=lambda person: -person["box"][2] * person["box"][3])
                persons = persons[:most]
            if not persons:
                continue
            photo = Image.open(io.BytesIO(file.read(f"{name}.jpg"))).convert("RGB")
            for person in persons:
                x, y, width, height = np.array(person["box"]) * [*photo.size, *photo.size]
                side = margin * max(width, height)
                corner = np.array([x, y]) - side / 2
                square = photo.crop((*corner, *(corner + side))).resize((size, size))
                images.append(np.asarray(square, np.float32).transpose(2, 0, 1) / 255)
                found = np.array(person["kp"], np.float32)
                found[:, :2] = (found[:, :2] * photo.size - corner) * size / side
                points.append(found)
    return torch.from_numpy(np.stack(images)), torch.from_numpy(np.stack(points))
