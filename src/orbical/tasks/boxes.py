"""Upright boxes (left, top, right, bottom): areas, overlaps, and the part that a view shows."""

from __future__ import annotations

import torch
from torch import Tensor


def area(boxes: Tensor) -> Tensor:
    """Give the areas `[...]` of boxes `[..., 4]`; a box without width or height has none.

    >>> area(torch.tensor([[0.0, 0, 2, 3], [5, 5, 4, 9]]))
    tensor([6., 0.])
    """
    left, top, right, bottom = boxes.unbind(-1)
    return (right - left).clamp_min(0) * (bottom - top).clamp_min(0)


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
    # Side by side rather than stacked: no array of four numbers a pair is ever made.
    left = torch.maximum(first[..., 0], second[..., 0])
    top = torch.maximum(first[..., 1], second[..., 1])
    right = torch.minimum(first[..., 2], second[..., 2])
    bottom = torch.minimum(first[..., 3], second[..., 3])
    both = (right - left).clamp_min_(0) * (bottom - top).clamp_min_(0)
    either = area(first) + area(second) - both
    return both / either.clamp_min(torch.finfo(both.dtype).tiny)


def cut(boxes: Tensor, view: Tensor) -> Tensor:
    """Give the part of boxes `[..., 4]` inside a view `[..., 4]`; without area where there is none.

    >>> cut(torch.tensor([-5.0, 2, 4, 30]), torch.tensor([0.0, 0, 10, 10]))
    tensor([ 0.,  2.,  4., 10.])
    """
    low = torch.maximum(boxes[..., :2], view[..., :2])
    high = torch.minimum(boxes[..., 2:], view[..., 2:])
    return torch.cat([low, high], -1)
