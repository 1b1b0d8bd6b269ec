"""Small pictures of point clouds, to show next to the plots of their orbits."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError, whole_number

__all__ = ["cloud_picture", "look_from"]

Array = np.ndarray
YAW_DEG, PITCH_DEG = 30.0, 20.0


def look_from(yaw_deg: float = YAW_DEG, pitch_deg: float = PITCH_DEG) -> Array:
    """Return the rotation to the frame of a viewer.

    Args:
        yaw_deg: the angle of the viewer to the right.
        pitch_deg: the angle above.

    Returns:
        A matrix with the rows across, up (y) and towards the viewer.

    Example:
        >>> look_from(0, 0).tolist()
        [[1.0, 0.0, -0.0], [-0.0, 1.0, -0.0], [0.0, 0.0, 1.0]]
    """
    yaw, pitch = np.deg2rad([yaw_deg, pitch_deg])
    (cos, sin), (up, down) = (np.cos(yaw), np.sin(yaw)), (np.cos(pitch), np.sin(pitch))
    return np.array([[cos, 0, -sin], [-sin * down, up, -cos * down], [sin * up, down, cos * up]])


def cloud_picture(
    points: Any,
    mask: Any = None,
    *,
    size: int = 160,
    yaw_deg: float = YAW_DEG,
    pitch_deg: float = PITCH_DEG,
) -> Array:
    """Draw a cloud as seen from the front right and a little above; near points are darker.

    Args:
        points: `[points, 3]`, y up, shown from the origin to the farthest point.
        mask: `[points]`, which points exist; None uses all.
        size: height and width in pixels.
        yaw_deg: the angle of the viewer to the right.
        pitch_deg: the angle above.

    Returns:
        Gray values `[size, size]`, 1 for the background, for `orbical.figures.individual`.

    Raises:
        InputError: if the points are not `[points, 3]`, or the size is below 8.

    Example:
        >>> picture = cloud_picture([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]], size=32)
        >>> picture.shape, bool(picture[:16].min() < 1), float(picture[20:].min())
        ((32, 32), True, 1.0)
    """
    cloud = np.asarray(points, float)
    if cloud.ndim != 2 or cloud.shape[1] != 3:
        raise InputError("points", "shape [points, 3]", cloud.shape)
    size = whole_number("size", size, 8)
    if mask is not None:
        cloud = cloud[np.asarray(mask, bool)]
    picture = np.ones((size, size))
    if not len(cloud):
        return picture
    radius = max(float(np.linalg.norm(cloud, axis=1).max()), 1e-9)
    across, up, near = (look_from(yaw_deg, pitch_deg) @ cloud.T) / radius
    half = size / 2
    column = np.round(half + across * half * 0.92 - 0.5).astype(int)
    row = np.round(half - up * half * 0.92 - 0.5).astype(int)
    shade = 0.45 - 0.4 * near  # 0.05 in front, 0.85 behind
    for down, right in _disc(size, len(cloud)):
        place = (np.clip(row + down, 0, size - 1), np.clip(column + right, 0, size - 1))
        np.minimum.at(picture, place, shade)
    return picture


def _disc(size: int, count: int) -> Array:
    """Return the pixels `[pixels, 2]` of a point about its place; few points are larger discs."""
    side = int(np.clip(round(0.62 * size / count**0.75), 1, max(1, size // 7)))
    steps = np.arange(side) - side // 2
    pixels: Array = np.stack(np.meshgrid(steps, steps), -1).reshape(-1, 2)
    inside: Array = np.linalg.norm(pixels - steps.mean(), axis=1) <= side / 2
    return np.asarray(pixels[inside])
