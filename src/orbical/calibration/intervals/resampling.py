"""Targets drawn again, and drawn as predicted: the two worlds of a regression measure.

Predictions are `[..., N, d]` here, d = 1 for a single target; leading axes are positions along an
orbit, whose samples are drawn together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..._arrays import ArrayLike, as_floating
from ...errors import InputError
from ..measures.gaussian import gaussian_vector_target, gaussian_whitened
from ..registry import BoundMeasure, WhitenedMeasure
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
    gaussian_vector_target(mean, variance, target)
    given = (("mean", mean), ("variance", variance), ("target", target))
    tensors = [as_floating(name, values).detach().double() for name, values in given]
    if tensors[0].ndim == 1:
        tensors = [part[:, None] for part in tensors]
    mean, variance, target = tensors
    return mean, variance, target


def on_vectors(
    measure: BoundMeasure,
    function: Callable[..., Tensor],
    mean: Tensor,
    variance: Tensor,
    target: Tensor,
    weights: Tensor | None = None,
) -> Tensor:
    """Evaluate a measure's function, `[...]`, on predictions `[..., N, d]`; see `values`.

    A user's function of unknown form is tried on `[..., N]` first where there is one coordinate.
    """
    single = mean.shape[-1] == 1
    if measure.one_target and not single:
        raise InputError(
            "measure",
            "one that takes vectors",
            f"{measure.name}, which takes one target, for {mean.shape[-1]} coordinates",
            remedy="pass one coordinate at a time",
        )
    if measure.one_target is not False and single:
        spread = variance[..., 0] if variance.ndim == mean.ndim else variance[..., 0, 0]
        try:
            found = measure.values(function, mean[..., 0], spread, target[..., 0], weights=weights)
        except InputError:
            if measure.one_target:
                raise  # any other takes vectors only
        else:
            if measure.one_target or found.shape == mean.shape[:-2]:
                return found
    return measure.values(function, mean, variance, target, weights=weights)


@dataclass(frozen=True)
class _Errors:
    """The errors of predictions in units of the predicted deviation, as they are drawn.

    Attributes:
        observed: `[...]`, the distance of the data.
        again: returns the distances `[..., R]` of samples drawn again, by their indices `[R, N]`.
        scale: how much larger the errors are than predicted, in these units; at least 1.
        gaussian: draws errors `[..., R, N, d]` for R from the predicted Gaussians.
        pool: `[..., N, d]`, the observed errors, scaled as a calibrated model's are; or None.
        predicted: returns distances and values `[2, ..., R]` of targets with given errors.
    """

    observed: Tensor
    again: Callable[[Tensor], Tensor]
    scale: Tensor
    gaussian: Callable[[int], np.ndarray]
    pool: Tensor | None
    predicted: Callable[[Tensor], Tensor]


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

    A model can be calibrated in the moment of the errors that a measure looks at
    (`measure.moment`), and yet have heavier tails than a Gaussian. Targets are then also drawn with
    the errors that the data show, scaled to that moment, and the world counts in which distances
    are larger. Of a mean (`measure.distance` is None) no samples are drawn again: in their place
    are targets with Gaussian errors as large as the observed ones.

    `numbers` sets the size of a block, where several predictions are to be drawn alike. Weights
    `[N]` are drawn with their samples, and kept where targets are drawn.
    """
    given = (mean, variance, target)
    if measure.whitened is not None and weights is None:
        errors = _whitened_errors_resampled(measure, measure.whitened, *given, generator)
    else:
        errors = _errors_of_resampled_targets(measure, *given, generator, weights)
    again, chance, heavy = [], [], []
    for block in resample_blocks(resamples, numbers or max(mean.numel(), variance.numel())):
        index, other = (
            torch.from_numpy(part).to(mean.device)
            for part in generator.integers(0, mean.shape[-2], (2, block, mean.shape[-2]))
        )
        noise = torch.from_numpy(errors.gaussian(block)).to(mean.device)
        chance.append(errors.predicted(noise))
        if measure.distance is None:
            again.append(errors.predicted(noise * errors.scale)[1])
        else:
            again.append(errors.again(index))
        if errors.pool is not None:
            heavy.append(errors.predicted(errors.pool[..., other, :]))
    resampled, calibrated = (torch.cat(part, -1).movedim(-1, 0).cpu() for part in (again, chance))
    if heavy:
        tails = torch.cat(heavy, -1).movedim(-1, 0).cpu()
        larger = tails[:, 0].quantile(0.95, dim=0) > calibrated[:, 0].quantile(0.95, dim=0)
        calibrated = torch.where(larger, tails, calibrated)
    return errors.observed.cpu(), resampled, calibrated[:, 0], calibrated[:, 1]


