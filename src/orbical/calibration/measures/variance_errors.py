"""Calibration of regression: does the predicted variance say how large the errors are?

`ence` and `uce` compare variance and error over bins of equal mass, `regression_esd` without bins,
`quantile_calibration` and `mahalanobis_calibration` compare the whole predicted distribution.
`gence` and its variants are for vectors.

GENCE has a value that a calibrated model has. With `a = sqrt(2 s / pi)` element-wise (the mean
absolute error that a Gaussian of variance s has) and `e = |mean - target|`, Def. 6 of the
equivariant calibration paper integrates over fibers of equal variance. By the tower property no
bins are needed: GENCE is a plain mean. A calibrated Gaussian does not score 0 but `gence_floor`, in
every dimension; the fiber-mean variants do score 0 and need bins.

GENCE depends on the frame: the same model in two rotated frames has two values. For full
covariances its marginal variances are used; `mahalanobis_calibration` is frame-free.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..._arrays import ArrayLike
from ...errors import InputError, errors_with_usage, whole_number
from ..numerics.equal_mass import bin_mass, bin_means, equal_mass_index
from ..numerics.gradients import differentiable_root
from ..pairs.pairs_and_weights import sample_weights, weighted_mean
from .binned import bin_index
from .cumulative import ordered_esd
from .gaussian import (
    gaussian_marginal_variance,
    gaussian_target,
    gaussian_vector_target,
    gaussian_whitened,
)

__all__ = [
    "Coverage", "ence", "gence", "gence_fiber", "gence_floor", "gence_sq", "gence_sq_fiber",
    "gence_sq_floor", "mahalanobis_calibration", "quantile_calibration", "regression_esd",
    "regression_esd_normalized", "uce",
]  # fmt: skip


def _over_bins(
    mean: ArrayLike, variance: ArrayLike, target: ArrayLike, bins: int, weights: ArrayLike | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return share, mean squared error and mean variance of each bin of equal mass, `[..., B]`."""
    error, variance = gaussian_target(mean, variance, target)
    mass = sample_weights(weights, error)
    index = equal_mass_index(variance, bins, mass)
    count = bin_mass(index, bins, mass)
    mean_square = bin_means(error.square(), index, count, mass)
    share = count / count.sum(-1, keepdim=True)
    return share, mean_square, bin_means(variance, index, count, mass)


@errors_with_usage()
def ence(
    mean: ArrayLike,
    variance: ArrayLike,
    target: ArrayLike,
    *,
    bins: int = 15,
    weights: ArrayLike | None = None,
) -> Tensor:
    """Return the expected normalized calibration error over bins of equal mass.

        ENCE = sum_b share_b |RMV_b - RMSE_b| / RMV_b

    with RMV the root of the mean variance and RMSE that of the mean squared error in a bin of the
    predicted variance (Levi et al. 2022). Bins whose samples tie are joined, so shares may differ,
    and the mean over bins is weighted by them. 0 for a calibrated model with infinitely many
    samples; without unit. Differentiable, the bins being held fixed.

    Args:
        mean: `[..., N]`.
        variance: `[..., N]`.
        target: `[..., N]`.
        bins: the number of bins.
        weights: `[..., N]` sample weights >= 0; 1 by default.

    Returns:
        The error `[...]`, float64.

    Raises:
        InputError: if shapes do not fit together, or a variance is not positive.

    See Also:
        uce: Of variances, in the unit of the target.
        gence: For vectors.
        regression_esd: Without bins.

    References:
        Levi et al., Evaluating and calibrating uncertainty prediction in regression tasks, Sensors
        2022.

    Example:
        >>> ence([0.0, 0.0], [1.0, 4.0], [1.0, 1.0], bins=2)
        tensor(0.2500, dtype=torch.float64)
    """
    share, mean_square, mean_variance = _over_bins(mean, variance, target, bins, weights)
    predicted = torch.where(share > 0, mean_variance, 1.0).sqrt()
    return (share * (predicted - differentiable_root(mean_square)).abs() / predicted).sum(-1)


