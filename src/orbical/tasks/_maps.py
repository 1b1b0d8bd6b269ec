"""Means over the valid pixels of maps, and maps reduced to be stored at every element."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

MAP_SIDE = 32
"""Cells along the longer side of a reduced map: enough for a view, little to store."""


def masked_mean(values: Tensor, valid: Tensor | None) -> Tensor:
    """Average `[K, B, H, W]` over the places that are valid for each element.

    `valid` is `[K, H, W]`, or `[K, B, H, W]`.
    """
    if valid is None:
        return values.mean((-2, -1))
    mask = _spread(valid, values)
    total = values.where(mask, 0).sum((-2, -1))
    return total / mask.sum((-2, -1)).clamp_min(1)


def seen_mean(fields: Tensor, weights: Tensor, valid: Tensor | None) -> Tensor:
    """Average `[K, B, C, H, W]` over the elements that see each pixel, to `[B, C, H, W]`."""
    if valid is None:
        first = fields[0]
        return first + torch.einsum("k,k...->...", weights.to(fields.dtype), fields - first)
    share = (weights[:, None, None].to(fields) * valid)[:, None, None]
    return (share * fields).sum(0) / share.sum(0).clamp_min(1e-12)


def block_means(values: Tensor, valid: Tensor | None, size: int | tuple[int, int]) -> Tensor:
    """Reduce `[K, B, H, W]` to means over the valid pixels of blocks, NaN where there are none."""
    if valid is None:
        return F.adaptive_avg_pool2d(values, size)
    mask = _spread(valid, values)
    share = F.adaptive_avg_pool2d(mask.to(values.dtype), size)
    return F.adaptive_avg_pool2d(values.where(mask, 0), size) / share  # 0 / 0 is NaN


def reduced_size(height: int, width: int, side: int = MAP_SIDE) -> tuple[int, int]:
    """Return rows and columns of a reduced map, in the proportions of the whole one.

    >>> reduced_size(180, 240), reduced_size(16, 16)
    ((24, 32), (16, 16))
    """
    factor = min(1.0, side / max(height, width))
    return max(1, round(height * factor)), max(1, round(width * factor))


def middle_pixels(labels: Tensor, side: int = MAP_SIDE) -> Tensor:
    """Reduce labels `[..., H, W]` to those in the middle of blocks: no class is invented."""
    height, width = labels.shape[-2:]
    rows, columns = reduced_size(height, width, side)
    row = ((torch.arange(rows, device=labels.device) + 0.5) * height / rows).long()
    column = ((torch.arange(columns, device=labels.device) + 0.5) * width / columns).long()
    return labels[..., row, :][..., column]


def _spread(valid: Tensor, values: Tensor) -> Tensor:
    """Return a mask `[K, H, W]` or `[K, B, H, W]` in the shape of the values."""
    return (valid if valid.ndim == values.ndim else valid[:, None]).expand_as(values)