def _errors_of_resampled_targets(
    measure: BoundMeasure,
    mean: Tensor,
    variance: Tensor,
    target: Tensor,
    generator: np.random.Generator,
    weights: Tensor | None,
) -> _Errors:
    distance = partial(on_vectors, measure, measure.drawn)
    full = tilted = variance.ndim > mean.ndim
    root = torch.linalg.cholesky(variance) if full else variance.sqrt()
    wide_root = root.unsqueeze(-4 if full else -3)
    if full and measure.marginal:
        variance, full = variance.diagonal(dim1=-2, dim2=-1), False

    def again(index: Tensor) -> Tensor:
        spread = variance[..., index, :, :] if full else variance[..., index, :]
        mass = None if weights is None else weights[index]
        return distance(mean[..., index, :], spread, target[..., index, :], mass)

    def gaussian(block: int) -> np.ndarray:
        return generator.standard_normal((*mean.shape[:-2], block, *mean.shape[-2:]))

    units = (target - mean)[..., None]
    if tilted:
        units = torch.linalg.solve_triangular(root, units, upper=False)[..., 0]
    else:
        units = units[..., 0] / root

    def predicted(noise: Tensor) -> Tensor:
        error = (wide_root @ noise[..., None])[..., 0] if tilted else wide_root * noise
        center = mean.unsqueeze(-3).expand_as(error)
        spread = variance.unsqueeze(-4 if full else -3)
        spread = spread.expand(*error.shape[:-1], *spread.shape[len(error.shape) - 1 :])
        drawn = (center, spread, center + error)
        far = value = distance(*drawn, weights)
        if measure.drawn != measure.value:
            value = on_vectors(measure, measure.value, *drawn, weights)
        return torch.stack([far, value])

    heavy, power = None, measure.moment
    if power is not None:
        seen = units.abs().pow(power).mean((-2, -1), keepdim=True).clamp(min=1e-300)
        heavy = units * (_GAUSSIAN_MOMENTS[power] / seen).pow(1 / power)
    observed = distance(mean, variance, target, weights)
    scale = units.square().mean((-2, -1)).sqrt().clamp(min=1)[..., None, None, None]
    return _Errors(observed, again, scale, gaussian, heavy, predicted)


def targets_between(
    measure: BoundMeasure,
    models: list[tuple[Tensor, Tensor, Tensor]],
    resamples: int,
    generator: np.random.Generator,
    weights: Tensor | None,
) -> Tensor | None:
    """Evaluate two models on targets from the mean of their means and variances, `[2, R]`.

    Their variances are then wrong in opposite directions. None if one has variances and the other
    covariances.
    """
    (mean, variance, _), (other, spread, _) = models
    if variance.shape != spread.shape:
        return None
    center, middle, full = (mean + other) / 2, (variance + spread) / 2, variance.ndim > mean.ndim
    root = torch.linalg.cholesky(middle) if full else middle.sqrt()

    def drawn() -> Iterator[Tensor]:
        for block in resample_blocks(resamples, max(mean.numel(), variance.numel())):
            noise = torch.from_numpy(generator.standard_normal((block, *mean.shape)))
            noise = noise.to(mean.device)
            yield center + ((root @ noise[..., None])[..., 0] if full else root * noise)

    distance = partial(on_vectors, measure, measure.drawn)
    return _resampled_on_same_targets(
        distance, [(*given[:2], weights) for given in models], drawn()
    )


def _resampled_on_same_targets(
    distance: Callable[..., Tensor], models: Sequence[tuple[Any, ...]], drawn: Iterable[Tensor]
) -> Tensor:
    """Evaluate models, their predictions followed by weights, on drawn targets: `[2, R]`."""
    found = []
    for target in drawn:
        both = [
            distance(*(part.expand(len(target), *part.shape) for part in own), target, weights=mass)
            for *own, mass in models
        ]
        found.append(torch.stack(both))
    return torch.cat(found, 1)


