"""The difference of a measure between two models on the same samples, with its interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._arrays import ArrayLike
from ..errors import InputError
from ._bound import BoundMeasure
from ._interval import (
    binary_pair,
    check_draws,
    ends,
    in_short,
    normal_quantile,
    tail_quantiles,
    unbiased,
)
from ._resampling import PairedWorlds, paired_worlds
from ._targets import as_vectors, on_vectors, paired_targets
from .registry import MeasureLike, bound


@dataclass(frozen=True, repr=False)
class Comparison:
    """The difference of a measure between two models on the same samples, `a - b`.

    Attributes:
        difference: of the measured values.
        low: lower end of the interval for the population's difference.
        high: upper end.
        p_value: 1 minus the level at which the interval no longer contains 0.
        level: nominal coverage.
    """

    difference: Tensor
    low: Tensor
    high: Tensor
    p_value: Tensor
    level: float

    def __str__(self) -> str:
        ends = f"[{in_short(self.low)}, {in_short(self.high)}]"
        return f"{in_short(self.difference)} {ends}, p = {in_short(self.p_value)}"

    def __repr__(self) -> str:
        return f"Comparison({self})"


def compare(
    measure: MeasureLike,
    a: tuple[ArrayLike, ArrayLike],
    b: tuple[ArrayLike, ArrayLike],
    *,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
    **options: Any,
) -> Comparison:
    """Compare a calibration measure of two models, or two methods, on the same samples.

    Both are resampled together, so that what the models share cancels; their biases do not, since
    a calibrated model is biased more than one that is not. Each end lies as far from `a - b` as
    the larger of two reaches, here for the upper end:

        bias_b + (median - q_lower) of the resampled difference
        sqrt((u_a - a)^2 + (b - l_b)^2 - 2 r (u_a - a) (b - l_b))

    The first guards against unequal biases: bias_b is the value less the point where the median,
    linear between the calibrated and the observed world, reaches it; or the whole median of the
    calibrated world if the model may be calibrated; bias_a may be 0. The second joins the intervals
    `[l, u]` of both by the correlation r of their resamples (Zou and Donner 2008), or by the worst,
    -1, if one of both may be calibrated. The p-value is below `1 - level` if 0 lies outside.

    Args:
        measure: as for `interval`.
        a: `(confidence [N], correct [N])` of one model.
        b: the same of the other, sample by sample.
        level: nominal coverage.
        resamples: number of draws from each world.
        seed: seed of the draws.
        options: options of the measure.

    Returns:
        The difference `a - b` with its interval and p-value.

    Example:
        >>> confidence = np.linspace(0.5, 1.0, 1000)
        >>> correct = np.random.default_rng(0).random(1000) < confidence
        >>> found = compare("ece", (confidence, correct), (confidence ** 2, correct))
        >>> bool(found.high < 0), bool(found.p_value < 0.01)
        (True, True)
    """
    chosen = _distance_of(measure, "pair", options)
    check_draws(level, resamples)
    pairs = [binary_pair(*_one_pair(name, given)) for name, given in (("a", a), ("b", b))]
    sizes = [len(confidence) for confidence, _ in pairs]
    if sizes[0] != sizes[1]:
        raise InputError(f"b: expected the {sizes[0]} samples of a, got {sizes[1]}")
    values = [chosen.value(*given).detach().double().cpu() for given in pairs]
    worlds = paired_worlds(chosen, pairs, resamples, np.random.default_rng(seed))
    return _compared(chosen, values, worlds, level)


def regression_compare(
    measure: MeasureLike,
    a: tuple[ArrayLike, ArrayLike],
    b: tuple[ArrayLike, ArrayLike],
    target: ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
    **options: Any,
) -> Comparison:
    """Compare a regression measure of two models, or two methods, on the same samples.

    As `compare`, with targets drawn from each model's Gaussians in the calibrated world. GENCE,
    NLL and CRPS are plain means: compare their `regression_score_terms` with `compare_means`.

    Args:
        measure: as for `regression_interval`.
        a: `(mean, variance)` of one model, `[N]` or `[N, d]` and what fits it.
        b: the same of the other, sample by sample.
        target: as the means.
        level: nominal coverage.
        resamples: number of draws from each world.
        seed: seed of the draws.
        options: options of the measure.

    Returns:
        The difference `a - b` with its interval and p-value.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> target = rng.normal(size=1000)
        >>> right, timid = (np.zeros(1000), np.ones(1000)), (np.zeros(1000), np.full(1000, 4.0))
        >>> found = regression_compare("ence", right, timid, target, resamples=200)
        >>> bool(found.high < 0), bool(found.p_value < 0.01)
        (True, True)
    """
    chosen = _distance_of(measure, "regression", options)
    check_draws(level, resamples)
    predictions = []
    for name, given in (("a", a), ("b", b)):
        mean, variance, truth = as_vectors(*_two(name, given, "(mean, variance)"), target)
        if mean.ndim != 2:
            raise InputError(
                f"{name}: expected a mean of shape [N] or [N, d], got {tuple(mean.shape)}"
            )
        predictions.append((mean, variance))
    estimate = on_vectors(chosen, chosen.value)
    values = [estimate(*given, truth).detach().double().cpu() for given in predictions]
    generator = np.random.default_rng(seed)
    worlds = paired_targets(chosen, predictions, truth, resamples, generator)
    return _compared(chosen, values, worlds, level)


def _distance_of(measure: MeasureLike, kind: str, options: dict[str, Any]) -> BoundMeasure:
    chosen = bound(measure, kind, options)
    if chosen.distance is None:
        raise InputError(
            f"measure: expected a calibration error, got {chosen.name}, a mean over samples; use "
            "compare_means on its terms"
        )
    return chosen


def _compared(
    chosen: BoundMeasure, values: list[Tensor], worlds: PairedWorlds, level: float
) -> Comparison:
    """Make the interval of a difference from the draws of both models."""
    drawn = worlds.resampled**chosen.power
    low, middle, high = tail_quantiles(drawn[0] - drawn[1], level)
    joint = torch.corrcoef(worlds.resampled)[0, 1].nan_to_num(0.0)
    biases, below, above, calibrated = [], [], [], False
    for value, seen, again, chance in zip(
        values, worlds.observed, worlds.resampled, worlds.calibrated, strict=True
    ):
        reach = ends(seen, again[:, None], chance[:, None], level)
        corrected = unbiased(seen, again.median(), chance.median())
        if not bool(reach[0][0] > 0):  # it may be calibrated, and biased as such a model is
            calibrated = True
            corrected = torch.minimum(corrected, (seen - chance.median()).clamp(min=0))
        biases.append(seen**chosen.power - corrected**chosen.power)
        below.append((value - reach[0][0] ** chosen.power).clamp(min=0))
        above.append((reach[1][0] ** chosen.power - value).clamp(min=0))
    if calibrated:  # a distance folds at 0, and resamples there do not show how the two depend
        joint = torch.full_like(joint, -1.0)
    down = torch.maximum(biases[0] + high - middle, _joined_reach(below[0], above[1], joint))
    up = torch.maximum(biases[1] + middle - low, _joined_reach(above[0], below[1], joint))
    difference = values[0] - values[1]
    towards = torch.where(difference > 0, down, up).clamp(min=1e-300)
    distance = normal_quantile(level) * difference.abs() / towards
    p_value = 2 * torch.special.ndtr(-distance)
    return Comparison(difference, difference - down, difference + up, p_value, level)


def _joined_reach(one: Tensor, other: Tensor, correlation: Tensor) -> Tensor:
    squared = one.square() + other.square() - 2 * correlation * one * other
    return squared.clamp(min=0).sqrt()


def _two(name: str, given: Any, expected: str) -> tuple[ArrayLike, ArrayLike]:
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InputError(f"{name}: expected {expected}, got {type(given).__name__}")
    return given[0], given[1]


def _one_pair(name: str, given: Any) -> tuple[ArrayLike, ArrayLike]:
    confidence, correct = _two(name, given, "(confidence, correct)")
    if torch.as_tensor(confidence).ndim != 1:
        raise InputError(f"{name}: expected confidence of shape [N], got more axes")
    return confidence, correct
