"""The action on the colors of images."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from ..errors import InputError
from ..groups import Elements, Group
from .base import matrices
from .images import Images


class ColorImages(Images):
    """Images `[B, 3, H, W]` in red, green and blue: moved as `Images`, and recolored.

    `hue` and `brightness` change the colors, groups of the plane move the pixels, and a product
    such as `rotations:8*hue:6` does both. Colors are not clipped. `interpolation` and
    `padding` are those of `Images`.

    >>> import torch
    >>> from orbical.groups import hue
    >>> red = torch.tensor([1.0, 0, 0]).reshape(1, 3, 1, 1)
    >>> ColorImages().apply(hue(3), red)[1].flatten()
    tensor([0., 1., 0.])
    """

    parts: ClassVar[tuple[str, ...]] = ("plane", "color")
    in_place: ClassVar[tuple[str, ...]] = ("color",)

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Move and recolor `x[K or 1, B, 3, H, W]`."""
        moved = super().move(elements, x)
        if "color" not in elements.parts:
            return moved
        colors = matrices(elements.parts["color"], moved)[:, None]  # [K, 1, 4, 4]
        mixed = colors[..., :3, :3] @ moved.flatten(-2)
        return (mixed + colors[..., :3, 3:]).reshape(moved.shape)

    def check(self, group: Group, x: Tensor) -> None:
        """Check that there are three channels."""
        super().check(group, x)
        if x.shape[1] != 3:
            raise InputError(
                "data",
                "images [sample, 3, row, column] in red, green and blue for the action ColorImages",
                f"shape {tuple(x.shape)}",
            )
