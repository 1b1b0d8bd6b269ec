"""Thumbnails of point clouds, from the page's initial viewpoint."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from ..._trees import Tree

Array = np.ndarray

_YAW, _PITCH = np.deg2rad(30.0), np.deg2rad(20.0)
_ROOM = 1.06
"""The half-width of the thumbnail, in radii of the cloud."""


def cloud_of(given: Tree) -> Array | None:
    """Return the points `[n, 3]` of one input, None if it has none.

    They are the field `pos`, or an input `[1, n, 2 or 3]` itself, without the points that a field
    `mask` excludes.
    """
    fields = given if isinstance(given, dict) else {"pos": given}
    points = fields.get("pos")
    if not isinstance(points, Tensor) or points.ndim != 3 or points.shape[-1] not in (2, 3):
        return None
    kept = points[0].detach().cpu().double().numpy()
    if isinstance(fields.get("mask"), Tensor) and fields["mask"].shape == points.shape[:2]:
        kept = kept[fields["mask"][0].cpu().numpy() > 0]
    return np.pad(kept, ((0, 0), (0, 3 - kept.shape[1])))


def cloud_picture(points: Array, size: int) -> Array:
    """Draw points `[n, 3]` without perspective, as bytes `[size, size, 1]`; nearer is brighter.

    >>> picture = cloud_picture(np.array([[0.0, 0.0, 0.0]]), 9)
    >>> picture[4, 4, 0] > 0, picture[0, 0, 0]
    (np.True_, np.uint8(0))
    """
    picture = np.zeros((size, size), np.uint8)
    radius = np.linalg.norm(points, axis=-1).max(initial=0.0) or 1.0
    (ca, sa), (cb, sb) = ((np.cos(angle), np.sin(angle)) for angle in (_YAW, _PITCH))
    look = np.array([[ca, 0.0, -sa], [-sa * sb, cb, -ca * sb], [sa * cb, sb, ca * cb]])
    across, up, out = look @ points.T / radius
    middle, scale = (size - 1) / 2, size / 2 / _ROOM
    shade = (165 + 90 * out).clip(60, 255).astype(np.uint8)
    reach = np.clip(size / np.sqrt(len(points) + 1) / 8, 0.5, 3.0)
    side = np.arange(-int(reach), int(reach) + 1)
    for down in side:
        for right in side[np.hypot(side, down) <= reach]:
            row = np.rint(middle - up * scale + down).astype(int).clip(0, size - 1)
            column = np.rint(middle + across * scale + right).astype(int).clip(0, size - 1)
            np.maximum.at(picture, (row, column), shade)
    return picture[..., None]
