"""Small pictures of point clouds and molecules, to show next to the plots of their orbits."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw

from ..errors import InputError, whole_number

__all__ = ["cloud_picture", "look_from", "molecule_picture"]

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
    points: object,
    mask: object = None,
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


_USUAL = {
    1: ("e8e8e8", 0.31),
    5: ("e8a28e", 0.84),
    6: ("5a5f66", 0.76),
    7: ("4a6fe3", 0.71),
    8: ("e0443e", 0.66),
    9: ("6bbf4b", 0.57),
    14: ("c9a26d", 1.11),
    15: ("e8862b", 1.07),
    16: ("e3c229", 1.05),
    17: ("3fae3f", 1.02),
    35: ("9a3b26", 1.20),
    53: ("7a2a8c", 1.39),
}
_OTHER = ("c05c9b", 1.30)
_BOND, _EDGE = "#8c8c8c", "#262626"
_FINER = 3
"""Pixels of the drawing for each pixel of the picture, to smooth the edges."""


def molecule_picture(
    positions: object,
    numbers: object,
    *,
    size: int = 160,
    yaw_deg: float = YAW_DEG,
    pitch_deg: float = PITCH_DEG,
) -> Array:
    """Draw a molecule as discs and bonds, as seen from the front right and a little above.

    Colors are the usual ones of the elements, as in the interactive view. Atoms are joined if they
    are closer than 1.2 times the sum of their radii.

    Args:
        positions: `[atoms, 3]` in Å, y up, shown from the origin to the farthest atom.
        numbers: `[atoms]`, atomic numbers; 0 is padding.
        size: height and width in pixels.
        yaw_deg: the angle of the viewer to the right.
        pitch_deg: the angle above.

    Returns:
        Colors `[size, size, 3]`, 1 for the background, for `orbical.figures.individual`.

    Raises:
        InputError: if positions and numbers do not fit, or the size is below 8.

    Example:
        >>> picture = molecule_picture([[0.0, 0.0, 0.0], [0.0, 0.0, 1.16]], [6, 8], size=48)
        >>> picture.shape, float(picture[0, 0].min())
        ((48, 48, 3), 1.0)
    """
    kinds = np.asarray(numbers, int)
    atoms = np.asarray(positions, float)
    if kinds.ndim != 1 or atoms.shape != (len(kinds), 3):
        raise InputError(
            "positions",
            "shape [atoms, 3], with numbers [atoms]",
            f"{atoms.shape} and {kinds.shape}",
        )
    size = whole_number("size", size, 8)
    atoms, kinds = atoms[kinds > 0], kinds[kinds > 0]
    if not len(kinds):
        return np.ones((size, size, 3))
    fine = Image.new("RGB", (size * _FINER, size * _FINER), "white")
    pen = ImageDraw.Draw(fine)
    half = size * _FINER / 2
    unit = half * 0.85 / max(float(np.linalg.norm(atoms, axis=1).max()), 0.8)
    across, up, near = look_from(yaw_deg, pitch_deg) @ atoms.T
    places = np.stack([half + across * unit, half - up * unit], -1)
    color, radius = zip(*(_USUAL.get(int(kind), _OTHER) for kind in kinds), strict=True)
    reach = np.linalg.norm(atoms[:, None] - atoms[None], axis=-1)
    bonded = reach < 1.2 * np.add.outer(radius, radius)
    order, disc = np.argsort(near), 0.45 * np.array(radius) * unit
    for rank, atom in enumerate(order):
        for other in order[:rank]:
            if bonded[atom, other]:  # from the edge of the atom that lies behind
                way = places[atom] - places[other]
                start = places[other] + way * min(disc[other] / max(np.hypot(*way), 1e-9), 1.0)
                pen.line([*start, *places[atom]], _BOND, round(0.12 * unit))
        box = [*(places[atom] - disc[atom]), *(places[atom] + disc[atom])]
        pen.ellipse(box, f"#{color[atom]}", _EDGE, _FINER)
    return np.asarray(fine.reduce(_FINER)) / 255
