"""Intervals and comparisons of scores that are plain means: NLL, Brier, accuracy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..._arrays import ArrayLike, as_array, as_floating, as_numpy
from ...errors import InputError
from ..pairs.pairs_and_weights import binary_pair, sample_weights
from .bounded_means import bounded_interval_of_sums
from .cautions import (
    CautionedMean,
    CautionEvidence,
    caution,
    caution_evidence_of_terms,
    first_interval_caution,
)
from .comparisons import Comparison
from .interval_ends import (
    Interval,
    skew_missed_at_interval_end,
    student_quantile,
    tail_interval_ends,
)
from .levels import check_draws, checked_level, exact_interval_ends, normal_quantile

__all__ = [
    "bootstrap_interval", "compare_means", "holm", "interval_of_sums", "mean_interval",
    "share_interval", "share_interval_of_sums", "unbounded_mean_interval", "wilson_interval",
]  # fmt: skip


_TOLD = 1e-6
"""The variance, as a share of the mean square, below which rounding hides sums of fourth powers."""


def mean_interval(
    terms: ArrayLike,
    calibrated_mean: ArrayLike,
    calibrated_variance: ArrayLike,
    level: float = 0.95,
    *,
    calibrated_third: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> Interval:
    """Return the interval of a score that is a mean over samples, such as NLL or Brier.

        value = sum_i s_i x_i,   v = n / (n-1) sum_i s_i^2 (x_i - value)^2
        ends = value -+ sqrt(v') max((m / q - 1) sqrt(m) t / c,  t + (t^2 + 2) k' / 3)

    with s_i the share of sample i in the weight, n = 1 / sum_i s_i^2, t and c the quantiles of
    Student's t with n - 1 degrees of freedom and of a normal distribution, `k^2` what the squared
    skewness of the mean towards that end exceeds a calibrated model's by, m = 1 / k^2 (at least 2),
    and q the quantile of a Gamma distribution of shape m at `(1 - level) / 2`. The first is the
    exact interval of m terms that vary as exponential ones, and Student's for k = 0: about m
    samples make the variance, and their size is as uncertain as their number. Towards the end at
    which a calibrated model is skewed, v' and k' are at least those of that model: the errors of a
    sharp model are rare and cost much, in a small sample they may be missing, and so would be their
    variance. The second is right for the number of rare failures (Johnson 1978). One sample has no
    finite interval. Failures that are missing in the sample, and terms of infinite variance, are
    covered less often; `caution` says so where fewer than 6 samples make the variance and no
    calibrated model is known.

    Args:
        terms: `[..., N]`, the score of each sample.
        calibrated_mean: `[..., N]`, the expected value of each term for a calibrated model.
        calibrated_variance: `[..., N]`, the variance of each term for a calibrated model.
        level: Nominal coverage.
        calibrated_third: `[..., N]`, the third central moment of each term for a calibrated model;
            0 by default.
        weights: `[N]` sample weights >= 0; equal by default.

    Returns:
        The interval.

    See Also:
        share_interval: Of an accuracy.
        bounded_mean_interval: Of bounded terms, valid for every number of samples.

    References:
        Johnson, Modified t tests and confidence intervals for asymmetrical populations, JASA 1978.

    Example:
        >>> found = mean_interval([1.0, 0.0, 1.0, 1.0], [0.8] * 4, [0.16] * 4)
        >>> round(float(found.value), 2), round(float(found.calibrated), 2)
        (0.75, 0.8)
    """
    given = {
        "terms": terms,
        "calibrated_mean": calibrated_mean,
        "calibrated_variance": calibrated_variance,
        "calibrated_third": [0.0] if calibrated_third is None else calibrated_third,
    }
    values, *moments = (
        as_floating(name, part).detach().double().cpu() for name, part in given.items()
    )
    share = weight_shares(weights, values)
    expected, variance, third = (
        (part.where(share > 0, 0.0) * share**power).sum(-1)
        for power, part in enumerate(moments, start=1)
    )
    return skewed_interval(values, share, expected, variance, third, level)


def skewed_interval(
    terms: Tensor, share: Tensor, expected: Tensor, variance: Tensor, third: Tensor, level: float
) -> Interval:
    """Return `mean_interval` from the three moments `[...]` of a calibrated model's mean."""
    size = 1 / share.square().sum(-1)
    usual_reach, reach = normal_quantile(checked_level(level)), student_quantile(level, size - 1)
    terms = terms.where(share > 0, 0.0)  # those that do not count may be infinite
    value = (terms * share).sum(-1)
    apart = (terms - value[..., None]) * share
    seen = apart.square().sum(-1) * size / (size - 1)
    seen_third = apart.pow(3).sum(-1)

    def away(side: int) -> Tensor:
        spread = torch.where(side * third >= 0, torch.maximum(seen, variance), seen)
        own, usual = (
            (side * third_).clamp(min=0) / _power(v)
            for third_, v in ((seen_third, seen), (third, variance))
        )
        few = _few_terms_reach((own.square() - usual.square()).clamp(min=0).sqrt(), level)
        tilt = torch.maximum(side * seen_third, side * third).clamp(min=0) / _power(spread)
        rare = reach + tilt * (reach**2 + 2) / 3
        distance = spread.sqrt() * torch.maximum(few * reach / usual_reach, rare)
        return distance.nan_to_num(nan=torch.inf)  # one sample says nothing of its spread

    ends = value - away(-1), value + away(1)
    beside, tilted = variance.sqrt(), third / _power(variance) * (usual_reach**2 - 1) / 6
    usual = (expected - beside * (usual_reach - tilted), expected + beside * (usual_reach + tilted))
    # A calibrated model's variance says what few samples do not.
    limit = (
        ""
        if bool((variance > 0).any())
        else caution("mean", caution_evidence_of_terms(terms, share))
    )
    return Interval(value, *ends, expected, *usual, level, "Student's t, skewed", limit)


