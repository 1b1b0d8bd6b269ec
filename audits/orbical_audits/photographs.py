"""Photographs with labeled boxes, as views around key objects and as whole squares.

Photographs are not committed: `ORBICAL_DATA` names the folder that contains them.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import orbical as ob

__all__ = [
    "CLASSES", "annotated", "key_views", "training_photographs", "validation_photographs",
    "whole_views",
]  # fmt: skip

CLASSES = [str(index) for index in range(80)]
"""COCO's 80 classes by their places in the order that detectors use."""
_GRAY = 114 / 255
"""What fills a square beside a photograph; detectors are trained with it."""

Views = tuple[Tensor, Tensor]
Photograph = ob.datasets.AnnotatedImage


def validation_photographs(folder: str | Path | None = None) -> list[Photograph]:
    """Read 240 photographs of COCO val2017, which detectors are not trained on.

    Args:
        folder: contains `coco_val_400px.zip` and `annotations.json`; by default
            `data_folder() / "coco_val2017"`.
    """
    file = partial(ob.datasets.data_file, folder=folder, default="coco_val2017")
    entries = json.loads(file("annotations.json").read_text("utf-8"))
    with zipfile.ZipFile(file("coco_val_400px.zip")) as archive:
        return [
            annotated(name, entry["size"], entry["boxes"], archive.read(f"{name}.jpg"))
            for name, entry in sorted(entries.items())
        ]


def training_photographs(folder: str | Path | None = None) -> list[Photograph]:
    """Read 350 photographs of COCO train2017: detectors know them.

    Args:
        folder: contains `coco_five_480.zip` and `annotations.json`; by default
            `data_folder() / "coco"`.
    """
    file = partial(ob.datasets.data_file, folder=folder, default="coco")
    content = json.loads(file("annotations.json").read_text("utf-8"))
    places = {kind: place for place, kind in enumerate(sorted(map(int, content["categories"])))}
    with zipfile.ZipFile(file("coco_five_480.zip")) as archive:
        return [
            annotated(
                entry["file"],
                (entry["width"], entry["height"]),
                [[places[kind], *box] for kind, *box in entry["boxes_cxcywh_norm"]],
                archive.read(entry["file"]),
            )
            for entry in content["coco_five_480"]
        ]


def annotated(name: str, size: Sequence[int], boxes: Sequence[Any], data: bytes) -> Photograph:
    """Return a photograph with boxes given as class, center, width and height, in shares."""
    rows = np.array(boxes, float).reshape(-1, 5)
    middle, extent = rows[:, 1:3], rows[:, 3:5]
    edges = np.concatenate([middle - extent / 2, middle + extent / 2], 1).clip(0, 1) * [
        *size,
        *size,
    ]
    kept = (edges[:, 2:] > edges[:, :2]).all(1)
    labels = [CLASSES[int(place)] for place in rows[kept, 0]]
    return Photograph(name, size[0], size[1], edges[kept], labels, lambda: data)


def key_views(photographs: list[Photograph], window: int, radius: int) -> Views:
    """Cut out the surroundings of one key object of each photograph that has one.

    It is the largest of those that a view of `window` pixels sees whole at all shifts within
    `radius`: whatever a detector loses, it was shown. Samples are photographs, so that intervals
    over samples are intervals over photographs.

    Returns:
        Images and objects for a scan.
    """
    found = ob.datasets.key_object_views(photographs, CLASSES, window, radius)
    key = found["objects"][:, 0, :4]
    whole = (key[:, :2] >= radius).all(1) & (key[:, 2:] <= window - radius).all(1)
    area = (key[:, 2:] - key[:, :2]).prod(1) * whole
    best: dict[str, int] = {}
    for place, name in enumerate(found["names"]):
        if area[place] > 0 and (name not in best or area[place] > area[best[name]]):
            best[name] = place
    places = list(best.values())
    return found["images"][places], found["objects"][places]


def whole_views(photographs: list[Photograph], side: int) -> Views:
    """Put whole photographs, unscaled, into the middle of gray squares; large objects first."""
    squares, objects = [], []
    for photograph in photographs:
        if not len(photograph.boxes):
            continue
        pixels = photograph.read()
        top, left = (side - pixels.shape[0]) // 2, (side - pixels.shape[1]) // 2
        square = np.full((side, side, 3), _GRAY, np.float32)
        square[top : top + pixels.shape[0], left : left + pixels.shape[1]] = pixels / np.float32(
            255
        )
        squares.append(square)
        boxes = photograph.boxes + np.array([left, top, left, top])
        labels = np.array(photograph.labels, float)[:, None]
        largest_first = np.argsort(-np.prod(boxes[:, 2:] - boxes[:, :2], 1), kind="stable")
        objects.append(np.concatenate([boxes, labels], 1)[largest_first].astype(np.float32))
    most = max(map(len, objects))
    rows = np.full((len(objects), most, 5), np.nan, np.float32)
    for row, found in zip(rows, objects, strict=True):
        row[: len(found)] = found
    return torch.from_numpy(np.stack(squares)).permute(0, 3, 1, 2), torch.from_numpy(rows)
