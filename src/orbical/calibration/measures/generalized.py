"""GENCE: normalized calibration error of vectors, with the value that a calibrated model has.

With `a = sqrt(2 s / pi)` element-wise (the mean absolute error that a Gaussian of variance s has)
and `e = |mean - target|`, Def. 6 of the equivariant calibration paper integrates over fibers of
equal variance. By the tower property no bins are needed: GENCE is a plain mean. A calibrated
Gaussian does not score 0 but `gence_floor`, in every dimension; the fiber-mean variants do score 0
and need bins.

GENCE depends on the frame: the same model in two rotated frames has two values. For full
covariances its marginal variances are used; `mahalanobis_calibration` is frame-free.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..._arrays import ArrayLike
from ..numerics.equal_mass import bin_count, bin_means, equal_mass_index
from ..pairs.validation import sample_weights, weighted_mean
from .gaussian import marginal_variance, vector_target

__all__ = ["gence", "gence_fiber", "gence_floor", "gence_sq", "gence_sq_fiber", "gence_sq_floor"]


gence_floor: float = math.pi / 2 - 1
"""GENCE of a calibrated Gaussian, in any dimension: pi/2 - 1."""

gence_sq_floor: float = 2.0
"""GENCE_sq of a calibrated Gaussian, in any dimension: 2."""


def _absolute(mean: ArrayLike, variance: ArrayLike, target: ArrayLike) -> tuple[Tensor, Tensor]:
    """Return `(a - e) / ||a||`, `[..., N, d]`, and the variances that order the fibers."""
    error, variance, full = vector_target(mean, variance, target)
    variance = marginal_variance(variance, full)
    expected = (2 * variance / math.pi).sqrt()
    length = torch.linalg.vector_norm(expected, dim=-1, keepdim=True)
    return (expected - error.abs()) / length, variance


def _squared(mean: ArrayLike, variance: ArrayLike, target: ArrayLike) -> tuple[Tensor, Tensor]:
    """Return `(s - e^2) / ||s||`, `[..., N, d]`, and the variances that order the fibers."""
    error, variance, full = vector_target(mean, variance, target)
    variance = marginal_variance(variance, full)
    length = torch.linalg.vector_norm(variance, dim=-1, keepdim=True)
    return (variance - error.square()) / length, variance


def _mean_over_fibers(
    gap: Tensor, variance: Tensor, bins: int, weights: ArrayLike | None
) -> Tensor:
    """Return `sum_b share_b || mean over bin b of gap ||^2`, with bins of the total variance."""
    key = variance.sum(-1)
    mass = sample_weights(weights, key)
    index = equal_mass_index(key, bins, mass)
    inside = bin_count(index, bins, mass)
    count = inside[..., None, :].expand(*gap.shape[:-2], gap.shape[-1], -1)
    each = None if mass is None else mass[..., None, :]
    mean = bin_means(gap.mT, index[..., None, :].expand(gap.mT.shape), count, each)
    return (count * mean.square()).sum((-1, -2)) / inside.sum(-1)


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
    gap, _ = _absolute(mean, variance, target)
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
    gap, _ = _squared(mean, variance, target)
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
    gap, variance = _absolute(mean, variance, target)
    return _mean_over_fibers(gap, variance, bins, weights)


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
    gap, variance = _squared(mean, variance, target)
    return _mean_over_fibers(gap, variance, bins, weights)
