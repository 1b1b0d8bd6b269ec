"""Pictures, labels and points moved by NumPy and Pillow: a second way, without orbical."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from PIL import Image
from torch import Tensor

TILT = 30
"""Degrees."""
UNKNOWN = 255
"""The label of pixels that came into view from outside."""

Move = Callable[[np.ndarray], np.ndarray]


def _quarters(turns: int) -> Move:
    return lambda arrays: np.rot90(arrays, turns, (1, 2))


def tilted(degrees: float) -> Move:
    """Return a turn, counter-clockwise, of pictures `[N, H, W, 3]` and of labels `[N, H, W]`.

    Pictures are interpolated and black outside, labels are not and unknown outside.
    """

    def move(arrays: np.ndarray) -> np.ndarray:
        labels = arrays.ndim == 3
        how = Image.Resampling.NEAREST if labels else Image.Resampling.BICUBIC
        fill = UNKNOWN if labels else (0, 0, 0)
        turned = (Image.fromarray(one).rotate(degrees, how, fillcolor=fill) for one in arrays)
        return np.stack([np.asarray(one) for one in turned])

    return move


FAMILIES: Mapping[str, tuple[Move, ...]] = {
    "mirrored": (lambda arrays: arrays[:, :, ::-1],),
    "tilted": (tilted(TILT), tilted(-TILT)),
    "rotated": tuple(_quarters(turns) for turns in (1, 2, 3)),
}
"""Moves of pictures and of their labels."""


def tilted_and_back(arrays: np.ndarray) -> np.ndarray:
    """Return upright pictures that were interpolated as often as two tilts are: a control."""
    return tilted(-TILT)(tilted(TILT)(arrays))


def as_bytes(images: Tensor) -> np.ndarray:
    """Return images `[N, 3, H, W]` in 0..1 as pictures `[N, H, W, 3]` in 0..255."""
    return (255 * images.clamp(0, 1)).round().byte().permute(0, 2, 3, 1).numpy()


def as_images(pictures: np.ndarray) -> Tensor:
    """Return pictures `[N, H, W, 3]` in 0..255 as images `[N, 3, H, W]` in 0..1."""
    return torch.from_numpy(pictures.copy()).permute(0, 3, 1, 2).float() / 255


def middle(arrays: np.ndarray, side: int) -> np.ndarray:
    """Cut the middle `side` x `side` pixels out of arrays `[N, H, W, ...]`."""
    edge = (arrays.shape[1] - side) // 2
    return arrays[:, edge : edge + side, edge : edge + side]


def tilted_points(points: Tensor, degrees: float, side: int) -> Tensor:
    """Turn the x and y of points `[..., 2]` counter-clockwise about the middle of a picture."""
    angle = torch.deg2rad(torch.tensor(degrees, dtype=points.dtype))
    x, y = (points - side / 2).unbind(-1)
    turned = [x * angle.cos() + y * angle.sin(), y * angle.cos() - x * angle.sin()]
    return torch.stack(turned, -1) + side / 2
