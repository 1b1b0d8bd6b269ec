"""Point clouds of furniture from two public sets, packed for the studies, with y up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from orbical.datasets import PointClouds, data_file, in_unit_ball, padded
from orbical.errors import InputError

LEAST = 25
REST = "other"
MODELNET_CLASSES = ("chair", "monitor")


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
            f"folder: expected points of shape ({len(models)}, points, 3) for {len(models)} "
            f"models, got {points.shape}"
        )
    names = np.array([model["class"] for model in models])
    kept = np.zeros(len(names), bool)
    kept[np.unique(points.reshape(len(points), -1), axis=0, return_index=True)[1]] = True
    found, counts = np.unique(names[kept], return_counts=True)
    classes = [str(n) for n, c in zip(found, counts, strict=True) if c >= least and n != REST]
    if len(classes) < 2:
        raise InputError(
            f"least: expected a number that leaves two classes, got {least}, which leaves "
            f"{len(classes)}"
        )
    rows = np.flatnonzero(kept & np.isin(names, classes))
    labels = np.searchsorted(classes, names[rows])
    return PointClouds(torch.from_numpy(points[rows]), torch.from_numpy(labels), tuple(classes))


def modelnet10(folder: str | Path | None = None, most: int = 2048) -> PointClouds:
    """Read ModelNet10's chairs and monitors as points at the centers of surface voxels.

    Shapes differ in their number of voxels, so the clouds are padded. Each is centered on its
    bounding box and lies in the unit ball. Empty grids and duplicates are dropped. The points of a
    cloud are in random order, so that the first ones are a thinner cloud.

    Args:
        folder: Contains `chair.npz` and `monitor.npz`, 32 x 32 x 32 voxels, eight to a byte;
            default `modelnet10vox` in the data folder.
        most: Largest number of points; larger shapes are thinned, in the same way each time.

    Returns:
        The clouds, as fields `pos` and `mask`.
    """
    if most < 1:
        raise InputError(f"most: expected at least 1, got {most}")
    generator = np.random.default_rng(0)
    clouds: list[NDArray[Any]] = []
    labels: list[int] = []
    for label, name in enumerate(MODELNET_CLASSES):
        with np.load(data_file(f"{name}.npz", folder, "modelnet10vox")) as file:
            packed, shape = np.unique(file["packed"], axis=0), file["shape"]
        grids = np.unpackbits(packed, axis=1).reshape(-1, *shape[-3:]).astype(bool)
        found = [_surface_points(grid) for grid in grids if grid.any()]
        clouds += [generator.permutation(cloud)[:most] for cloud in found]
        labels += [label] * len(found)
    return PointClouds(padded(clouds), torch.tensor(labels), MODELNET_CLASSES)


def _surface_points(grid: NDArray[Any]) -> NDArray[Any]:
    """Return the centers of the voxels that have an empty neighbor, in the unit ball, y up."""
    framed = np.pad(grid, 1)
    inner = np.ones_like(grid)
    for axis in range(3):
        for step in (-1, 1):
            inner &= np.roll(framed, step, axis)[1:-1, 1:-1, 1:-1]
    # The last axis of the files is the height; an even permutation mirrors nothing.
    return in_unit_ball(np.argwhere(grid & ~inner)[:, [1, 2, 0]].astype(np.float32))