_GAUSSIAN_MOMENTS = {1: (2 / torch.pi) ** 0.5, 2: 1.0}
"""Mean absolute value and mean square of a standard normal variable."""


def _whitened_errors_resampled(
    measure: BoundMeasure,
    of: WhitenedMeasure,
    mean: Tensor,
    variance: Tensor,
    target: Tensor,
    generator: np.random.Generator,
) -> _Errors:
    """Draw Mahalanobis distances instead of targets: they are all that the measure looks at."""
    error, spread, full = gaussian_vector_target(mean, variance, target)
    width, size = error.shape[-1], error.shape[-2]
    distance, log_determinant = gaussian_whitened(error, spread, full)
    statistic = of.statistic(distance, width)

    def again(index: Tensor) -> Tensor:
        return of.distance(statistic[..., index], log_determinant[..., index], width)

    def gaussian(block: int) -> np.ndarray:
        return of.drawn((*statistic.shape[:-1], block, size), width, generator)[..., None]

    def predicted(noise: Tensor) -> Tensor:
        drawn = noise[..., 0]
        volume = log_determinant.unsqueeze(-2).expand(drawn.shape)
        return torch.stack([of.distance(drawn, volume, width), of.value(drawn, volume, width)])

    scale = distance.mean(-1, keepdim=True)[..., None] / width
    pool = distance[..., None] / scale.clamp(min=1e-300)
    heavy = None if measure.moment is None else pool
    observed = of.distance(statistic, log_determinant, width)
    return _Errors(observed, again, scale.clamp(min=1)[..., None], gaussian, heavy, predicted)


BLOCK = 1 << 22
"""Values that are kept in memory at once while resamples are drawn."""


@dataclass(frozen=True)
class PairedResampledWorlds:
    """Distances of two models, drawn together.

    Attributes:
        observed: `[2]`, of the data.
        resampled: `[2, R]`, both on the same samples drawn again.
        calibrated: `[2, R]`, with labels drawn from each model's confidences.
        between: `[2, R]`, with labels drawn from the mean of both confidences: the models err by
            the same amount, in opposite directions. None if this world is unknown.
    """

    observed: Tensor
    resampled: Tensor
    calibrated: Tensor
    between: Tensor | None = None


