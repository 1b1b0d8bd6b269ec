"""Point clouds of furniture from two public sets, and clouds of unequal sizes.

Clouds of one size are a tensor `[n, points, 3]`; clouds of unequal sizes are padded,
`{"pos": [n, most, 3], "mask": [n, most]}`, and moved by `{"pos": Points(), "mask": Trivial()}`.
All of them stand with y up. Generated furniture is in `orbical.datasets.furniture`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from orbical.errors import InputError

from .folders import data_file

LEAST = 25
REST = "other"
MODELNET_CLASSES = ("chair", "monitor")


class PointClouds(NamedTuple):
    """Clouds with their labels and the names of the classes.

    Attributes:
        points: `[n, points, 3]`, float32, or the fields `pos` and `mask` of padded clouds.
        labels: `[n]`, int64.
        classes: the names, by label.
    """

    points: Any
    labels: Tensor
    classes: tuple[str, ...]


def padded(clouds: Sequence[Any]) -> dict[str, Tensor]:
    """Put clouds of unequal sizes into one batch.

    Args:
        clouds: each `[points, 3]` (or 2 coordinates), with at least one point.

    Returns:
        `pos`, `[n, most, 3]`, zero where a cloud has ended, and `mask`, `[n, most]`, true where
        there is a point. The points of a cloud come first.

    Example:
        >>> batch = padded([np.zeros((2, 3)), np.ones((5, 3))])
        >>> batch["pos"].shape, batch["mask"].sum(1).tolist()
        (torch.Size([2, 5, 3]), [2, 5])
    """
    if not len(clouds):
        raise InputError("clouds: none given, at least one expected")
    each = [torch.as_tensor(cloud, dtype=torch.float32) for cloud in clouds]
    for place, cloud in enumerate(each):
        if cloud.ndim != 2 or len(cloud) == 0 or cloud.shape[1] != each[0].shape[-1]:
            raise InputError(
                f"clouds: cloud {place} has shape {tuple(cloud.shape)}, expected [points, "
                f"{each[0].shape[-1]}] with at least one point"
            )
        if not bool(torch.isfinite(cloud).all()):
            raise InputError(f"clouds: cloud {place} holds NaN or infinity, expected numbers")
    most = max(len(cloud) for cloud in each)
    pos = torch.zeros(len(each), most, each[0].shape[1])
    mask = torch.zeros(len(each), most, dtype=torch.bool)
    for row, cloud in enumerate(each):
        pos[row, : len(cloud)] = cloud
        mask[row, : len(cloud)] = True
    return {"pos": pos, "mask": mask}


def sweethome3d(folder: str | Path | None = None, least: int = LEAST) -> PointClouds:
    """Read the furniture of Sweet Home 3D: 2,048 points on the surface of each model, y up.

    Clouds are centered on their bounding box and lie in the unit ball. Exact repeats and models
    without a class are left out.

    Args:
        folder: holds `points2048.npz` and `models.json`; None looks in `ORBICAL_DATA/sweethome3d`.
        least: keep the classes that have at least so many models.

    Returns:
        the clouds, with classes in the order of their names.
    """
    with np.load(data_file("points2048.npz", folder, "sweethome3d"), allow_pickle=False) as file:
        points = file["points"].astype(np.float32)
    models = json.loads(data_file("models.json", folder, "sweethome3d").read_text("utf-8"))
    if points.ndim != 3 or points.shape[2] != 3 or len(points) != len(models):
        raise InputError(
            f"folder: points of shape {points.shape} for {len(models)} models, expected "
            "[models, points, 3]"
        )
    names = np.array([model["class"] for model in models])
    kept = np.zeros(len(names), bool)
    kept[np.unique(points.reshape(len(points), -1), axis=0, return_index=True)[1]] = True
    found, counts = np.unique(names[kept], return_counts=True)
    classes = [str(n) for n, c in zip(found, counts, strict=True) if c >= least and n != REST]
    if len(classes) < 2:
        raise InputError(f"least: got {least}, which leaves {len(classes)} classes; expected two")
    rows = np.flatnonzero(kept & np.isin(names, classes))
    labels = np.searchsorted(classes, names[rows])
    return PointClouds(torch.from_numpy(points[rows]), torch.from_numpy(labels), tuple(classes))


def modelnet10(folder: str | Path | None = None, most: int = 2048) -> PointClouds:
    """Read ModelNet10's chairs and monitors as points at the centers of surface voxels, y up.

    Shapes differ in their number of voxels, so the clouds are padded. Each is centered on its
    bounding box and lies in the unit ball. Empty grids and exact repeats are left out. The points
    of a cloud come in random order, so that the first ones of it are a thinner cloud.

    Args:
        folder: holds `chair.npz` and `monitor.npz`, 32 x 32 x 32 voxels, eight to a byte; None
            looks in `ORBICAL_DATA/modelnet10vox`.
        most: shapes with more surface voxels are thinned to so many, the same ones each time.

    Returns:
        the clouds, as fields `pos` and `mask`.
    """
    if most < 1:
        raise InputError(f"most: got {most}, expected at least 1")
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
    """Give the centers of the voxels that have an empty neighbor, in the unit ball, y up."""
    framed = np.pad(grid, 1)
    inner = np.ones_like(grid)
    for axis in range(3):
        for step in (-1, 1):
            inner &= np.roll(framed, step, axis)[1:-1, 1:-1, 1:-1]
    # The last axis of the files is the height; an even permutation mirrors nothing.
    return in_unit_ball(np.argwhere(grid & ~inner)[:, [1, 2, 0]].astype(np.float32))


def in_unit_ball(points: NDArray[Any]) -> NDArray[Any]:
    """Center a cloud `[points, 3]` on its bounding box, and scale it into the unit ball.

    >>> in_unit_ball(np.array([[0.0, 0, 0], [4, 0, 0]])).tolist()
    [[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    """
    centered = points - (points.min(0) + points.max(0)) / 2
    result: NDArray[Any] = centered / max(float(np.linalg.norm(centered, axis=1).max()), 1e-6)
    return result