def share_interval(
    correct: ArrayLike,
    confidence: ArrayLike,
    level: float = 0.95,
    *,
    weights: ArrayLike | None = None,
) -> Interval:
    """Return the accuracy with its exact interval, which holds at every number of samples.

    It is that of `bounded_mean_interval` for values that are true or false (Clopper and Pearson). A
    calibrated model's accuracy is the mean confidence. With weights, the number of samples is the
    effective one, `(sum_i w_i)^2 / sum_i w_i^2` (Kish).

    Args:
        correct: `[..., N]` boolean, or 0 and 1.
        confidence: `[..., N]` in [0, 1].
        level: Nominal coverage.
        weights: `[N]` sample weights >= 0; equal by default.

    Returns:
        The interval.

    See Also:
        bounded_mean_interval: Of any mean of values with bounds.

    Example:
        >>> found = share_interval([True] * 20, [0.9] * 20)
        >>> round(float(found.low), 3), round(float(found.high), 3)
        (0.832, 1.0)
    """
    square = normal_quantile(checked_level(level)) ** 2
    z, hit, mass = binary_pair(confidence, correct, weights)
    z, hit = z.double().cpu(), hit.double().cpu()
    share = weight_shares(mass, z)
    value, expected = (hit * share).sum(-1), (z * share).sum(-1)
    size = 1 / share.square().sum(-1)
    low, high = exact_interval_ends((value * size).numpy(), size.numpy(), (1 - level) / 2)
    ends = torch.as_tensor(low), torch.as_tensor(high)
    spread = (z * (1 - z)).clamp(min=0)  # rounding may lift a confidence above 1
    beside = (square * (spread * share.square()).sum(-1)).sqrt()
    usual = (expected - beside).clamp(min=0), (expected + beside).clamp(max=1)
    return Interval(value, *ends, expected, *usual, level, "Clopper and Pearson")


