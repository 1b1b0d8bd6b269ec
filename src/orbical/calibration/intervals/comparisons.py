"""The difference of a measure between two models on the same samples, with its interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..._arrays import ArrayLike, as_array
from ..._text import p_value
from ...errors import InputError
from ..pairs.pairs_and_weights import binary_pair, sample_weights
from ..registry import RESAMPLES, BoundMeasure, MeasureLike, bound_measure, check_takes_weights
from .cautions import CautionEvidence, caution, caution_evidence_of_pairs, first_interval_caution
from .interval_ends import (
    distance_interval,
    interval_in_short,
    student_quantile,
    tail_interval_ends,
)
from .levels import check_draws, normal_quantile
from .resampling import (
    PairedResampledWorlds,
    as_vectors,
    drawn_targets,
    paired_worlds,
    targets_between,
)

__all__ = ["Comparison", "compare", "regression_compare"]


@dataclass(frozen=True, repr=False)
class Comparison:
    """The difference of a measure between two models on the same samples, `a - b`.

    Attributes:
        difference: of the population's values: estimated, the noise of the labels taken away.
        low: lower end of the interval for the population's difference.
        high: upper end.
        p_value: 1 minus the level at which the interval no longer contains 0.
        level: nominal coverage.
        caution: why it may find a difference too often; empty if nothing speaks for that.
    """

    difference: Tensor
    low: Tensor
    high: Tensor
    p_value: Tensor
    level: float
    caution: str = ""

    def __str__(self) -> str:
        difference, low, high = map(interval_in_short, (self.difference, self.low, self.high))
        p = f"p = {interval_in_short(self.p_value, p_value)}".replace("= <", "<")
        caution = f"; {self.caution}" if self.caution else ""
        return f"{difference} [{low}, {high}], {p}{caution}"

    def __repr__(self) -> str:
        return f"Comparison({self})"


def compare(
    measure: MeasureLike,
    a: tuple[ArrayLike, ArrayLike],
    b: tuple[ArrayLike, ArrayLike],
    *,
    weights: ArrayLike | None = None,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
    **options: object,
) -> Comparison:
    """Compare a calibration measure of two models, or two methods, on the same samples.

    A measured distance d has the noise of the labels in it: a calibrated model's is not 0. Each is
    corrected by the mean square c^2 that it has for labels drawn from the confidences,

        difference = sqrt((d_a^2 - c_a^2)_+) - sqrt((d_b^2 - c_b^2)_+)

    and both models are resampled together, so that what they share cancels. Each end lies as far
    from the difference as the largest of three reaches: the farther quantile of the resampled
    difference from its median, around the distances found and around their mean, and 1.15 times as
    far as that, since resamples of a distance vary too little; the quantile of the difference of
    two calibrated models; and, unless the distances are too large for it, that of two models with
    equal errors of opposite sign, the labels being drawn from the mean of both confidences. Labels
    hardly distinguish this world from one in which one model is calibrated and the other is off by
    twice as much. The p-value is below `1 - level` if 0 lies outside; where it lies inside, the
    ends reach as far as the intervals of both models by themselves. `docs/intervals.md` tabulates
    size and power.

    Args:
        measure: as for `interval`.
        a: `(confidence [N], correct [N])` of one model.
        b: the same of the other, sample by sample.
        weights: `[N]` sample weights >= 0 of both, resampled with their samples; 1 by default.
        level: nominal coverage.
        resamples: number of draws from each world.
        seed: seed of the draws.
        options: options of the measure.

    Returns:
        The difference `a - b` with its interval and p-value.

    See Also:
        compare_means: Of scores that are means, such as NLL.
        holm: The correction of several comparisons.

    Example:
        >>> confidence = np.linspace(0.5, 1.0, 1000)
        >>> correct = np.random.default_rng(0).random(1000) < confidence
        >>> found = compare("ece", (confidence, correct), (confidence ** 2, correct))
        >>> bool(found.high < 0), bool(found.p_value < 0.01)
        (True, True)
    """
    chosen = _distance_of_comparison(measure, "pair", options)
    check_draws(level, resamples)
    given = [_one_pair(name, pair) for name, pair in (("a", a), ("b", b))]
    sizes = [len(confidence) for confidence, _ in given]
    if sizes[0] != sizes[1]:
        raise InputError("b", f"the {sizes[0]} samples of a", sizes[1])
    pairs = [binary_pair(*pair, weights) for pair in given]
    seen = caution_evidence_of_pairs(torch.stack([correct for _, correct, _ in pairs]))
    return _comparison_of_worlds(chosen, paired_worlds(chosen, pairs, resamples, seed), level, seen)


def regression_compare(
    measure: MeasureLike,
    a: tuple[ArrayLike, ArrayLike],
    b: tuple[ArrayLike, ArrayLike],
    target: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
    **options: object,
) -> Comparison:
    """Compare a regression measure of two models, or two methods, on the same samples.

    As `compare`, with targets drawn from each model's Gaussians in the calibrated world. GENCE,
    NLL and CRPS are plain means: compare their `regression_score_terms` with `compare_means`.

    Args:
        measure: as for `regression_interval`.
        a: `(mean, variance)` of one model, `[N]` or `[N, d]` and what fits it.
        b: the same of the other, sample by sample.
        target: as the means.
        weights: `[N]` sample weights >= 0 of both, resampled with their samples; 1 by default.
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
    chosen = _distance_of_comparison(measure, "regression", options)
    check_draws(level, resamples)
    models = []
    for name, given in (("a", a), ("b", b)):
        mean, variance, truth = as_vectors(*_two(name, given, "(mean, variance)"), target)
        if mean.ndim != 2:
            raise InputError(name, "a mean of shape [N] or [N, d]", mean)
        models.append((mean, variance, truth))
    mass = sample_weights(weights, models[0][0][..., 0])
    check_takes_weights(chosen, mass)
    numbers = max(part.numel() for given in models for part in given)
    # The same seed and blocks for both: they are drawn again on the same samples.
    draws = (
        drawn_targets(chosen, *given, resamples, np.random.default_rng(seed), numbers, mass)
        for given in models
    )
    observed, resampled, calibrated, _ = map(torch.stack, zip(*draws, strict=True))
    between = targets_between(chosen, models, resamples, np.random.default_rng(seed), mass)
    worlds = PairedResampledWorlds(observed, resampled, calibrated, between)
    return _comparison_of_worlds(
        chosen, worlds, level, CautionEvidence(samples=models[0][0].shape[-2])
    )


