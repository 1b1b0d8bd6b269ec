"""The COCO images of the detection study."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from orbical.datasets import AnnotatedImage, checked_boxes, data_file

FIVE_CLASSES = ("car", "bottle", "cup", "chair", "book")
"""The key classes of the NERO paper."""


def coco_five(folder: str | Path | None = None) -> dict[str, list[AnnotatedImage]]:
    """Read the images with at least one of the five key classes.

    Args:
        folder: Contains `annotations.json` (boxes as category, center and size, normalized) and
            the archives `coco_five_480.zip` and `coco_sq256.zip`; default `coco` in the data
            folder.

    Returns:
        The images of each archive by its name. Outside of one source "book" is not annotated, and
        the images say so in `unlabeled`.
    """
    notes = json.loads(data_file("annotations.json", folder, "coco").read_text(encoding="utf-8"))
    names: Mapping[str, str] = notes["categories"]
    found = {}
    for part in ("coco_five_480", "coco_sq256"):
        archive = zipfile.ZipFile(data_file(f"{part}.zip", folder, "coco"))
        found[part] = [_annotated(entry, names, archive) for entry in notes[part]]
    return found


def _annotated(
    entry: dict[str, Any], names: Mapping[str, str], archive: zipfile.ZipFile
) -> AnnotatedImage:
    width, height, name = entry["width"], entry["height"], entry["file"]
    rows = np.array(entry["boxes_cxcywh_norm"], np.float64).reshape(-1, 5)
    center, half = rows[:, 1:3] * [width, height], rows[:, 3:5] * [width, height] / 2
    return AnnotatedImage(
        name,
        width,
        height,
        checked_boxes(np.concatenate([center - half, center + half], 1), name, width, height),
        [names[str(int(row[0]))] for row in rows],
        lambda: archive.read(name),
        () if "lightly" in entry["source"] else ("book",),
    )
