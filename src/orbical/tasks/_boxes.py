"""Upright boxes (left, top, right, bottom): areas, overlaps, and the part inside a view."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def area(boxes: Tensor) -> Tensor:
    """Return the areas `[...]` of boxes `[..., 4]`; 0 without width or height.

    Example:
        >>> area(torch.tensor([[0.0, 0, 2, 3], [5, 5, 4, 9]]))
        tensor([6., 0.])
    """
    return _size(*boxes.unbind(-1))


def inverted(boxes: Tensor) -> Tensor:
    """Mark the boxes `[..., 4]` with left > right or top > bottom.

    Example:
        >>> inverted(torch.tensor([[0.0, 0, 2, 3], [5, 5, 4, 9]]))
        tensor([False,  True])
    """
    return (boxes[..., :2] > boxes[..., 2:]).any(-1)


def iou(first: Tensor, second: Tensor) -> Tensor:
    """Return the intersection over union of boxes that broadcast against each other.

        IoU(a, b) = |a and b| / |a or b|, and 0 where both are empty

    Args:
        first: `[..., 4]`.
        second: `[..., 4]`; `iou(a[..., :, None, :], b[..., None, :, :])` gives all pairs.

    Example:
        >>> iou(torch.tensor([0.0, 0, 2, 2]), torch.tensor([[1.0, 0, 3, 2], [8, 8, 9, 9]]))
        tensor([0.3333, 0.0000])
    """
    return iou_of_sides(first.unbind(-1), second.unbind(-1))


def iou_of_sides(first: Sequence[Tensor], second: Sequence[Tensor]) -> Tensor:
    """Return the `iou` of boxes whose four sides are separate arrays, which saves memory."""
    left, top = (torch.maximum(first[side], second[side]) for side in (0, 1))
    right, bottom = (torch.minimum(first[side], second[side]) for side in (2, 3))
    both = _size(left, top, right, bottom)
    either = _size(*first) + _size(*second) - both
    return both / either.clamp_min(torch.finfo(both.dtype).tiny)


def _size(left: Tensor, top: Tensor, right: Tensor, bottom: Tensor) -> Tensor:
    return (right - left).clamp_min_(0) * (bottom - top).clamp_min_(0)


def clip(boxes: Tensor, view: Tensor) -> Tensor:
    """Clip boxes `[..., 4]` to a view `[..., 4]`; the result has no area where they do not meet.

    Example:
        >>> clip(torch.tensor([-5.0, 2, 4, 30]), torch.tensor([0.0, 0, 10, 10]))
        tensor([ 0.,  2.,  4., 10.])
    """
    low = torch.maximum(boxes[..., :2], view[..., :2])
    high = torch.minimum(boxes[..., 2:], view[..., 2:])
    return torch.cat([low, high], -1)
