"""What the pixels of class maps amount to: confusion, confidence by bin, regions, votes.

Everything is a sum over the pixels of a view, or the voxels of a volume, so that what a scan stores
does not grow with the size of the images. Maps are `[K, B, ...]`: element, sample, and the sides.
"""

from __future__ import annotations

import torch
from torch import Tensor

BINS = 15
"""Bins of confidence: those of the calibration error by default, of which 5, 3 and 1 are sums."""
_STEPS = 2**24


def confusion(predicted: Tensor, truth: Tensor, judged: Tensor, classes: int) -> Tensor:
    """Count judged pixels `[K, B, ...]` by true and predicted class, `[K, B, C, C]`.

    >>> maps = torch.tensor([[[0, 1, 1, 1]]])
    >>> confusion(maps, torch.tensor([[[0, 0, 1, 1]]]), maps >= 0, 2)
    tensor([[[[1, 1],
              [0, 2]]]])
    """
    pair = truth.clamp(0, classes - 1).long() * classes + predicted
    counts = _sums_by_cell(pair, judged, classes * classes)
    return counts.reshape(*counts.shape[:-1], classes, classes)


def overlap(counts: Tensor) -> tuple[Tensor, Tensor]:
    """Return intersection and union `[..., C]` of each class from its confusion counts."""
    both = counts.diagonal(dim1=-2, dim2=-1)
    return both, counts.sum(-1) + counts.sum(-2) - both


def confidence_bins(sure: Tensor, right: Tensor, judged: Tensor) -> dict[str, Tensor]:
    """Return count, and sums of confidence and of correctness, by bin of confidence `[..., 15]`.

    Bins are `(lo, hi]`, the first closed at 0, as in `orbical.calibration`: no number in single
    precision is rounded across an edge by the product.
    """
    bins = (sure.nan_to_num(0.0) * BINS).ceil_().sub_(1).clamp_(0, BINS - 1).long()
    count = _sums_by_cell(2 * bins + right.long(), judged, 2 * BINS).unflatten(-1, (BINS, 2))
    return {
        "pixel_count": count.sum(-1).float(),
        "pixel_confidence": _summed(sure, bins, judged, BINS),
        "pixel_correct": count[..., 1].float(),
    }


def binned_error(bins: dict[str, Tensor]) -> Tensor:
    """Return the expected calibration error of the pixels of each view, NaN where there are none.

    >>> sure, right = torch.tensor([[[0.9, 0.9]]]), torch.tensor([[[True, False]]])
    >>> binned_error(confidence_bins(sure, right, sure > 0))
    tensor([[0.4000]])
    """
    apart = (bins["pixel_correct"] - bins["pixel_confidence"]).abs().sum(-1)
    return apart / bins["pixel_count"].sum(-1)


def region_confidence(sure: Tensor, predicted: Tensor, judged: Tensor, count: Tensor) -> Tensor:
    """Return the mean confidence of the `count [..., C]` pixels of each class; NaN if none."""
    return _summed(sure, predicted.long(), judged, count.shape[-1]) / count


def votes(winners: Tensor, valid: Tensor | None, classes: int) -> Tensor:
    """Count how often each class wins at each place, `[B, C, places]`, from `[K, B, ...]`.

    `valid` is `[K, ...]`, or `[K, B, ...]`.
    """
    lead, places = winners.shape[:2], winners[0, 0].numel()
    index = winners.long().flatten(2) * places + torch.arange(places, device=winners.device)
    seen = torch.ones(1, 1, 1, dtype=torch.int32, device=winners.device)
    if valid is not None:
        seen = valid.reshape(lead[0], -1, places).int()
    found = torch.zeros(lead[1], classes * places, dtype=torch.int32, device=winners.device)
    added = (each.transpose(0, 1).flatten(1) for each in (index, seen.expand_as(index)))
    return found.scatter_add_(1, *added).reshape(-1, classes, places)


def disagreement(votes: Tensor) -> dict[str, Tensor]:
    """Return how often un-transformed classes differ along the orbit, `[B]`, from their votes.

    Of the pixels that at least two elements see: the share whose class is not the same at all of
    them, and the share of pairs of elements that disagree.

    >>> winners = torch.tensor([[[[0, 1]]], [[[0, 0]]], [[[0, 0]]]])
    >>> shares = disagreement(votes(winners, None, 2))
    >>> {name: round(float(share), 3) for name, share in shares.items()}
    {'changed_pixels': 0.5, 'changed_pairs': 0.333}
    """
    count = votes.sum(1)
    judged = count > 1
    changed = (votes.amax(1) < count) & judged
    alike = (votes * (votes - 1)).sum(1) / (count * (count - 1)).clamp_min(1)
    total = judged.sum(-1)  # 0 / 0 is NaN: nothing to compare
    return {
        "changed_pixels": changed.sum(-1) / total,
        "changed_pairs": ((1 - alike) * judged).sum(-1) / total,
    }


def _summed(sure: Tensor, cell: Tensor, judged: Tensor, cells: int) -> Tensor:
    """Sum confidences in the cell of each pixel.

    In steps of 2^-24, those of single precision below 1: whole numbers add up to the same sum in
    any order, so that an accelerator repeats its results.
    """
    whole = (sure.nan_to_num(0.0) * _STEPS).round_().long()
    return _sums_by_cell(cell, judged, cells, whole).float() / _STEPS


def _sums_by_cell(cell: Tensor, judged: Tensor, cells: int, values: Tensor | None = None) -> Tensor:
    """Sum values (or ones) `[K, B, ...]` of judged pixels in the cell of each, `[K, B, cells]`."""
    lead = cell.shape[:2]
    views = torch.arange(lead.numel(), device=cell.device).reshape(*lead, *[1] * (cell.ndim - 2))
    # The first cell of each view is for pixels that are not judged; `where` would be slower.
    place = ((cell + 1) * judged + views * (cells + 1)).flatten()
    added = place.new_ones(1).expand_as(place) if values is None else values.flatten()
    found = place.new_zeros(lead.numel() * (cells + 1)).scatter_add_(0, place, added)
    return found.reshape(*lead, cells + 1)[..., 1:]