@errors_with_usage()
def uce(
    mean: ArrayLike,
    variance: ArrayLike,
    target: ArrayLike,
    *,
    bins: int = 15,
    weights: ArrayLike | None = None,
) -> Tensor:
    """Return the uncertainty calibration error over bins of equal mass.

        UCE = sum_b share_b |mean squared error_b - mean variance_b|

    (Laves et al. 2020, with bins of equal mass.) In the squared unit of the target.
    Differentiable, the bins being held fixed.

    Args:
        mean: `[..., N]`.
        variance: `[..., N]`.
        target: `[..., N]`.
        bins: the number of bins.
        weights: `[..., N]` sample weights >= 0; 1 by default.

    Returns:
        The error `[...]`, float64.

    Raises:
        InputError: if shapes do not fit together, or a variance is not positive.

    See Also:
        ence: Relative, without a unit.

    References:
        Laves et al., Well-calibrated regression uncertainty in medical imaging with deep learning,
        MIDL 2020.

    Example:
        >>> uce([0.0, 0.0], [1.0, 4.0], [1.0, 1.0], bins=2)
        tensor(1.5000, dtype=torch.float64)
    """
    share, mean_square, mean_variance = _over_bins(mean, variance, target, bins, weights)
    return (share * (mean_square - mean_variance).abs()).sum(-1)


@errors_with_usage()
def regression_esd(
    mean: ArrayLike, variance: ArrayLike, target: ArrayLike, *, weights: ArrayLike | None = None
) -> Tensor:
    """Return the expected squared difference of squared error and variance, without bins.

        d_i = e_i^2 - s_i in the order of s,   S_i = sum_{j != i, s_j <= s_i} d_j
        ESD = sum_i (S_i^2 - sum_{j != i, s_j <= s_i} d_j^2) / (N (N-1) (N-2))

    Unbiased for `E_t[(E[(e^2 - s) 1(s <= t)])^2]`, which is 0 exactly for a model whose variance
    is the mean squared error on every fiber; therefore sometimes negative. In the fourth power of
    the target's unit; see `regression_esd_normalized`. O(N log N); differentiable, the order being
    held fixed. The closed form of classification's ESD, with other differences.

    Args:
        mean: `[..., N]`, N >= 3.
        variance: `[..., N]`.
        target: `[..., N]`.
        weights: `[..., N]` sample weights >= 0, at least 3 of them positive; see `esd`.

    Returns:
        The estimate `[...]`, float64.

    Raises:
        InputError: if shapes do not fit together, or a variance is not positive.

    See Also:
        esd: Of a classifier.
        regression_esd_normalized: For vectors, without a unit.

    Example:
        >>> regression_esd([0.0, 0.0, 0.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
        tensor(0., dtype=torch.float64)
        >>> regression_esd([0.0, 0.0, 0.0], [1.0, 2.0, 3.0], [2.0, 2.0, 3.0])
        tensor(2., dtype=torch.float64)
    """
    error, variance = gaussian_target(mean, variance, target, minimum=3)
    mass = sample_weights(weights, error, minimum=3)
    return ordered_esd(error.square() - variance, variance.detach(), mass)


def regression_esd_normalized(
    mean: ArrayLike, variance: ArrayLike, target: ArrayLike, *, weights: ArrayLike | None = None
) -> Tensor:
    """Return the regression ESD of the normalized error, which has no unit.

        one target: d_i = e_i^2 / s_i - 1 in the order of s
        d targets:  d_i = e_i^T Sigma_i^-1 e_i / d - 1 in the order of det Sigma

    Unbiased, 0 in expectation for a calibrated model. The second form is the same in every
    orthonormal frame, because the Mahalanobis distance and the determinant are. Differentiable,
    the order being held fixed.

    Args:
        mean: `[N]` or `[..., N, d]`, N >= 3.
        variance: as the mean, `[..., N, 1]`, or a full covariance `[..., N, d, d]`.
        target: as the mean.
        weights: `[..., N]` sample weights >= 0, at least 3 of them positive; see `esd`.

    Returns:
        The estimate `[...]`, float64.

    Raises:
        InputError: if shapes do not fit together, or a variance is not positive.

    Example:
        >>> regression_esd_normalized([0.0, 0.0, 0.0], [1.0, 2.0, 4.0], [2.0, 2.0, 2.0])
        tensor(1., dtype=torch.float64)
    """
    error, variance, full = gaussian_vector_target(mean, variance, target)
    if error.shape[-2] < 3:
        raise InputError("mean", "at least 3 samples", error.shape[-2])
    distance, log_determinant = gaussian_whitened(error, variance, full)
    mass = sample_weights(weights, distance, minimum=3)
    return ordered_esd(distance / error.shape[-1] - 1, log_determinant.detach(), mass)


