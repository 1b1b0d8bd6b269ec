"""Actions on boxes and key points, in pixels of images."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from .._trees import to_device
from ..errors import InputError, whole_number
from ..groups import Elements, Group
from .action import Action, action_matrices, check_affine_action
from .pixel_grids import pixel_frame, projected_grid_places


class _InImages(Action):
    """What is in pixels of images of `height` x `width`, and moves about their center."""

    parts: ClassVar[tuple[str, ...]] = ("plane",)

    def __init__(self, height: int, width: int) -> None:
        self.height = whole_number("height", height, 1)
        self.width = whole_number("width", width, 1)


class Boxes(_InImages):
    """Boxes `[B, n, 4]` as (left, top, right, bottom) pixels in images of `height` x `width`.

    The four corners move about the image center, and the result is the upright box around them,
    which is exact for shifts, flips, quarter turns and scalings. A homography must keep the whole
    image on this side of its horizon. NaN boxes (padding) stay NaN.
    Further columns, such as confidence and class in `[B, n, 6]`, ride along unchanged. `view` is
    the size of a `Window` into which the boxes are carried.

    >>> import torch
    >>> from orbical.groups import flips
    >>> Boxes(10, 10).apply(flips(), torch.tensor([[[0., 0, 2, 4]]]))[1]
    tensor([[[ 8.,  0., 10.,  4.]]])
    """

    def __init__(self, height: int, width: int, view: int | None = None) -> None:
        super().__init__(height, width)
        self.view = None if view is None else whole_number("view", view, 1)

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Move `x[K or 1, B, n, 4 or more]`."""
        frame = pixel_frame(elements)
        linear, shift = frame[:, :2, :2], frame[:, :2, 2]
        middle = np.array([self.width / 2, self.height / 2])
        target = middle if self.view is None else np.full(2, self.view / 2)
        by = action_matrices(shift + target - linear @ middle, x)[:, None, None]
        rest = x[..., 4:].expand(len(elements), *x.shape[1:-1], -1)
        tilt = frame[:, 2, :2]  # not 0 for homographies alone
        if (linear == np.eye(2)).all() and not tilt.any():  # a plain shift needs no corners
            return torch.cat([x[..., :2] + by, x[..., 2:4] + by, rest], -1)
        left, top, right, bottom = x[..., :4].unbind(-1)
        pairs = [torch.stack([a, b], -1) for a in (left, right) for b in (top, bottom)]
        corners = torch.stack(pairs, -2)
        corners = corners.expand(len(elements), *corners.shape[1:])  # [K, B, n, 4, 2]
        turned = torch.einsum("kij,kbncj->kbnci", action_matrices(linear, x), corners)
        moved = turned + by[:, :, :, None]
        if tilt.any():
            away = corners - action_matrices(middle, x)
            depth = 1 + torch.einsum("kj,kbncj->kbnc", action_matrices(tilt, x), away)[..., None]
            goal = action_matrices(target, x)
            moved = goal + (moved - goal) / depth.where(depth > 0, torch.nan)
        return torch.cat([moved.amin(-2), moved.amax(-2), rest], -1)

    def check(self, group: Group, x: Tensor) -> None:
        """Check shape and order of the sides."""
        super().check(group, x)
        if x.ndim != 3 or x.shape[-1] < 4:
            raise InputError("boxes", "shape [sample, box, 4] (left, top, right, bottom)", x)
        if bool(((x[..., 2] < x[..., 0]) | (x[..., 3] < x[..., 1])).any()):
            raise InputError("boxes", "left <= right and top <= bottom")
        half = np.array([self.width, self.height]) / 2
        corners = half * [[1, 1], [1, -1], [-1, 1], [-1, -1]]
        if np.isnan(projected_grid_places(pixel_frame(group), corners)).any():
            raise InputError(
                "group",
                f"homographies that keep images of {self.height} x {self.width} in front of "
                "the camera",
                group.spec,
                remedy="choose smaller angles",
            )


