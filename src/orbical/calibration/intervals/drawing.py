"""Targets drawn again, and drawn as predicted: the two worlds of a regression measure.

Predictions are `[..., N, d]` here, d = 1 for a single target; leading axes are positions along an
orbit, whose samples are drawn together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..._arrays import ArrayLike, as_floating
from ...errors import InputError
from ..measures.gaussian import vector_target, whitened
from ..registry import BoundMeasure, OfWhitened
from .cells import Cells, Tally, tally


def as_vectors(
    mean: ArrayLike, variance: ArrayLike, target: ArrayLike
) -> tuple[Tensor, Tensor, Tensor]:
    """Check predictions, and give `[N]` the axis of a single coordinate; float64.

    Example:
        >>> mean, variance, target = as_vectors([0.0, 0.0], [1.0, 1.0], [1.0, 2.0])
        >>> mean.shape
        torch.Size([2, 1])
    """
    vector_target(mean, variance, target)
    given = (("mean", mean), ("variance", variance), ("target", target))
    tensors = [as_floating(name, values).detach().double() for name, values in given]
    if tensors[0].ndim == 1:
        tensors = [part[:, None] for part in tensors]
    mean, variance, target = tensors
    return mean, variance, target


def on_vectors(measure: BoundMeasure, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return a measure's function in the form that takes `[..., N, d]` and returns `[...]`.

    A user's function of unknown form is tried on `[..., N]` first where there is one coordinate.
    """

    def of_one(mean: Tensor, variance: Tensor, target: Tensor, **weights: Tensor) -> Tensor:
        spread = variance[..., 0] if variance.ndim == mean.ndim else variance[..., 0, 0]
        return function(mean[..., 0], spread, target[..., 0], **weights)

    def answer(mean: Tensor, variance: Tensor, target: Tensor, **weights: Tensor) -> Tensor:
        single = mean.shape[-1] == 1
        if measure.one_target and not single:
            raise InputError(
                "measure",
                "one that takes vectors",
                f"{measure.name}, which takes one target, for {mean.shape[-1]} coordinates",
                remedy="pass one coordinate at a time",
            )
        if measure.one_target:
            return of_one(mean, variance, target, **weights)
        if measure.one_target is None and single:
            try:
                found = of_one(mean, variance, target, **weights)
            except InputError:  # it takes vectors only
                return function(mean, variance, target, **weights)
            if found.shape == mean.shape[:-2]:
                return found
        return function(mean, variance, target, **weights)

    return answer


def drawn_targets(
    measure: BoundMeasure,
    mean: Tensor,
    variance: Tensor,
    target: Tensor,
    resamples: int,
    generator: np.random.Generator,
    numbers: int | None = None,
    weights: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Evaluate a regression measure on samples drawn again, and on targets drawn as predicted.

    `numbers` sets the size of a block, where several predictions are to be drawn alike. Weights
    `[N]` are drawn with their samples, and kept where targets are drawn.
    """
    fixed = {} if weights is None else {"weights": weights}
    if measure.whitened is not None and weights is None:
        return _drawn_whitened(
            measure.whitened, mean, variance, target, resamples, generator, numbers
        )
    distance = on_vectors(measure, distance_of(measure))
    estimate = on_vectors(measure, measure.value)
    full, size = variance.ndim > mean.ndim, mean.shape[-2]
    root = torch.linalg.cholesky(variance) if full else variance.sqrt()
    wide_root, tilted = root.unsqueeze(-4 if full else -3), full
    if full and measure.marginal:
        variance, full = variance.diagonal(dim1=-2, dim2=-1), False
    again, chance, estimates = [], [], []
    for block in blocks_of(resamples, numbers or max(mean.numel(), variance.numel())):
        index = torch.from_numpy(generator.integers(0, size, (block, size))).to(mean.device)
        center, truth = (part[..., index, :] for part in (mean, target))
        spread = variance[..., index, :, :] if full else variance[..., index, :]
        redrawn = {name: part[index] for name, part in fixed.items()}
        again.append(distance(center, spread, truth, **redrawn))
        shape = (*mean.shape[:-2], block, *mean.shape[-2:])
        noise = torch.from_numpy(generator.standard_normal(shape)).to(mean.device)
        error = (wide_root @ noise[..., None])[..., 0] if tilted else wide_root * noise
        center = mean.unsqueeze(-3).expand_as(error)
        spread = variance.unsqueeze(-4 if full else -3)
        spread = spread.expand(*error.shape[:-1], *spread.shape[len(error.shape) - 1 :])
        drawn = (center, spread, center + error)
        chance.append(distance(*drawn, **fixed))
        estimates.append(estimate(*drawn, **fixed).detach().double().cpu())
    observed = distance(mean, variance, target, **fixed)
    along = (torch.cat(part, -1).movedim(-1, 0) for part in (again, chance, estimates))
    resampled, calibrated, values = along
    return observed, resampled, calibrated, values


def _drawn_whitened(
    of: OfWhitened,
    mean: Tensor,
    variance: Tensor,
    target: Tensor,
    resamples: int,
    generator: np.random.Generator,
    numbers: int | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Draw Mahalanobis distances instead of targets: they are all that the measure looks at."""
    error, spread, full = vector_target(mean, variance, target)
    width, size = error.shape[-1], error.shape[-2]
    distance, log_determinant = whitened(error, spread, full)
    statistic = of.statistic(distance, width)
    again, chance, estimates = [], [], []
    for block in blocks_of(resamples, numbers or 4 * statistic.numel()):
        index = torch.from_numpy(generator.integers(0, size, (block, size))).to(mean.device)
        again.append(of.distance(statistic[..., index], log_determinant[..., index], width))
        shape = (*statistic.shape[:-1], block, size)
        drawn = torch.from_numpy(of.drawn(shape, width, generator)).to(mean.device)
        volume = log_determinant.unsqueeze(-2).expand(shape)
        chance.append(of.distance(drawn, volume, width))
        estimates.append(of.value(drawn, volume, width))
    observed = of.distance(statistic, log_determinant, width).cpu()
    resampled, calibrated, values = (
        torch.cat(part, -1).movedim(-1, 0).cpu() for part in (again, chance, estimates)
    )
    return observed, resampled, calibrated, values


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