def wilson_interval(
    share: ArrayLike, size: ArrayLike, level: float = 0.95
) -> tuple[Tensor, Tensor]:
    """Return the ends of Wilson's interval of a share.

    For a mean of other values between 0 and 1 the interval is at least as wide as it need be.

    Args:
        share: `[...]`, the share.
        size: `[...]`, the number of samples it is a share of.
        level: Nominal coverage.

    Returns:
        Lower and upper end `[...]`, float64.

    References:
        Wilson, Probable inference, the law of succession, and statistical inference, JASA 1927.

    Example:
        >>> [round(float(end), 4) for end in wilson_interval(0.05, 100)]
        [0.0215, 0.1118]
    """
    given = (("share", share), ("size", size))
    share, size = (as_array(name, part).double() for name, part in given)
    square = torch.tensor(normal_quantile(checked_level(level))).square()
    middle = (share * size + square / 2) / (size + square)
    spread = (share * size * (1 - share)).clamp(min=0) + square / 4
    around = (square * spread).sqrt() / (size + square)
    return (middle - around).clamp(min=0), (middle + around).clamp(max=1)


def _few_terms_reach(skewness: Tensor, level: float) -> Tensor:
    """Return how many standard errors lie between a mean and its end, if it is skewed that way.

    Example:
        >>> each = _few_terms_reach(torch.tensor([0.0, 0.2, 0.5, 1.0]), 0.95)
        >>> [round(float(one), 2) for one in each]
        [1.96, 2.73, 5.34, 10.26]
    """
    from scipy.special import gammaincinv

    terms = skewness.double().clamp(min=1e-7).pow(-2).clamp(min=2)
    least = torch.as_tensor(gammaincinv(terms.numpy(), (1 - level) / 2))
    return (terms / least - 1) * terms.sqrt()


def _power(variance: Tensor) -> Tensor:
    """Return the third power of the deviation, which divides a third moment; never 0."""
    return variance.pow(1.5).clamp(min=1e-300)


def weight_shares(weights: ArrayLike | None, values: Tensor) -> Tensor:
    """Return each sample's share of the total weight, `[..., N]`."""
    mass = sample_weights(weights, values)
    if mass is None:
        return torch.full((values.shape[-1],), 1 / values.shape[-1], dtype=torch.float64)
    return mass / mass.sum(-1, keepdim=True)


def compare_means(a: ArrayLike, b: ArrayLike, *, level: float = 0.95) -> Comparison:
    """Compare a score of two models on the same samples by its terms, sample by sample.

        difference = mean(a - b),   reach = c sd(a - b) / sqrt(n)

    with c the quantile of Student's t with n - 1 degrees of freedom: what the models share cancels
    in each sample's difference. If the models do not differ, all n differences have one sign with
    probability 2^(1-n) at least, so no p-value is smaller, and fewer than 6 samples never exclude 0
    at the level .95.

    Args:
        a: `[N]`, the score of each sample under one model, such as its NLL, or 1 where correct.
        b: `[N]`, the same under the other model.
        level: nominal coverage.

    Returns:
        The difference `a - b` with its interval and p-value.

    See Also:
        compare: Of calibration errors.
        holm: The correction of several comparisons.

    Example:
        >>> found = compare_means([1.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.0])
        >>> round(float(found.difference), 2), round(float(found.high), 2)
        (0.5, 1.42)
    """
    from scipy.special import stdtr

    one, other = (_terms(name, values) for name, values in (("a", a), ("b", b)))
    if len(one) != len(other):
        raise InputError("b", f"the {len(one)} samples of a", len(other))
    if len(one) < 2:
        raise InputError("a", "at least 2 samples", "1")
    each = one - other
    difference = each.mean()
    error = (each.var() / len(each)).sqrt()
    ends = _paired_mean_interval(
        torch.tensor(len(each)),
        difference,
        error,
        caution_evidence_of_terms(each, 1 / len(each)),
        level,
    )
    odds = 2 * stdtr(len(each) - 1, -float(difference.abs() / error.clamp(min=1e-300)))
    least = 2.0 ** (1 - len(each))
    p_value = torch.where(difference == 0, 1.0, torch.as_tensor(odds).clamp(min=least))
    return Comparison(*ends, p_value, level, caution=ends.caution)