def _distance_of_comparison(
    measure: MeasureLike, kind: str, options: dict[str, object]
) -> BoundMeasure:
    chosen = bound_measure(measure, kind, options)
    if chosen.distance is None:
        raise InputError(
            "measure",
            "a calibration error",
            f"{chosen.name}, a mean over samples",
            remedy="use compare_means on its terms",
        )
    return chosen


def _comparison_of_worlds(
    chosen: BoundMeasure, worlds: PairedResampledWorlds, level: float, seen: CautionEvidence
) -> Comparison:
    """Make the interval of a difference from the draws of both models."""
    noise = worlds.calibrated.square().mean(1, keepdim=True)

    def difference(distances: Tensor) -> Tensor:
        corrected = (distances.square() - noise).clamp(min=0).sqrt() ** chosen.power
        return corrected[0] - corrected[1]

    observed = worlds.observed[:, None]
    found, around = difference(observed)[0], torch.zeros(())
    apart = worlds.resampled - worlds.resampled.median(1, keepdim=True).values
    for center in (observed, observed.mean()):  # as found, and as if both errors were equal
        low, middle, high = tail_interval_ends(difference((apart + center).clamp(min=0)), level)
        around = torch.stack([around, high - middle, middle - low]).amax(0)
    few = student_quantile(level, torch.tensor(seen.samples - 1.0)) / normal_quantile(level)
    around = (_WIDER * few * around).nan_to_num(nan=torch.inf)  # one sample says nothing
    least, _, most = tail_interval_ends(difference(worlds.calibrated), level)
    down, up = torch.maximum(around, most), torch.maximum(around, -least)
    if worlds.between is not None:
        _, _, plausible = tail_interval_ends(worlds.between.sum(0), _PLAUSIBLE)
        if worlds.observed.sum() <= plausible:
            least, _, most = tail_interval_ends(difference(worlds.between), level)
            down, up = torch.maximum(down, most), torch.maximum(up, -least)
    towards = torch.where(found > 0, down, up).clamp(min=1e-300)
    p_value = 2 * torch.special.ndtr(-normal_quantile(level) * found.abs() / towards)
    low, high = found - down, found + up
    if low < 0 < high:
        # Which error is the larger stays open: each may be all that its own interval holds.
        both = distance_interval(worlds.observed, worlds.resampled.T, worlds.calibrated.T, level)
        least, most = (end**chosen.power for end in both)
        low, high = torch.minimum(low, least[0] - most[1]), torch.maximum(high, most[0] - least[1])
    said = first_interval_caution(caution(f"compare {chosen.name}", seen))
    return Comparison(found, low, high, p_value, level, said)


_WIDER = 1.15
"""How much wider than resampled distances their difference is; `docs/intervals.md` has the size."""

_PLAUSIBLE = 0.98
"""Level at which the sum of both distances may be that of equal and opposite errors."""


def _two(name: str, given: Any, expected: str) -> tuple[ArrayLike, ArrayLike]:
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InputError(name, expected, type(given))
    return given[0], given[1]


def _one_pair(name: str, given: Any) -> tuple[ArrayLike, ArrayLike]:
    confidence, correct = _two(name, given, "(confidence, correct)")
    if as_array(name, confidence).ndim != 1:
        raise InputError(name, "confidence of shape [N]", "more axes")
    return confidence, correct
