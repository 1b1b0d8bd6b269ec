"""A central view of pairs and fields that turns inside larger ones: no border is invented.

An image turned by 45 degrees has corners that no camera saw. Where the group is not D4, a model
should see only what was seen: `PairWindow` gives it the central `size` pixels of pairs that are
large enough for every element, and `FieldWindow` moves its answers, and the larger truth, alike.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..errors import InputError, whole_number
from ..groups import Elements, Group
from .action import relative_loss
from .on_images import ImagePair, Images, VectorField, check_large
from .pixel_grids import check_affine, inside_of, pixel_frame


def largest_view(elements: Elements, height: int, width: int) -> int:
    """Return the side of the largest central square that no element moves out of an image.

    >>> from orbical.groups import rotations
    >>> largest_view(rotations(8), 256, 256)    # (256 - 1) / sqrt(2) + 1
    181
    """
    back = pixel_frame(elements.inverse())
    reach = np.abs(back[:, :2, :2]).sum(-1)  # of a square of half-side 1, along each axis
    room = np.array([(width - 1) / 2, (height - 1) / 2]) - np.abs(back[:, :2, 2])
    return max(0, int(np.floor(1 + 2 * float((room / reach).min()) + 1e-9)))


def central(x: Tensor, size: int) -> Tensor:
    """Return the central square of `[..., H, W]`.

    >>> import torch
    >>> central(torch.arange(16).reshape(4, 4), 2)
    tensor([[ 5,  6],
            [ 9, 10]])
    """
    top, left = (x.shape[-2] - size) // 2, (x.shape[-1] - size) // 2
    return x[..., top : top + size, left : left + size]


class _Central(Images):
    """What pairs and fields share: the central `size` pixels, resampled from the whole."""

    _fixed = frozenset({"padding"})

    def __init__(self, size: int, interpolation: str = "bicubic") -> None:
        super().__init__(interpolation, "border")
        self.size = whole_number("size", size, 1)

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Move `x[K or 1, B, ..., H, W]` to `[K, B, ..., size, size]`."""
        return super().move(elements, central(x, self.size) if elements.exact_on_grid else x)

    def _resample(self, elements: Elements, x: Tensor, size: tuple[int, ...]) -> Tensor:
        return super()._resample(elements, x, (self.size, self.size))


class PairWindow(_Central, ImagePair):
    """The central `size` pixels of larger pairs `[B, 2, C, H, W]`, turned inside them.

    `interpolation` is that of `Images`; nothing lies outside, so there is no padding.

    >>> import torch
    >>> from orbical.groups import rotations
    >>> PairWindow(32).apply(rotations(8), torch.rand(1, 2, 1, 48, 48)).shape
    torch.Size([8, 1, 2, 1, 32, 32])
    """

    def valid(self, elements: Elements, x: Tensor) -> Tensor | None:
        """Return None: `check` ensures that everything comes from inside."""
        return None

    def defect(self, elements: Elements, x: Tensor, moved: Tensor | None = None) -> Tensor:
        """Measure what resampling there and back costs inside the view; exact moves are free."""
        if elements.exact_on_grid:
            return torch.zeros(len(elements), len(x), device=x.device)
        there = ImagePair(self.interpolation, self.padding).apply(elements, x)
        return relative_loss(self.move(elements.inverse(), there), central(x, self.size)[None])

    def check(self, group: Group, x: Tensor) -> None:
        """Check that no element takes the view out of the images."""
        super().check(group, x)
        check_affine(group, "PairWindow")
        height, width = x.shape[-2:]
        largest = min(largest_view(group, height, width), height, width)
        if self.size > largest:
            raise InputError(
                "group",
                problem=f"{group.spec} takes the central view of {self.size} pixels out of images "
                f"of {height} x {width}",
                remedy=f"the largest admissible size is {largest}",
            )
        if (height - self.size) % 2 or (width - self.size) % 2:
            raise InputError(
                "size",
                f"a number as even or odd as the images of {height} x {width}, so that the "
                "view lies on whole pixels",
                self.size,
            )


class FieldWindow(_Central, VectorField):
    """Displacements of the central `size` pixels: answers `[B, 2, size, size]`, or larger truth."""

    def valid(self, elements: Elements, x: Tensor) -> Tensor | None:
        """Return a mask of the pixels of the view that come from inside `x`; None if all do."""
        if elements.exact_on_grid:
            return None
        inside = inside_of(elements, (self.size, self.size), x)
        return None if bool(inside.all()) else inside

    def check(self, group: Group, x: Tensor) -> None:
        """Check the size of what moves."""
        super().check(group, x)
        check_large(x, self.size)