def paired_interval_of_sums(*sums: np.ndarray, level: float = 0.95) -> CautionedMean[np.ndarray]:
    """Return the difference of `compare_means` and the ends of its interval, `[...]` each.

    Args:
        sums: `[...]` each: the number of samples, and the sums of their differences and of the
            second, third and fourth powers of these.
        level: Nominal coverage.

    Example:
        >>> sums = map(np.array, (4, 2.0, 2.0, 2.0, 2.0))  # 1, 0, 0, 1
        >>> [round(float(part), 2) for part in paired_interval_of_sums(*sums)]
        [0.5, -0.42, 1.42]
    """
    found = _central_moments_of_mean(*sums)
    known, middle, error = (
        torch.from_numpy(np.asarray(part)) for part in (sums[0], found.mean, found.error)
    )
    ends = _paired_mean_interval(known, middle, error, found.evidence, level)
    mean, low, high = (part.numpy() for part in ends)
    return CautionedMean((mean, low, high), ends.caution)


def _paired_mean_interval(
    count: Tensor, difference: Tensor, error: Tensor, seen: CautionEvidence, level: float
) -> CautionedMean[Tensor]:
    """Return a mean of differences with its interval; few of one sign may be chance."""
    around = student_quantile(checked_level(level), count.double() - 1) * error
    chance = 2.0 ** (1 - count.double()) > 1 - level
    around = torch.where(chance, torch.maximum(around, difference.abs()), around)
    ends = difference, difference - around, difference + around
    return CautionedMean(ends, caution("compare_means", seen))


def _terms(name: str, values: ArrayLike) -> Tensor:
    terms = as_array(name, values).detach().cpu()
    if terms.ndim != 1 or len(terms) == 0 or terms.is_complex():
        raise InputError(name, "real numbers of shape [N]", terms)
    return terms.double()


def _sums(*sums: ArrayLike) -> Iterator[np.ndarray]:
    names = ("count", "total", "squares", "cubes", "fourths")
    for name, part in zip(names, sums, strict=False):
        yield np.asarray(part) if isinstance(part, np.generic) else as_numpy(name, part)


def unbounded_mean_interval(
    values: ArrayLike, level: float = 0.95, *, low: float = -np.inf
) -> CautionedMean[np.ndarray]:
    """Return a mean of values without bounds, such as distances, with its interval.

    It is that of `interval_of_sums`. No interval of such a mean holds whatever the values are:
    `caution` says where large ones may be missing in the sample.

    Args:
        values: `[..., N]`; what is not finite is missing.
        level: Nominal coverage.
        low: What no value can be below, such as 0 for distances.

    Returns:
        Mean, lower and upper end, `[...]` each, NaN where there are too few samples.

    See Also:
        bounded_mean_interval: Of bounded values, valid for every number of samples.
        mean_interval: Of a score whose moments are known for a calibrated model.

    Example:
        >>> [round(float(end), 3) for end in unbounded_mean_interval([1.0, 2.0, 3.0, 4.0])]
        [2.5, 0.446, 4.554]
    """
    given = as_numpy("values", values, np.float64)
    if given.ndim == 0:
        raise InputError("values", "shape [..., N]", "a number")
    seen = np.isfinite(given)
    terms = np.where(seen, given, 0.0)
    first, second, third, fourth = (np.asarray((terms**n).sum(-1)) for n in range(1, 5))
    count = np.asarray(seen.sum(-1))
    return interval_of_sums(count, first, second, third, fourth, level, low=low)


