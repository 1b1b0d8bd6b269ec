"""Upright boxes (left, top, right, bottom): areas, overlaps, and the part that a view shows."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def area(boxes: Tensor) -> Tensor:
    """Give the areas `[...]` of boxes `[..., 4]`; a box without width or height has none.

    >>> area(torch.tensor([[0.0, 0, 2, 3], [5, 5, 4, 9]]))
    tensor([6., 0.])
    """
    return _size(*boxes.unbind(-1))


def turned(boxes: Tensor) -> Tensor:
    """Tell which boxes `[..., 4]` have two sides exchanged, left > right or top > bottom.

    >>> turned(torch.tensor([[0.0, 0, 2, 3], [5, 5, 4, 9]]))
    tensor([False,  True])
    """
    return (boxes[..., :2] > boxes[..., 2:]).any(-1)


def iou(first: Tensor, second: Tensor) -> Tensor:
    """Give the intersection over union of boxes that broadcast against each other.

        IoU(a, b) = |a and b| / |a or b|, and 0 where both are empty

    Args:
        first: `[..., 4]`.
        second: `[..., 4]`; `iou(a[..., :, None, :], b[..., None, :, :])` gives all pairs.

    >>> iou(torch.tensor([0.0, 0, 2, 2]), torch.tensor([[1.0, 0, 3, 2], [8, 8, 9, 9]]))
    tensor([0.3333, 0.0000])
    """
    return iou_of_sides(first.unbind(-1), second.unbind(-1))


def iou_of_sides(first: Sequence[Tensor], second: Sequence[Tensor]) -> Tensor:
    """Give the `iou` of boxes whose four sides are arrays of their own.

    Side by side rather than stacked: no array of four numbers a pair is ever made.
    """
    left, top = (torch.maximum(first[side], second[side]) for side in (0, 1))
    right, bottom = (torch.minimum(first[side], second[side]) for side in (2, 3))
    both = _size(left, top, right, bottom)
    either = _size(*first) + _size(*second) - both
    return both / either.clamp_min(torch.finfo(both.dtype).tiny)


def _size(left: Tensor, top: Tensor, right: Tensor, bottom: Tensor) -> Tensor:
    return (right - left).clamp_min_(0) * (bottom - top).clamp_min_(0)


def cut(boxes: Tensor, view: Tensor) -> Tensor:
    """Give the part of boxes `[..., 4]` inside a view `[..., 4]`; without area where there is none.

    >>> cut(torch.tensor([-5.0, 2, 4, 30]), torch.tensor([0.0, 0, 10, 10]))
    tensor([ 0.,  2.,  4., 10.])
    """
    low = torch.maximum(boxes[..., :2], view[..., :2])
    high = torch.minimum(boxes[..., 2:], view[..., 2:])
    return torch.cat([low, high], -1)