def resample_blocks(resamples: int, numbers: int) -> list[int]:
    """Split resamples of `numbers` values each into blocks that fit in memory.

    >>> resample_blocks(5, BLOCK // 2)
    [2, 2, 1]
    """
    size = max(1, min(resamples, BLOCK // max(numbers, 1)))
    return [min(size, resamples - start) for start in range(0, resamples, size)]


def _labels(chance: Tensor, resamples: int, generator: np.random.Generator) -> Tensor:
    """Draw labels `[R, ..., N]` that are true with these probabilities `[..., N]`."""
    return torch.from_numpy(generator.random((resamples, *chance.shape))).to(chance.device) < chance


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
    distance, size = partial(measure.values, measure.drawn), confidence.shape[-1]
    again, chance, estimates = [], [], []
    for block in resample_blocks(resamples, confidence.numel()):
        index = torch.from_numpy(generator.integers(0, size, (block, size))).to(confidence.device)
        mass = None if weights is None else weights[..., index]
        again.append(distance(confidence[..., index], correct[..., index], weights=mass))
        labels = _labels(confidence, block, generator)
        given = (confidence.expand_as(labels), labels)
        chance.append(distance(*given, weights=weights))
        if measure.drawn != measure.value:
            estimates.append(measure.values(measure.value, *given, weights=weights))
    observed, calibrated = distance(confidence, correct, weights=weights), torch.cat(chance)
    values = torch.cat(estimates) if estimates else calibrated
    return observed, torch.cat(again, -1).movedim(-1, 0), calibrated, values


def paired_worlds(
    measure: BoundMeasure,
    pairs: list[tuple[Tensor, Tensor, Tensor | None]],
    resamples: int,
    seed: int,
) -> PairedResampledWorlds:
    """Draw two models' pairs `(confidence, correct, weights)` again, sample by sample together."""
    if measure.index is not None and pairs[0][2] is None:
        return _resampled_paired_cells(measure, [given[:2] for given in pairs], resamples, seed)
    # The same seed for both: they are drawn again on the same samples.
    draws = (
        drawn_pairs(measure, z, hit, resamples, np.random.default_rng(seed), mass)
        for z, hit, mass in pairs
    )
    middle = (pairs[0][0].double() + pairs[1][0].double()) / 2
    generator = np.random.default_rng(seed)
    blocks = resample_blocks(resamples, middle.numel())
    labels = (_labels(middle, block, generator) for block in blocks)
    models = [(z, mass) for z, _, mass in pairs]
    between = _resampled_on_same_targets(partial(measure.values, measure.drawn), models, labels)
    observed, resampled, calibrated, _ = map(torch.stack, zip(*draws, strict=True))
    return PairedResampledWorlds(observed, resampled, calibrated, between)


def _resampled_paired_cells(
    measure: BoundMeasure, pairs: list[tuple[Tensor, Tensor]], resamples: int, seed: int
) -> PairedResampledWorlds:
    """Draw cells again: samples that share their cells in both models are drawn at once."""
    assert measure.index is not None
    assert measure.cell_distance is not None
    distance = measure.cell_distance
    tallies, codes, places = [], [], []
    for confidence, correct in pairs:
        index, count = measure.index(confidence[None])
        tallies.append(tally(confidence[None], correct[None], index, count))
        codes.append((2 * index[0] + correct.long()).cpu())
        places.append(index[0].cpu())
    width = 2 * tallies[1].right.shape[-1]
    joint, number = torch.unique(codes[0] * width + codes[1], return_counts=True)
    kinds = torch.stack([joint // width, joint % width])
    together, which, samples = torch.unique(
        places[0] * width + places[1], return_inverse=True, return_counts=True
    )
    cells = torch.stack([together // width, together % width])
    middle = (pairs[0][0].double() + pairs[1][0].double()).cpu() / 2
    share = torch.bincount(which, middle).div(samples).clamp(0, 1).numpy()
    again, between, generator = [], [], np.random.default_rng(seed)
    for block in resample_blocks(resamples, kinds.shape[1]):
        drawn = generator.poisson(number.numpy(), (block, len(number)))
        right = generator.binomial(samples.numpy(), share, (block, len(samples)))
        counts, hits = (torch.from_numpy(part).double() for part in (drawn, right))
        both = [
            (
                distance(_from_kinds(gathered, kind, counts))[:, 0],
                distance(_from_cells(gathered, cell, hits))[:, 0],
            )
            for gathered, kind, cell in zip(tallies, kinds, cells, strict=True)
        ]
        again.append(torch.stack([one for one, _ in both]))
        between.append(torch.stack([other for _, other in both]))
    # The same seed for both: a model and its copy are drawn alike.
    calibrated = [
        torch.cat([distance(part)[:, 0] for part in drawn])
        for drawn in (one.calibrated(resamples, np.random.default_rng(seed)) for one in tallies)
    ]
    observed = [distance(gathered.observed())[0] for gathered in tallies]
    draws = (torch.cat(again, 1), torch.stack(calibrated), torch.cat(between, 1))
    return PairedResampledWorlds(torch.stack(observed), *draws)


def _from_cells(gathered: Tally, cell: Tensor, hits: Tensor) -> Cells:
    """Return the cells `[R, 1, G]` of as many samples, with hits `[R, J]` counted by cell `[J]`."""
    count, place = gathered.right + gathered.wrong, gathered.place
    right = torch.zeros(len(hits), count.shape[-1], dtype=torch.float64).index_add_(1, cell, hits)
    right = right[:, None]
    square = right * (1 - place).square() + (count - right) * place.square()
    return Cells(place, count.expand_as(right), right - count * place, square)


def _from_kinds(gathered: Tally, kind: Tensor, counts: Tensor) -> Cells:
    """Return the cells `[R, 1, G]` of samples counted by kind, `[R, K]`."""
    cells = gathered.right.shape[-1]
    sums = torch.zeros(len(counts), 2 * cells, dtype=torch.float64).index_add_(1, kind, counts)
    split = sums.view(-1, 1, cells, 2)
    return gathered.cells(split[..., 1], split[..., 0])
