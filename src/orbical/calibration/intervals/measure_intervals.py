"""Intervals of measures of pairs and of regression, from draws of two worlds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..._arrays import ArrayLike
from ...errors import whole_number
from ..measures.binned import effective_bin_count, reliability
from ..pairs.pairs_and_weights import binary_pair, sample_weights
from ..registry import BoundMeasure, MeasureLike, OfCells, bound_measure, check_takes_weights
from .cautions import (
    CautionEvidence,
    caution,
    caution_evidence_of_pairs,
    caution_evidence_of_predictions,
)
from .cells import CellRowGenerators, Cells, tally
from .interval_ends import Interval, assemble_interval, mapped_intervals, tail_interval_ends
from .levels import RESAMPLES, check_draws, checked_level
from .mean_intervals import skewed_interval, weight_shares
from .resampling import BLOCK, as_vectors, drawn_pairs, drawn_targets, on_vectors

__all__ = ["interval", "oracle_bound", "regression_interval"]


def interval(
    measure: MeasureLike,
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int | Sequence[int] = 0,
    **options: Any,
) -> Interval:
    """Return a calibration measure with an interval, and its value under perfect calibration.

    A calibration error is a distance, so its estimate is biased upwards. The upper end adds the
    spread of the resampled data to the value; the lower end is 0 if a calibrated model, with labels
    drawn from the confidences, may show the value. `docs/intervals.md` tabulates the coverage.

    Measures known by name are resampled in cells of confidence, at a cost that hardly depends on
    N. A function of `(confidence, correct)` that reduces over the last axis is taken as a
    distance, and is called on resampled samples.

    Args:
        measure: the name of a registered measure of pairs, such as "ece"; or a function.
        confidence: `[..., N]` in [0, 1].
        correct: `[..., N]` boolean, or 0 and 1.
        weights: `[..., N]` sample weights >= 0, resampled with their samples; 1 by default.
        level: nominal coverage.
        resamples: number of draws from each of the two worlds.
        seed: seed of the draws, or of those of each row.
        options: options of the measure, such as `bins`.

    Returns:
        The value, its interval, and what a calibrated model would show.

    Raises:
        InputError: if the arrays do not fit together, or a measure without weights is given some.

    See Also:
        regression_interval: Of Gaussian predictions.
        compare: The difference of two models.
        classification_table: Of every measure.

    Example:
        >>> import torch
        >>> confidence = torch.linspace(0.5, 1.0, 1000, dtype=torch.float64)
        >>> correct = torch.rand(1000, generator=torch.Generator().manual_seed(0)) < confidence
        >>> found = interval("ece", confidence, correct)
        >>> print(found)
        0.03333 [0, 0.05...], if calibrated 0.02... [0.01..., 0.04...]
    """
    chosen = bound_measure(measure, "pair", options)
    check_draws(level, resamples)
    if chosen.own_interval is not None:
        own: Interval = chosen.own_interval(confidence, correct, level, weights=weights)
        return own
    confidence, correct, mass = binary_pair(confidence, correct, weights)
    if chosen.index is not None and mass is None:
        return cell_intervals([chosen], confidence, correct, level, resamples, seed)[0]
    generator = np.random.default_rng(seed)
    answer = _drawn_measure_interval(chosen, confidence, correct, mass, resamples, generator, level)
    return _with_caution(answer, chosen, caution_evidence_of_pairs(correct))


def cell_intervals(
    measures: Sequence[BoundMeasure],
    confidence: Tensor,
    correct: Tensor,
    level: float,
    resamples: int,
    seed: int | Sequence[int],
) -> list[Interval]:
    """Return the intervals of measures with the same cells, each as alone: they share all draws.

    So do rows: an interval must not depend on what is computed beside it. Rows that are averaged
    have a seed each, so that the noise of their draws averages too.
    """
    check_draws(level, resamples)
    values = [one.values(one.value, confidence, correct) for one in measures]
    shape, size = confidence.shape[:-1], confidence.shape[-1]
    rows = (confidence.reshape(-1, size), correct.reshape(-1, size))
    assert measures[0].index is not None
    index, count = measures[0].index(rows[0])
    gathered = tally(*rows, index, count)
    parts: list[list[Interval]] = [[] for _ in measures]
    distances = [one.cell_distance for one in measures if one.cell_distance is not None]
    estimates = [one.cell_value for one in measures if one.cell_value is not None]
    height = max(1, BLOCK // (resamples * count))
    seeds = np.broadcast_to(np.asarray(seed), len(index))
    for at in (slice(top, top + height) for top in range(0, len(index), height)):
        mine = gathered.rows(at)
        generator = CellRowGenerators(map(int, seeds[at]))
        calibrated = _of_cells([*distances, *estimates], mine.calibrated(resamples, generator))
        resampled = _of_cells(distances, mine.resampled(resamples, generator))
        observed = _of_cells(distances, [mine.observed()])
        for one, value, found, distance, estimate in zip(
            measures, values, parts, distances, estimates, strict=True
        ):
            here, again, chance = (world[distance] for world in (observed, resampled, calibrated))
            its_value = value.reshape(-1)[at]
            found.append(
                assemble_interval(one, its_value, here, again, chance, calibrated[estimate], level)
            )
    intervals = []
    for one, each in zip(measures, parts, strict=True):
        answer = mapped_intervals(lambda *some: torch.cat(some).reshape(shape), *each)
        if one.bin_ends is None:
            low = answer.low
            high = answer.high.maximum(
                _measure_interval_of_unanimous(one, confidence, correct, level)
            )
        else:
            filled = gathered.right + gathered.wrong
            accuracy = gathered.right / filled.clamp(min=1)
            bounds = one.bin_ends(accuracy, gathered.place, filled, level)
            low, high = (end.reshape(shape) for end in bounds)
        answer = _within_one(replace(answer, low=low, high=high))
        intervals.append(_with_caution(answer, one, caution_evidence_of_pairs(correct)))
    return intervals


def _with_caution(answer: Interval, measure: BoundMeasure, seen: CautionEvidence) -> Interval:
    """Describe where the interval of a measure may be too short; a mean of terms has said it."""
    return replace(answer, caution=caution(measure.name, seen, answer.caution))


def _within_one(found: Interval) -> Interval:
    """Cut the upper ends of a measure of residuals in [-1, 1], which cannot exceed 1."""
    high, usual = (end.clamp(max=1) for end in (found.high, found.calibrated_high))
    return replace(found, high=high, calibrated_high=usual)


def regression_interval(
    measure: MeasureLike,
    mean: ArrayLike,
    variance: ArrayLike,
    target: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
    **options: object,
) -> Interval:
    """Return a regression measure with an interval, and its value under perfect calibration.

    A calibrated model has `target ~ N(mean, variance)`. For measures that compare squared (or
    absolute) errors with variances, such as ENCE and ESD, its errors may have heavier tails, as far
    as the data show them. GENCE, NLL and CRPS are plain means: they have the interval of
    `mean_interval`, and their calibrated value is not 0. A function of `(mean, variance, target)`
    is taken as a distance. `docs/intervals.md` tabulates the coverage.

    Args:
        measure: the name of a registered measure of regression, such as "ence"; or a function.
        mean: `[N]` or `[..., N, d]`; leading axes are resampled together.
        variance: as the mean, `[..., N, 1]`, or a full covariance `[..., N, d, d]`.
        target: as the mean.
        weights: `[N]` sample weights >= 0, resampled with their samples; 1 by default.
        level: nominal coverage.
        resamples: number of draws from each of the two worlds.
        seed: seed of the draws.
        options: options of the measure, such as `bins` or `levels`.

    Returns:
        The value, its interval, and what a calibrated model would show.

    See Also:
        regression_compare: The difference of two models.
        regression_table: Of every measure.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> variance = rng.uniform(0.5, 2, 400)
        >>> found = regression_interval("ence", np.zeros(400), variance,
        ...                             rng.normal(0, variance ** 0.5), resamples=200)
        >>> bool(found.low == 0), bool(found.high > found.value)
        (True, True)
    """
    chosen = bound_measure(measure, "regression", options)
    check_draws(level, resamples)
    given = as_vectors(mean, variance, target)
    mass = sample_weights(weights, given[0][..., 0])
    check_takes_weights(chosen, mass)
    generator = np.random.default_rng(seed)
    draws = drawn_targets(chosen, *given, resamples, generator, weights=mass)
    if chosen.distance is None:
        if chosen.terms is not None:
            terms = on_vectors(chosen, chosen.terms, *given)
        else:  # a mean over samples has the value of a single one as its term
            single = (part.unsqueeze(given[0].ndim - 1) for part in given)
            terms = on_vectors(chosen, chosen.value, *single)
        answer = _measure_interval_of_terms(terms, mass, *draws[1:3], level)
    else:
        value = on_vectors(chosen, chosen.value, *given, mass)
        answer = assemble_interval(chosen, value, *draws, level)
    return _with_caution(answer, chosen, caution_evidence_of_predictions(*given))


def _measure_interval_of_terms(
    terms: Tensor, weights: Tensor | None, as_large: Tensor, calibrated: Tensor, level: float
) -> Interval:
    """Return the interval of the mean of terms `[..., N]`, from draws `[R, ...]` of two worlds."""
    least, _, most = tail_interval_ends(calibrated, level)
    spread, third = ((as_large - as_large.mean(0)).pow(power).mean(0) for power in (2, 3))
    found = skewed_interval(
        terms, weight_shares(weights, terms), calibrated.mean(0), spread, third, level
    )
    return replace(found, calibrated_low=least, calibrated_high=most)


def oracle_bound(samples: int, level: float = 0.95) -> float:
    """Return the oracle bound on the deviation of an ECE, for known true accuracies.

        P[ |mean_i CE(z_i) - ECE| > epsilon ] <= 2 exp(-2 n epsilon^2),   CE(z) = |Acc_z - z|
        epsilon = sqrt(log(2 / (1 - level)) / (2 n))

    Prop. 6 of the equivariant calibration paper (Hoeffding's inequality). It assumes that the
    accuracy at each confidence is known and only the confidences are sampled; an ECE computed from
    labels has the bias and the larger spread that `interval` reports.

    Args:
        samples: n.
        level: the probability that the bound holds.

    Returns:
        epsilon.

    Example:
        >>> round(oracle_bound(1000), 4)
        0.0429
    """
    samples = whole_number("samples", samples)
    return math.sqrt(math.log(2 / (1 - checked_level(level))) / (2 * samples))


def _drawn_measure_interval(
    measure: BoundMeasure,
    confidence: Tensor,
    correct: Tensor,
    weights: Tensor | None,
    resamples: int,
    generator: np.random.Generator,
    level: float,
) -> Interval:
    """Resample samples with their weights: weighted ones cannot be counted in cells."""
    check_takes_weights(measure, weights)
    draws = drawn_pairs(measure, confidence, correct, resamples, generator, weights)
    if measure.distance is None:
        terms = measure.values(measure.value, confidence[..., None], correct[..., None])
        return _measure_interval_of_terms(terms, weights, draws[2], draws[2], level)
    value = measure.values(measure.value, confidence, correct, weights=weights)
    found = assemble_interval(measure, value, *draws, level)
    if measure.index is not None:
        found = _within_one(found)
    if measure.bin_ends is None:
        return found
    assert isinstance(measure.value, partial)
    bins = {key: measure.value.keywords[key] for key in ("bins", "binning")}
    diagram = reliability(confidence, correct, weights=weights, **bins)
    size = effective_bin_count(diagram, confidence, weights, bins["binning"])
    accuracy, place = diagram.accuracy.cpu(), diagram.confidence.cpu()
    low, high = measure.bin_ends(accuracy, place, size.cpu(), level)
    return replace(found, low=low, high=high)


def _measure_interval_of_unanimous(
    measure: BoundMeasure, confidence: Tensor, correct: Tensor, level: float
) -> Tensor:
    """Return the measure at the farthest accuracy that rows without any contrast allow, or 0."""
    size = correct.shape[-1]
    right = correct.sum(-1)
    unanimous = (right == 0) | (right == size)
    if not bool(unanimous.any()):
        return torch.zeros_like(right, dtype=torch.float64).cpu()
    other = 1 - ((1 - level) / 2) ** (1 / size)
    share = torch.where(right[unanimous] == 0, other, 1 - other).to(confidence.dtype)
    rows = confidence[unanimous]
    value = measure.value(rows, share[..., None].expand_as(rows)).detach().double()
    return torch.zeros_like(right, dtype=torch.float64).masked_scatter_(unanimous, value).cpu()


def _of_cells(functions: list[OfCells], parts: Iterable[Cells]) -> dict[OfCells, Tensor]:
    """Evaluate each function once on all parts of the draws, part by part."""
    found: dict[OfCells, list[Tensor]] = {function: [] for function in functions}
    for cells in parts:
        for function, values in found.items():
            values.append(function(cells))
    return {function: torch.cat(values) for function, values in found.items()}