@dataclass(frozen=True)
class Coverage:
    """How often the truth lies within a predicted region, for regions of several levels.

    Attributes:
        levels: `[L]` nominal probabilities, `1 / (L+1)` to `L / (L+1)`.
        observed: `[..., L]` (weighted) share of samples whose target lies in the region of that
            level.
        error: `[...]` mean of |observed - level| over the levels: 0 for a calibrated model with
            infinitely many samples, 1/2 for one that is always far too low or too confident.
    """

    levels: Tensor
    observed: Tensor
    error: Tensor


def coverage_of(probability: Tensor, levels: int, mass: Tensor | None = None) -> Coverage:
    """Return how often probabilities `[..., N]`, uniform if calibrated, lie below each level.

    Example:
        >>> coverage_of(torch.tensor([0.1, 0.6]), 3).observed
        tensor([0.5000, 0.5000, 1.0000], dtype=torch.float64)
    """
    levels = whole_number("levels", levels)
    index = bin_index(probability.detach().clamp(0, 1), levels + 1)
    count = bin_mass(index, levels + 1, mass)
    share = count / count.sum(-1, keepdim=True)
    nominal = torch.arange(1, levels + 1, device=index.device, dtype=torch.float64) / (levels + 1)
    observed = share.cumsum(-1)[..., :-1]
    return Coverage(nominal, observed, (observed - nominal).abs().mean(-1))


@errors_with_usage()
def quantile_calibration(
    mean: ArrayLike,
    variance: ArrayLike,
    target: ArrayLike,
    *,
    levels: int = 99,
    weights: ArrayLike | None = None,
) -> Coverage:
    """Return how often targets lie below the predicted quantiles, for a grid of levels.

        observed(p) = share of samples with Phi((y - mu) / sigma) <= p

    A calibrated model has `observed(p) = p` (Kuleshov et al. 2018). It sees a shifted mean as well
    as a wrong variance, and averages over all variances: a model that is overconfident on some
    samples and underconfident on others can pass; `ence` and `regression_esd` detect it.

    Args:
        mean: `[..., N]`.
        variance: `[..., N]`.
        target: `[..., N]`.
        levels: the number L of levels, `1 / (L+1)` to `L / (L+1)`.
        weights: `[..., N]` sample weights >= 0; 1 by default.

    Returns:
        Observed shares at each level, and their error.

    Raises:
        InputError: if shapes do not fit together, or a variance is not positive.

    See Also:
        mahalanobis_calibration: For vectors.

    References:
        Kuleshov et al., Accurate uncertainties for deep learning using calibrated regression,
        ICML 2018.

    Example:
        >>> quantile_calibration([0.0, 0.0], [1.0, 1.0], [-1.0, 0.5], levels=3).observed
        tensor([0.5000, 0.5000, 1.0000], dtype=torch.float64)
    """
    error, variance = gaussian_target(mean, variance, target)
    below = torch.special.ndtr(error.detach() / variance.detach().sqrt())
    return coverage_of(below, levels, sample_weights(weights, below))


@errors_with_usage()
def mahalanobis_calibration(
    mean: ArrayLike,
    variance: ArrayLike,
    target: ArrayLike,
    *,
    levels: int = 99,
    weights: ArrayLike | None = None,
) -> Coverage:
    """Return how often targets lie in the predicted ellipsoids, for a grid of levels.

        m^2 = e^T Sigma^-1 e,   observed(p) = share of samples with chi2_d(m^2) <= p

    where chi2_d is the distribution function of chi-squared with d degrees of freedom. The measure
    for full covariances, because it is the same in every orthonormal frame, which GENCE is not.
    For d = 1 it is the coverage of central intervals.

    Args:
        mean: `[N]` or `[..., N, d]`.
        variance: as the mean, `[..., N, 1]`, or a full covariance `[..., N, d, d]`.
        target: as the mean.
        levels: the number L of levels, `1 / (L+1)` to `L / (L+1)`.
        weights: `[..., N]` sample weights >= 0; 1 by default.

    Returns:
        Observed shares at each level, and their error.

    Raises:
        InputError: if shapes do not fit together, or a variance is not positive.

    Example:
        >>> mahalanobis_calibration([[0.0, 0.0]], [[1.0, 1.0]], [[1.0, 1.0]], levels=3).observed
        tensor([0., 0., 1.], dtype=torch.float64)
    """
    error, variance, full = gaussian_vector_target(mean, variance, target)
    distance, _ = gaussian_whitened(error.detach(), variance.detach(), full)
    mass = sample_weights(weights, distance)
    return coverage_of(error_ellipsoid_probability(distance, error.shape[-1]), levels, mass)


