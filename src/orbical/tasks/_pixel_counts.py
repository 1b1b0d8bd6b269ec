"""What the pixels of class maps amount to: confusion, confidence by bin, regions, votes.

Everything is a sum over the pixels of a view, or the voxels of a volume, so that what a scan stores
does not grow with the size of the images. Maps are `[K, B, ...]`: element, sample, and the sides.
"""

from __future__ import annotations

import torch
from torch import Tensor

BINS = 15
"""Bins of confidence: those of the calibration error by default, of which 5, 3 and 1 are sums."""


def confusion(predicted: Tensor, truth: Tensor, judged: Tensor, classes: int) -> Tensor:
    """Count judged pixels `[K, B, ...]` by true and predicted class, `[K, B, C, C]`.

    >>> maps = torch.tensor([[[0, 1, 1, 1]]])
    >>> confusion(maps, torch.tensor([[[0, 0, 1, 1]]]), maps >= 0, 2)
    tensor([[[[1, 1],
              [0, 2]]]])
    """
    pair = truth.clamp(0, classes - 1).long() * classes + predicted.long()
    counts = _sums_by_cell(pair, judged, classes * classes, None)
    return counts.reshape(*counts.shape[:-1], classes, classes).long()


def overlap(counts: Tensor) -> tuple[Tensor, Tensor]:
    """Return intersection and union `[..., C]` of each class from its confusion counts."""
    both = counts.diagonal(dim1=-2, dim2=-1)
    return both, counts.sum(-1) + counts.sum(-2) - both


def confidence_bins(sure: Tensor, right: Tensor, judged: Tensor) -> dict[str, Tensor]:
    """Return count, and sums of confidence and of correctness, by bin of confidence `[..., 15]`.

    Bins are `(lo, hi]`, the first closed at 0, as in `orbical.calibration`.
    """
    edges = (torch.arange(1, BINS, dtype=torch.float64) / BINS).to(sure)
    index = torch.bucketize(sure.contiguous(), edges)
    values = {"pixel_count": None, "pixel_confidence": sure, "pixel_correct": right}
    found = {name: _sums_by_cell(index, judged, BINS, part) for name, part in values.items()}
    return {name: part.float() for name, part in found.items()}


def binned_error(bins: dict[str, Tensor]) -> Tensor:
    """Return the expected calibration error of the pixels of each view, NaN where there are none.

    >>> sure, right = torch.tensor([[[0.9, 0.9]]]), torch.tensor([[[1.0, 0.0]]])
    >>> binned_error(confidence_bins(sure, right, sure > 0))
    tensor([[0.4000]])
    """
    apart = (bins["pixel_correct"] - bins["pixel_confidence"]).abs().sum(-1)
    return apart / bins["pixel_count"].sum(-1)


def region_confidence(sure: Tensor, predicted: Tensor, judged: Tensor, classes: int) -> Tensor:
    """Return the mean confidence `[..., C]` of the pixels predicted as each class; NaN if none."""
    total = _sums_by_cell(predicted, judged, classes, sure)
    count = _sums_by_cell(predicted, judged, classes, None)
    return (total / count).float()


def disagreement(winners: Tensor, valid: Tensor | None, classes: int) -> dict[str, Tensor]:
    """Return how often un-transformed classes `[K, B, ...]` differ along the orbit, `[B]`.

    Of the pixels that at least two elements see: the share whose class is not the same at all of
    them, and the share of pairs of elements that disagree.

    >>> winners = torch.tensor([[[[0, 1]]], [[[0, 0]]], [[[0, 0]]]])
    >>> {name: round(float(share), 3) for name, share in disagreement(winners, None, 2).items()}
    {'changed_pixels': 0.5, 'changed_pairs': 0.333}
    """
    votes = torch.zeros(winners.shape[1], classes, *winners.shape[2:], device=winners.device)
    for place, winner in enumerate(winners):
        seen = torch.ones_like(winner) if valid is None else valid[place].expand_as(winner)
        votes.scatter_add_(1, winner[:, None].long(), seen[:, None].to(votes))
    count = votes.sum(1)
    judged = (count > 1).to(votes)
    changed = (votes.amax(1) < count).to(votes) * judged
    alike = (votes * (votes - 1)).sum(1) / (count * (count - 1)).clamp_min(1)
    total = judged.flatten(1).sum(-1)  # 0 / 0 is NaN: nothing to compare
    return {
        "changed_pixels": changed.flatten(1).sum(-1) / total,
        "changed_pairs": ((1 - alike) * judged).flatten(1).sum(-1) / total,
    }


def _sums_by_cell(cell: Tensor, judged: Tensor, cells: int, values: Tensor | None) -> Tensor:
    """Sum values (or ones) `[K, B, ...]` of judged pixels in the cell of each, `[K, B, cells]`."""
    lead = cell.shape[:2]
    total = lead.numel() * cells
    views = torch.arange(lead.numel(), device=cell.device).reshape(*lead, *[1] * (cell.ndim - 2))
    place = (views * cells + cell).where(judged, total)  # one more cell, for what is not judged
    added = None if values is None else values.double().expand_as(place).flatten()
    found = torch.bincount(place.flatten(), added, minlength=total + 1)[:total]
    return found.double().reshape(*lead, cells)
