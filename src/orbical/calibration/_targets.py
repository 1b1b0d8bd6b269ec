"""Targets drawn again, and drawn as predicted: the two worlds of a regression measure.

Predictions are `[..., N, d]` here, d = 1 for a single target; leading axes are positions along an
orbit, whose samples are drawn together.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from .._arrays import ArrayLike, as_floating
from ..errors import InputError
from ._bound import BoundMeasure, OfWhitened
from ._resampling import blocks_of, distance_of
from .gaussian import vector_target, whitened


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