def error_ellipsoid_probability(distance: Tensor, width: int) -> Tensor:
    """Return the probability within the ellipsoid of a squared Mahalanobis distance, chi2_d(m^2).

    Example:
        >>> error_ellipsoid_probability(torch.tensor([0.0, 2.0]), 2)
        tensor([0.0000, 0.6321])
    """
    half = torch.full_like(distance, width / 2)
    probability: Tensor = torch.special.gammainc(half, distance / 2)
    return probability


gence_floor: float = math.pi / 2 - 1
"""GENCE of a calibrated Gaussian, in any dimension: pi/2 - 1."""

gence_sq_floor: float = 2.0
"""GENCE_sq of a calibrated Gaussian, in any dimension: 2."""


def _gap_of_variance_and_error(
    mean: ArrayLike, variance: ArrayLike, target: ArrayLike, power: int
) -> tuple[Tensor, Tensor]:
    """Return what is expected of the error less what is seen, over the length of the former.

    `(a - e) / ||a||` of errors, `(s - e^2) / ||s||` of their squares, both `[..., N, d]`; and the
    variances that order the fibers.
    """
    error, variance, full = gaussian_vector_target(mean, variance, target)
    variance = gaussian_marginal_variance(variance, full)
    if power == 1:
        expected, seen = (2 * variance / math.pi).sqrt(), error.abs()
    else:
        expected, seen = variance, error.square()
    length = torch.linalg.vector_norm(expected, dim=-1, keepdim=True)
    return (expected - seen) / length, variance


def _mean_over_variance_fibers(
    gap: Tensor, variance: Tensor, bins: int, weights: ArrayLike | None
) -> Tensor:
    """Return `sum_b share_b || mean over bin b of gap ||^2`, with bins of the total variance."""
    key = variance.sum(-1)
    mass = sample_weights(weights, key)
    index = equal_mass_index(key, bins, mass)
    inside = bin_mass(index, bins, mass)
    count = inside[..., None, :].expand(*gap.shape[:-2], gap.shape[-1], -1)
    each = None if mass is None else mass[..., None, :]
    mean = bin_means(gap.mT, index[..., None, :].expand(gap.mT.shape), count, each)
    return (count * mean.square()).sum((-1, -2)) / inside.sum(-1)


@errors_with_usage()
def gence(
    mean: ArrayLike, variance: ArrayLike, target: ArrayLike, *, weights: ArrayLike | None = None
) -> Tensor:
    """Return the generalized expected normalized calibration error, without bins.

        GENCE = E[ ||a - e||^2 / ||a||^2 ],   a = sqrt(2 s / pi),   e = |mean - target|

    Compare it with `gence_floor` = pi/2 - 1, the value of a calibrated Gaussian in any dimension,
    not with 0 (a model whose error always equals a scores 0 and is no Gaussian). Eq. 8 of the
    equivariant calibration paper, whose limit over fibers is this mean by the tower property.
    Differentiable. Not the same in all frames.

    Args:
        mean: `[N]` or `[..., N, d]`.
        variance: as the mean, `[..., N, 1]`, or a full covariance `[..., N, d, d]`, of which the
            diagonal is used.
        target: as the mean.
        weights: `[..., N]` sample weights >= 0; 1 by default.

    Returns:
        The error `[...]`, float64.

    Raises:
        InputError: if shapes do not fit together, or a variance is not positive.

    See Also:
        gence_fiber: 0 for a calibrated model.
        ence: For one target.
        orbical.bounds.regression: What a symmetry makes of it.

    Example:
        >>> gence([0.0, 0.0], [math.pi / 2, math.pi / 2], [1.0, 2.0])
        tensor(0.5000, dtype=torch.float64)
    """
    terms = gence_terms(mean, variance, target)
    return weighted_mean(terms, sample_weights(weights, terms))


def gence_terms(mean: ArrayLike, variance: ArrayLike, target: ArrayLike) -> Tensor:
    """Return what each sample adds to GENCE, `[..., N]`; see `gence`.

    Example:
        >>> gence_terms([0.0, 0.0], [math.pi / 2, math.pi / 2], [1.0, 2.0]).round(decimals=6)
        tensor([0., 1.], dtype=torch.float64)
    """
    gap, _ = _gap_of_variance_and_error(mean, variance, target, 1)
    return gap.square().sum(-1)


