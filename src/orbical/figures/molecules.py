"""Small pictures of molecules in the colors of their elements, to show next to their orbits."""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from ..errors import InputError, whole_number
from .clouds import PITCH_DEG, YAW_DEG, look_from

__all__ = ["molecule_picture"]

Array = np.ndarray
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
    positions: Any,
    numbers: Any,
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