def interval_of_sums(
    count: ArrayLike,
    total: ArrayLike,
    squares: ArrayLike,
    cubes: ArrayLike,
    fourths: ArrayLike,
    level: float = 0.95,
    *,
    low: float = -np.inf,
) -> CautionedMean[np.ndarray]:
    """Return mean, low and high end of a mean over samples, from sums made block by block.

    The interval is that of `mean_interval` if no moments of a calibrated model are known: Student's
    t, which reaches farther towards the side of rare large values. Sums do not tell the skewness of
    values that differ by less than a thousandth of their size. One sample has a mean and no
    interval.

    Args:
        count: `[...]`, the number of samples n.
        total: `[...]`, the sum of their values.
        squares: `[...]`, the sum of the squares of their values.
        cubes: `[...]`, the sum of their third powers, for the skewness of the mean.
        fourths: `[...]`, the sum of their fourth powers, for the `caution` of few large values.
        level: Nominal coverage.
        low: What no value can be below.

    Returns:
        Three arrays `[...]`, NaN where there are too few samples.

    Example:
        >>> sums = map(np.array, (4, 10.0, 30.0, 100.0, 354.0))
        >>> [round(float(end), 3) for end in interval_of_sums(*sums)]
        [2.5, 0.446, 4.554]
    """
    usual_reach = normal_quantile(checked_level(level))
    found = _central_moments_of_mean(*_sums(count, total, squares, cubes, fourths))
    mean, error = found.mean, found.error
    reach = student_quantile(level, torch.from_numpy(found.freedom)).numpy()
    tilts = np.maximum(np.stack([-found.skewness, found.skewness]), 0)
    few = _few_terms_reach(torch.from_numpy(tilts), level).numpy() * reach / usual_reach
    with np.errstate(invalid="ignore"):  # a single sample has no error, and an infinite reach
        away = error * np.maximum(few, reach + tilts * (reach**2 + 2) / 3)
    ends = np.maximum(mean - away[0], low), mean + away[1]
    return CautionedMean((mean, *ends), caution("unbounded_mean_interval", found.evidence))


@dataclass(frozen=True)
class _Central:
    """A mean of `n = freedom + 1` samples, its standard error and skewness, `[...]` each."""

    mean: np.ndarray
    freedom: np.ndarray
    error: np.ndarray
    skewness: np.ndarray
    evidence: CautionEvidence


def _central_moments_of_mean(count: np.ndarray, *sums: np.ndarray) -> _Central:
    """Return what sums of the first four powers tell about a mean."""
    with np.errstate(invalid="ignore", divide="ignore"):
        mean, second, third, fourth = (part / count for part in sums)
        freedom = np.where(count > 1, count - 1.0, np.nan)
        variance = (second - mean**2).clip(0)
        error = np.sqrt(variance / freedom)
        told = variance > _TOLD * second  # else rounding hides higher moments
        fourth = fourth - 4 * mean * third + 6 * mean**2 * second - 3 * mean**4
        third = third - 3 * mean * second + 2 * mean**3
        skewness = np.where(told, third / count**2 / error**3, 0.0)
        contributors = np.where(told, count * variance**2 / fourth, 0.0)
    seen = CautionEvidence(
        samples=np.where(count > 1, count, np.inf),
        contributors=np.where(count > 1, contributors, np.inf),
    )
    return _Central(mean, freedom, error, skewness, seen)


