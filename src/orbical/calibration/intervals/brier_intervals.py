"""Intervals of the two parts of a Brier score, calibration and refinement.

Both come from an isotonic regression of each class, which adapts to noise: it finds a little
miscalibration in every calibrated model, and takes as much from the refinement. The calibration
part estimates the square of a distance and has the interval of `intervals`; the refinement's upper
end is raised by what a calibrated model would lose to the fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ..._arrays import ArrayLike, checked_label_array
from ..measures.proper_scores import brier_parts, brier_terms, isotonic_brier_remainder
from ..pairs.from_outputs import named_outputs, probabilities
from .cautions import caution, caution_evidence_of_pairs
from .cells import fine_cell_index
from .interval_ends import (
    Interval,
    distance_interval,
    skew_missed_at_interval_end,
    tail_interval_ends,
)
from .levels import check_draws
from .resampling import resample_blocks

__all__ = ["brier_part_intervals"]


_WORK = 1 << 28
"""Largest number of additions of all draws together; very large outputs get fewer draws."""

_FITS = 40_000
"""Largest number of isotonic regressions in each world; many classes get fewer draws, too."""

_FEWEST = 20

_WIDER = 1.25
"""How much more a fit loses than the resamples of a fitted model show."""


@named_outputs
def brier_part_intervals(
    *,
    probs: ArrayLike | None = None,
    logits: ArrayLike | None = None,
    labels: ArrayLike,
    level: float = 0.95,
    resamples: int = 200,
    seed: int = 0,
) -> dict[str, Interval]:
    """Return `brier_calibration` and `brier_refinement` of `brier_parts`, with intervals.

    Args:
        probs: probabilities `[N, C]`; or
        logits: scores `[N, C]`. Pass exactly one of the two.
        labels: class indices `[N]`.
        level: nominal coverage.
        resamples: number of draws from each of two worlds; fewer where `N C` or C is large.
        seed: seed of the draws.

    Returns:
        The two intervals, by name.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> z = rng.uniform(0.5, 1, 500)
        >>> found = brier_part_intervals(probs=np.stack([z, 1 - z], 1),
        ...                              labels=(rng.random(500) > z).astype(int), resamples=50)
        >>> bool(found["brier_calibration"].low == 0)
        True
    """
    check_draws(level, resamples)
    parts = brier_parts(probs=probs, logits=logits, labels=labels)
    p = probabilities(probs=probs, logits=logits).detach().double().cpu()
    truth = checked_label_array(labels, p).cpu()
    index, cells = fine_cell_index(p.T.contiguous())
    draws = max(_FEWEST, min(resamples, _WORK // p.numel(), _FITS // p.shape[-1]))
    generator = np.random.default_rng(seed)
    again: list[tuple[float, float]] = []
    chance: list[tuple[float, float]] = []
    drawing = _BrierDrawing(p, index, cells)
    for block in resample_blocks(draws, len(p)):
        shape = (block, len(p))
        weight, uniform = np.empty(shape, np.float32), np.empty(shape)
        for row in range(block):
            weight[row] = generator.poisson(1.0, len(p))
            uniform[row] = generator.random(len(p))
        again += drawing.resampled(truth, torch.from_numpy(weight))
        chance += drawing.calibrated(torch.from_numpy(uniform))
    observed = torch.stack([parts.calibration, parts.refinement]).cpu()
    resampled, calibrated = (torch.tensor(part, dtype=torch.float64) for part in (again, chance))
    here, drawn, right = (
        part[..., 0].clamp(min=0).sqrt() for part in (observed, resampled, calibrated)
    )
    low, high = distance_interval(here, drawn, right, level)
    low, high = low.square(), (high + skew_missed_at_interval_end(drawn, level)).square()
    below, middle, above = tail_interval_ends(resampled[:, 1], level)
    lost = calibrated[:, 0].mean()
    left = observed[1]
    found = {
        "brier_calibration": _interval(observed[0], low, high, calibrated[:, 0], level),
        "brier_refinement": _interval(
            left,
            (left - (middle - below)).clamp(min=0),
            left
            + _WIDER * (above - middle + lost)
            + skew_missed_at_interval_end(resampled[:, 1], level),
            calibrated[:, 1],
            level,
        ),
    }
    seen = caution_evidence_of_pairs(p.argmax(-1) == truth)
    return {name: replace(one, caution=caution(name, seen)) for name, one in found.items()}


def _interval(value: Tensor, low: Tensor, high: Tensor, chance: Tensor, level: float) -> Interval:
    least, _, most = tail_interval_ends(chance, level)
    return Interval(value, low, high, chance.mean(), least, most, level, "isotonic, two worlds")


class _BrierDrawing:
    """Outputs in cells of each class, and the two parts of their score for drawn samples."""

    def __init__(self, p: Tensor, index: Tensor, cells: int) -> None:
        self.p, self.cells = p, cells
        self.squares = p.square().sum(-1)
        # Cells are numbered through all classes: sample i of class k is in cell `place[i, k]`.
        first = cells * torch.arange(len(index))
        self.place = index.T + first
        # The samples in the order of their cells, class by class, and where each cell begins.
        order = np.argsort(index.short().numpy(), axis=-1, kind="stable")  # a radix sort
        self.inside = torch.from_numpy(order).flatten()
        count = torch.bincount(self.place.flatten(), minlength=cells * len(index))
        self.every = np.append(0.0, count.cumsum(0).double().numpy())
        self.begins = count.cumsum(0) - count

    def resampled(self, truth: Tensor, weight: Tensor) -> Iterator[tuple[float, float]]:
        """Yield the parts of samples counted by draw `[R, N]`, in float32 for speed alone."""
        score = weight.double() @ brier_terms(self.p, truth)
        right = self.place.gather(-1, truth[:, None])[:, 0].numpy()
        columns = weight.T.contiguous()
        sums = functional.embedding_bag(self.inside, columns, self.begins, mode="sum").T
        for each, sum_, total in zip(weight.double().numpy(), sums, score.tolist(), strict=True):
            before = np.append(0.0, sum_.double().cumsum(0).numpy())
            left = isotonic_brier_remainder(right, each, before, self.cells)
            yield _parts(total, left, each.sum())

    def calibrated(self, uniform: Tensor) -> Iterator[tuple[float, float]]:
        """Yield the parts of samples whose labels are drawn by uniform numbers `[R, N]`."""
        upto = self.p.cumsum(-1)
        label = torch.searchsorted(upto, uniform.T.contiguous() * upto[:, -1:])
        label = label.clamp_(max=self.p.shape[-1] - 1)
        score = (self.squares[:, None] - 2 * self.p.gather(-1, label) + 1).sum(0)
        places = self.place.gather(-1, label).T.contiguous().numpy()
        for place, total in zip(places, score.tolist(), strict=True):
            left = isotonic_brier_remainder(place, None, self.every, self.cells)
            yield _parts(total, left, len(place))


def _parts(score: float, left: float, total: float) -> tuple[float, float]:
    """Return calibration and refinement from sums over samples of so much weight."""
    refinement = left / max(total, 1.0)
    return max(score / max(total, 1.0) - refinement, 0.0), refinement