class PixelPoints(_InImages):
    """Key points `[B, n, 2]` as (x, y) pixels from the upper left corner of images.

    They move about the center of the images, of `height` x `width` pixels. Mirrors also exchange
    the pairs in `swaps`, such as left and right hand: the left hand in a mirrored image is the
    right one of the original. Further columns, such as visibility, ride along; NaN stays NaN.

    >>> import torch
    >>> from orbical.groups import flips
    >>> hands = torch.tensor([[[1.0, 4.0], [8.0, 5.0]]])
    >>> PixelPoints(10, 10, swaps=[(0, 1)]).apply(flips(), hands)[1]
    tensor([[[2., 5.],
             [9., 4.]]])
    """

    def __init__(
        self, height: int, width: int, swaps: Iterable[Sequence[int]] | None = None
    ) -> None:
        super().__init__(height, width)
        self.swaps = None if swaps is None else checked_swaps(swaps)

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Move `x[K or 1, B, n, 2 or more]`."""
        frame = pixel_frame(elements)
        linear, shift = frame[:, :2, :2], frame[:, :2, 2]
        middle = np.array([self.width / 2, self.height / 2])
        by = action_matrices(shift + middle - linear @ middle, x)[:, None, None]
        rows = x.expand(len(elements), *x.shape[1:])
        moved = torch.einsum("kij,kbnj->kbni", action_matrices(linear, x), rows[..., :2]) + by
        moved = torch.cat([moved, rows[..., 2:]], -1)
        mirrored = np.linalg.det(linear) < 0
        if not self.swaps or not mirrored.any():
            return moved
        order = torch.arange(x.shape[2])
        for first, second in self.swaps:
            order[first], order[second] = second, first
        chosen = to_device(torch.as_tensor(mirrored), x.device)[:, None, None, None]
        return torch.where(chosen, moved[:, :, to_device(order, x.device)], moved)

    def check(self, group: Group, x: Tensor) -> None:
        """Check the shape of the points, that the pairs are among them, and the mirrors."""
        super().check(group, x)
        if x.ndim != 3 or x.shape[-1] < 2:
            raise InputError("points", "shape [sample, point, 2] (x, y)", x)
        largest = max((max(pair) for pair in self.swaps or ()), default=-1)
        if largest >= x.shape[1]:
            raise InputError("swaps", f"indices of the {x.shape[1]} points", largest)
        self.check_mirrors(group)

    def check_mirrors(self, group: Group) -> None:
        """Raise for mirrors unless `swaps` states which points they exchange."""
        check_affine_action(group, "PixelPoints")
        if self.swaps is None and bool((np.linalg.det(pixel_frame(group)[:, :2, :2]) < 0).any()):
            raise InputError(
                "group",
                problem=f"{group.spec} has mirrors, which exchange left and right",
                remedy="pass swaps= the pairs of points that they exchange, such as [(1, 2), (3, "
                "4)], or [] for none",
            )


class PixelPosition(_InImages):
    """One position `[B, 2]` as (x, y) pixels from the upper left corner of images.

    Args:
        height: the height of the images.
        width: their width.

    Example:
        >>> import torch
        >>> from orbical.groups import flips
        >>> PixelPosition(10, 10).apply(flips(), torch.tensor([[1.0, 4.0]]))[1].tolist()
        [[9.0, 4.0]]
    """

    dims: ClassVar[tuple[str, ...]] = ("sample", "2")

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Move `x[K or 1, B, 2]` about the center of the images."""
        moved: Tensor = PixelPoints(self.height, self.width).move(elements, x[:, :, None])[:, :, 0]
        return moved


def checked_swaps(swaps: Iterable[Sequence[int]]) -> list[list[int]]:
    """Return pairs of indices as lists, each index in one pair only.

    >>> checked_swaps([(1, 2)])
    [[1, 2]]
    """
    try:
        pairs = [[int(first), int(second)] for first, second in swaps]
    except (TypeError, ValueError):
        raise InputError("swaps", "pairs of indices", repr(swaps)) from None
    flat = [index for pair in pairs for index in pair]
    if len({*flat}) < len(flat) or min(flat, default=0) < 0:
        raise InputError("swaps", "each index from 0 in one pair only", pairs)
    return pairs
