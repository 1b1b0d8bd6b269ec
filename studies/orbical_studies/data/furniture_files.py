"""Point clouds of furniture from two public sets, packed for the studies, with y up."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch

from orbical.datasets import PointClouds, data_file
from orbical.errors import InputError

LEAST = 25
REST = "other"


def sweethome3d(folder: str | Path | None = None, least: int = LEAST) -> PointClouds:
    """Read the furniture of Sweet Home 3D: 2,048 points on the surface of each model.

    Clouds are centered on their bounding box and lie in the unit ball. Duplicates and models
    without a class are dropped.

    Args:
        folder: Contains `points2048.npz` and `models.json`; default `sweethome3d` in the data
            folder.
        least: Smallest number of models of a class.

    Returns:
        The clouds, with classes in alphabetical order.
    """
    with np.load(data_file("points2048.npz", folder, "sweethome3d"), allow_pickle=False) as file:
        points = file["points"].astype(np.float32)
    models = json.loads(data_file("models.json", folder, "sweethome3d").read_text("utf-8"))
    if points.ndim != 3 or points.shape[2] != 3 or len(points) != len(models):
        raise InputError(
            "folder",
            f"points of shape ({len(models)}, points, 3) for {len(models)} models",
            points.shape,
        )
    names = np.array([model["class"] for model in models])
    kept = np.zeros(len(names), bool)
    kept[np.unique(points.reshape(len(points), -1), axis=0, return_index=True)[1]] = True
    found, counts = np.unique(names[kept], return_counts=True)
    classes = [str(n) for n, c in zip(found, counts, strict=True) if c >= least and n != REST]
    if len(classes) < 2:
        raise InputError(
            "least", "a number that leaves two classes", f"{least}, which leaves {len(classes)}"
        )
    rows = np.flatnonzero(kept & np.isin(names, classes))
    labels = np.searchsorted(classes, names[rows])
    return PointClouds(torch.from_numpy(points[rows]), torch.from_numpy(labels), tuple(classes))


def modelnet10(folder: str | Path | None = None) -> tuple[PointClouds, PointClouds]:
    """Read the ten classes of ModelNet10: 512 points on the surface of each shape.

    Clouds are centered on their bounding box and lie in the unit ball.

    Args:
        folder: Contains `modelnet10_512.npz`; default `modelnet10` in the data folder.

    Returns:
        70 training clouds of each class, and the official test set.
    """
    with np.load(data_file("modelnet10_512.npz", folder, "modelnet10"), allow_pickle=False) as file:
        arrays = dict(file)
    classes = tuple(arrays["classes"].tolist())

    def part(name: str) -> PointClouds:
        # The last axis of the files is the height; an even permutation mirrors nothing.
        points = arrays[f"{name}_points"][..., [1, 2, 0]].astype(np.float32)
        labels = torch.from_numpy(arrays[f"{name}_labels"].astype(np.int64))
        return PointClouds(torch.from_numpy(points), labels, classes)

    return part("train"), part("test")