def gence_sq(
    mean: ArrayLike, variance: ArrayLike, target: ArrayLike, *, weights: ArrayLike | None = None
) -> Tensor:
    """Return the squared form of GENCE, without bins.

        GENCE_sq = E[ ||s - e^2||^2 / ||s||^2 ]

    Compare it with `gence_sq_floor` = 2, the value of a calibrated Gaussian in any dimension.
    Eq. 9 of the equivariant calibration paper. Differentiable. Not the same in all frames.

    Args:
        mean: `[N]` or `[..., N, d]`.
        variance: as the mean, `[..., N, 1]`, or a full covariance `[..., N, d, d]`, of which the
            diagonal is used.
        target: as the mean.
        weights: `[..., N]` sample weights >= 0; 1 by default.

    Returns:
        The error `[...]`, float64.

    Raises:
        InputError: if shapes do not fit together, or a variance is not positive.

    Example:
        >>> gence_sq([0.0, 0.0], [1.0, 1.0], [1.0, 2.0])
        tensor(4.5000, dtype=torch.float64)
    """
    terms = gence_sq_terms(mean, variance, target)
    return weighted_mean(terms, sample_weights(weights, terms))


def gence_sq_terms(mean: ArrayLike, variance: ArrayLike, target: ArrayLike) -> Tensor:
    """Return what each sample adds to GENCE_sq, `[..., N]`; see `gence_sq`.

    Example:
        >>> gence_sq_terms([0.0, 0.0], [1.0, 1.0], [1.0, 2.0])
        tensor([0., 9.], dtype=torch.float64)
    """
    gap, _ = _gap_of_variance_and_error(mean, variance, target, 2)
    return gap.square().sum(-1)


def gence_fiber(
    mean: ArrayLike,
    variance: ArrayLike,
    target: ArrayLike,
    *,
    bins: int = 15,
    weights: ArrayLike | None = None,
) -> Tensor:
    """Return GENCE with the error averaged over each fiber first: 0 for a calibrated model.

        sum_b share_b || E[ (a - e) / ||a|| in bin b ] ||^2

    with bins of equal mass of the total variance `sum_i s_i`. Where a bin is one fiber this is
    `||a - E[e | s]||^2 / ||a||^2`; with wider bins it stays 0 for a calibrated model and never
    exceeds GENCE. A bin of n samples adds about `gence_floor / n` to a calibrated model's value.
    Differentiable, the bins being held fixed.

    Args:
        mean: `[N]` or `[..., N, d]`.
        variance: as the mean, `[..., N, 1]`, or a full covariance `[..., N, d, d]`, of which the
            diagonal is used.
        target: as the mean.
        bins: the number of bins.
        weights: `[..., N]` sample weights >= 0; 1 by default.

    Returns:
        The error `[...]`, float64.

    Raises:
        InputError: if shapes do not fit together, or a variance is not positive.

    Example:
        >>> value = gence_fiber([0.0, 0.0], [math.pi / 2, math.pi / 2], [0.5, 1.5])
        >>> round(float(value), 6)
        0.0
    """
    gap, variance = _gap_of_variance_and_error(mean, variance, target, 1)
    return _mean_over_variance_fibers(gap, variance, bins, weights)


def gence_sq_fiber(
    mean: ArrayLike,
    variance: ArrayLike,
    target: ArrayLike,
    *,
    bins: int = 15,
    weights: ArrayLike | None = None,
) -> Tensor:
    """Return GENCE_sq with the squared error averaged over each fiber first: 0 if calibrated.

        sum_b share_b || E[ (s - e^2) / ||s|| in bin b ] ||^2

    with bins of equal mass of the total variance; see `gence_fiber`. A bin of n samples adds about
    `gence_sq_floor / n` to a calibrated model's value. Differentiable, the bins being held fixed.

    Args:
        mean: `[N]` or `[..., N, d]`.
        variance: as the mean, `[..., N, 1]`, or a full covariance `[..., N, d, d]`, of which the
            diagonal is used.
        target: as the mean.
        bins: the number of bins.
        weights: `[..., N]` sample weights >= 0; 1 by default.

    Returns:
        The error `[...]`, float64.

    Raises:
        InputError: if shapes do not fit together, or a variance is not positive.

    Example:
        >>> gence_sq_fiber([0.0, 0.0], [2.5, 2.5], [1.0, 2.0])
        tensor(0., dtype=torch.float64)
    """
    gap, variance = _gap_of_variance_and_error(mean, variance, target, 2)
    return _mean_over_variance_fibers(gap, variance, bins, weights)