def share_interval_of_sums(
    count: ArrayLike, total: ArrayLike, squares: ArrayLike, level: float = 0.95
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean, low and high end of a mean of values in [0, 1], from sums made block by block.

    If all values are 0 or 1 it is the exact interval of `share_interval`, otherwise that of
    `bounded_interval_of_sums`.

    Args:
        count: `[...]`, the number of samples n.
        total: `[...]`, the sum of their values.
        squares: `[...]`, the sum of the squares of their values.
        level: Nominal coverage.

    Returns:
        Three arrays `[...]`, NaN where there are too few samples.

    Example:
        >>> sums = map(np.array, (4, 3.0, 3.0))
        >>> [round(float(end), 3) for end in share_interval_of_sums(*sums)]
        [0.75, 0.194, 0.994]
    """
    checked_level(level)
    count, total, squares = _sums(count, total, squares)
    tail = (1 - level) / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / count
        binary = abs(total - squares) <= 1e-9 * total
        ends = exact_interval_ends(np.where(binary, np.rint(total), np.nan), count, tail)
    if not binary.all():
        bets = bounded_interval_of_sums(count, total, squares, level)
        ends = np.where(binary, ends[0], bets[1]), np.where(binary, ends[1], bets[2])
    return mean, *ends


def bootstrap_interval(
    samples: ArrayLike,
    statistic: Callable[[np.ndarray], float] = np.mean,
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[float, float, float]:
    """Return a statistic of samples with its expanded percentile bootstrap interval.

    Resamples of n samples vary less than n samples do: the quantiles lie `sqrt(n / (n-1)) t / c`
    times as far from the median, with t and c the quantiles of Student's t with n - 1 degrees of
    freedom and of a normal distribution (Hesterberg 2015), and farther where few samples make a
    skewed statistic. It is still covered less often than stated if these are missing in the sample;
    of a bounded mean use `bounded_mean_interval`.

    Args:
        samples: `[N, ...]`; whole rows are drawn, so that what belongs together stays so.
        statistic: A function of the drawn rows; the mean by default.
        level: Nominal coverage.
        resamples: Number of draws.
        seed: Seed of the draws.

    Returns:
        The statistic, and the lower and upper end of its interval.

    See Also:
        interval: The interval of a calibration error, which is biased upwards.

    References:
        Hesterberg, What teachers should know about the bootstrap, The American Statistician 2015.

    Example:
        >>> tuple(bootstrap_interval([1.0, 1.0, 1.0]))
        (1.0, 1.0, 1.0)
    """
    check_draws(level, resamples)
    rows = as_numpy("samples", samples)
    if rows.ndim == 0 or len(rows) < 2:
        raise InputError("samples", "at least 2 rows", rows)
    generator = np.random.default_rng(seed)
    draws = (generator.integers(len(rows), size=len(rows)) for _ in range(resamples))
    found = torch.tensor([float(statistic(rows[drawn])) for drawn in draws], dtype=torch.float64)
    size = torch.tensor(float(len(rows)))
    wider = student_quantile(level, size - 1) * (size / (size - 1)).sqrt() / normal_quantile(level)
    low, middle, high = tail_interval_ends(found, level)
    low = middle - (middle - low) * wider - skew_missed_at_interval_end(-found, level)
    high = middle + (high - middle) * wider + skew_missed_at_interval_end(found, level)
    terms = torch.from_numpy(rows.reshape(len(rows), -1).T.astype(float))
    limit = first_interval_caution(
        caution("bootstrap_interval", caution_evidence_of_terms(terms, 1 / len(rows)))
    )
    return CautionedMean((float(statistic(rows)), float(low), float(high)), limit)


def holm(p_values: ArrayLike) -> np.ndarray:
    """Return Holm's adjusted p-values, which bound the chance of any false alarm among them.

    Args:
        p_values: `[M]`, one for each test.

    Returns:
        The adjusted p-values `[M]`.

    References:
        Holm, A simple sequentially rejective multiple test procedure, Scand. J. Stat. 1979.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        array([0.03, 0.06, 0.06])
    """
    given = as_numpy("p_values", p_values, np.float64)
    order = np.argsort(given, kind="stable")
    adjusted = np.empty(len(order))
    scaled = given[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.maximum.accumulate(scaled).clip(max=1)
    return adjusted
