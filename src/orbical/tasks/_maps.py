"""Means over the valid pixels of maps, and maps reduced to be stored at every element.

Maps are `[..., H, W]`; those of volumes, `[..., D, H, W]`, are reduced to their middle slices.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

MAP_SIDE = 32
"""Cells along the longer side of a reduced map: enough for a view, little to store."""
UNSEEN = -1
"""The class of cells that show nothing."""


def masked_mean(values: Tensor, valid: Tensor | None) -> Tensor:
    """Average maps `[K, B, ...]` over the places that are valid for each element.

    `valid` is `[K, ...]`, or `[K, B, ...]`.
    """
    if valid is None:
        return values.flatten(2).mean(-1)
    mask = _spread(valid, values)
    total = values.where(mask, 0).flatten(2).sum(-1)
    return total / mask.flatten(2).sum(-1).clamp_min(1)


def seen_mean(fields: Tensor, weights: Tensor, valid: Tensor | None) -> Tensor:
    """Average `[K, B, C, ...]` over the elements that see each pixel, to `[B, C, ...]`."""
    if valid is None:
        first = fields[0]
        return first + torch.einsum("k,k...->...", weights.to(fields.dtype), fields - first)
    each = weights.reshape(-1, *[1] * (valid.ndim - 1)).to(fields)
    share = (each * valid)[:, None, None]
    return (share * fields).sum(0) / share.sum(0).clamp_min(1e-12)


def block_means(values: Tensor, valid: Tensor | None, size: int | tuple[int, int]) -> Tensor:
    """Reduce `[K, B, H, W]` to means over the valid pixels of blocks, NaN where there are none."""
    if valid is None:
        return F.adaptive_avg_pool2d(values, size)
    mask = _spread(valid, values)
    share = F.adaptive_avg_pool2d(mask.to(values.dtype), size)
    return F.adaptive_avg_pool2d(values.where(mask, 0), size) / share  # 0 / 0 is NaN


def reduced_means(values: Tensor, valid: Tensor | None) -> Tensor:
    """Reduce maps `[K, B, H, W]`, or the middle slices of `[K, B, D, H, W]`, to block means."""
    if values.ndim == 4:
        height, width = _reduced_sides(values.shape[-2:], MAP_SIDE)
        return block_means(values, valid, (height, width))
    masks = (None,) * 3 if valid is None else middle_slices(_spread(valid, values))
    sizes = _slice_sizes(values, MAP_SIDE)
    parts = zip(middle_slices(values), masks, sizes, strict=True)
    return _joined([block_means(part, mask, size) for part, mask, size in parts], torch.nan)


def middle_pixels(labels: Tensor, side: int = MAP_SIDE) -> Tensor:
    """Reduce labels `[..., H, W]` to those in the middle of blocks: no class is invented.

    >>> middle_pixels(torch.zeros(180, 240)).shape, middle_pixels(torch.zeros(16, 16)).shape
    (torch.Size([24, 32]), torch.Size([16, 16]))
    """
    return _chosen(labels, _reduced_sides(labels.shape[-2:], side))


def reduced_labels(labels: Tensor) -> Tensor:
    """Reduce label maps `[K, B, H, W]`, or the middle slices of `[K, B, D, H, W]`."""
    return middle_pixels(labels) if labels.ndim == 4 else slice_picture(labels, UNSEEN)


def slice_picture(volumes: Tensor, empty: float, side: int = MAP_SIDE) -> Tensor:
    """Show volumes `[..., D, H, W]` by their middle slices, of at most `side` pixels, in one map.

    >>> slice_picture(torch.arange(8).reshape(2, 2, 2), -1)
    tensor([[ 4,  5, -1,  1,  5],
            [ 6,  7, -1,  3,  7],
            [-1, -1, -1, -1, -1],
            [ 2,  3, -1, -1, -1],
            [ 6,  7, -1, -1, -1]])
    """
    sizes = _slice_sizes(volumes, side)
    parts = zip(middle_slices(volumes), sizes, strict=True)
    return _joined([_chosen(part, size) for part, size in parts], empty)


def middle_slices(volumes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the middle slices of `[..., D, H, W]`: row x column, row x depth, depth x column."""
    depth, row, column = (side // 2 for side in volumes.shape[-3:])
    across = volumes[..., column].transpose(-2, -1)
    return volumes[..., depth, :, :], across, volumes[..., row, :]


def _slice_sizes(volumes: Tensor, side: int) -> list[tuple[int, int]]:
    depth, row, column = _reduced_sides(volumes.shape[-3:], side)
    return [(row, column), (row, depth), (depth, column)]


def _joined(slices: list[Tensor], empty: float) -> Tensor:
    """Join three slices so that their axes line up: the second to the right, the third below."""
    first, right, below = slices
    height, width = first.shape[-2:]
    whole = (height + 1 + below.shape[-2], width + 1 + right.shape[-1])
    picture = first.new_full((*first.shape[:-2], *whole), empty)
    picture[..., :height, :width] = first
    picture[..., :height, width + 1 :] = right
    picture[..., height + 1 :, :width] = below
    return picture


def _reduced_sides(sides: tuple[int, ...], side: int) -> tuple[int, ...]:
    """Return the sides of a reduced map, in the proportions of the whole one."""
    factor = min(1.0, side / max(sides))
    return tuple(max(1, round(length * factor)) for length in sides)


def _chosen(maps: Tensor, size: tuple[int, ...]) -> Tensor:
    """Return the pixels of `[..., H, W]` in the middle of rows x columns blocks."""
    row, column = (
        ((torch.arange(cells, device=maps.device) + 0.5) * length / cells).long()
        for cells, length in zip(size, maps.shape[-2:], strict=True)
    )
    return maps[..., row, :][..., column]


def _spread(valid: Tensor, values: Tensor) -> Tensor:
    """Return a mask `[K, ...]` or `[K, B, ...]` in the shape of the values."""
    return (valid if valid.ndim == values.ndim else valid[:, None]).expand_as(values)
