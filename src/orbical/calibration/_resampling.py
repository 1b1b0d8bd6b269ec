"""Resampled samples, and labels drawn as for a calibrated model.

Two worlds for every measure: the data with replacement, and the same predictions with outcomes
drawn from them. Nothing here loops over single resamples; blocks of them are bounded in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ._bound import BoundMeasure
from ._cells import Cells, Tally, tally

BLOCK = 1 << 22
"""Values that are kept in memory at once while resamples are drawn."""


@dataclass(frozen=True)
class PairedWorlds:
    """Distances of two models, drawn together.

    Attributes:
        observed: `[2]`, of the data.
        resampled: `[2, R]`, both on the same samples drawn again.
        calibrated: `[2, R]`, with labels drawn from each model's confidences.
    """

    observed: Tensor
    resampled: Tensor
    calibrated: Tensor

    @classmethod
    def joined(cls, draws: list[tuple[Tensor, Tensor, Tensor, Tensor]]) -> PairedWorlds:
        """Join the draws of both models, less the estimates of the calibrated world."""
        observed, resampled, calibrated, _ = (
            torch.stack(part) for part in zip(*draws, strict=True)
        )
        return cls(observed, resampled, calibrated)


def blocks_of(resamples: int, numbers: int) -> list[int]:
    """Split resamples of `numbers` values each into blocks that fit in memory.

    >>> blocks_of(5, BLOCK // 2)
    [2, 2, 1]
    """
    size = max(1, min(resamples, BLOCK // max(numbers, 1)))
    return [min(size, resamples - start) for start in range(0, resamples, size)]


def _uniform(shape: tuple[int, ...], generator: np.random.Generator, like: Tensor) -> Tensor:
    return torch.from_numpy(generator.random(shape)).to(like.device)


def distance_of(measure: BoundMeasure) -> Callable[..., Tensor]:
    """Return the function whose draws make an interval, its values in float64 on the CPU."""
    function = measure.value if measure.distance is None else measure.distance

    def of_samples(*given: Tensor, **weights: Tensor) -> Tensor:
        return function(*given, **weights).detach().double().cpu()

    return of_samples


def drawn_pairs(
    measure: BoundMeasure,
    confidence: Tensor,
    correct: Tensor,
    resamples: int,
    generator: np.random.Generator,
    weights: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Evaluate a function on samples drawn again, and on labels drawn from the confidences.

    Weights `[..., N]` are drawn with their samples, and kept where labels are drawn.
    """
    fixed = {} if weights is None else {"weights": weights}
    distance, size = distance_of(measure), confidence.shape[-1]
    again, chance, estimates = [], [], []
    for block in blocks_of(resamples, confidence.numel()):
        index = torch.from_numpy(generator.integers(0, size, (block, size))).to(confidence.device)
        redrawn = {name: part[..., index] for name, part in fixed.items()}
        again.append(distance(confidence[..., index], correct[..., index], **redrawn))
        labels = _uniform((block, *confidence.shape), generator, confidence) < confidence
        chance.append(distance(confidence.expand_as(labels), labels, **fixed))
        if measure.distance not in (None, measure.value):
            value = measure.value(confidence.expand_as(labels), labels, **fixed)
            estimates.append(value.detach().double().cpu())
    observed, calibrated = distance(confidence, correct, **fixed), torch.cat(chance)
    values = torch.cat(estimates) if estimates else calibrated
    return observed, torch.cat(again, -1).movedim(-1, 0), calibrated, values


def paired_worlds(
    measure: BoundMeasure,
    pairs: list[tuple[Tensor, Tensor, Tensor | None]],
    resamples: int,
    seed: int,
) -> PairedWorlds:
    """Draw two models' pairs `(confidence, correct, weights)` again, sample by sample together."""
    if measure.index is not None and pairs[0][2] is None:
        return _paired_cells(measure, [given[:2] for given in pairs], resamples, seed)
    # The same seed for both: they are drawn again on the same samples.
    draws = (
        drawn_pairs(measure, z, hit, resamples, np.random.default_rng(seed), mass)
        for z, hit, mass in pairs
    )
    return PairedWorlds.joined(list(draws))


def _paired_cells(
    measure: BoundMeasure, pairs: list[tuple[Tensor, Tensor]], resamples: int, seed: int
) -> PairedWorlds:
    """Draw cells again: samples that share their cells in both models are drawn at once."""
    assert measure.index is not None
    assert measure.cell_distance is not None
    distance = measure.cell_distance
    tallies, codes = [], []
    for confidence, correct in pairs:
        index, count = measure.index(confidence[None])
        tallies.append(tally(confidence[None], correct[None], index, count))
        codes.append((2 * index[0] + correct.long()).cpu())
    width = 2 * tallies[1].right.shape[-1]
    joint, number = torch.unique(codes[0] * width + codes[1], return_counts=True)
    kinds = torch.stack([joint // width, joint % width])
    again, generator = [], np.random.default_rng(seed)
    for block in blocks_of(resamples, kinds.shape[1]):
        drawn = generator.poisson(number.numpy(), (block, len(number)))
        counts = torch.from_numpy(drawn).double()
        both = [
            distance(_from_kinds(gathered, kind, counts))[:, 0]
            for gathered, kind in zip(tallies, kinds, strict=True)
        ]
        again.append(torch.stack(both))
    # The same seed for both: a model and its copy are drawn alike.
    calibrated = [
        torch.cat([distance(part)[:, 0] for part in drawn])
        for drawn in (one.calibrated(resamples, np.random.default_rng(seed)) for one in tallies)
    ]
    observed = [distance(gathered.observed())[0] for gathered in tallies]
    return PairedWorlds(torch.stack(observed), torch.cat(again, dim=1), torch.stack(calibrated))


def _from_kinds(gathered: Tally, kind: Tensor, counts: Tensor) -> Cells:
    """Return the cells `[R, 1, G]` of samples counted by kind, `[R, K]`."""
    cells = gathered.right.shape[-1]
    sums = torch.zeros(len(counts), 2 * cells, dtype=torch.float64).index_add_(1, kind, counts)
    split = sums.view(-1, 1, cells, 2)
    return gathered.cells(split[..., 1], split[..., 0])
