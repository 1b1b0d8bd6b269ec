"""Calibration errors of all positions of an orbit pooled: ECE with its interval, and KS.

The outputs along one orbit belong to one sample: they are not K independent samples, and an
interval that treated them as such would be far too narrow. Here samples are drawn, each with its
whole orbit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from ..._arrays import as_array, as_numpy
from ...errors import check_type, number_of_bins
from ..intervals.interval_ends import Interval, distance_interval, tail_interval_ends
from ..intervals.levels import checked_level, normal_quantile
from ..measures.binned import Reliability, bin_index, reliability_of_bins

__all__ = ["pooled_reliability"]


_DRAWS = 1000
_RANGE_BITS = 24
"""Patterns of a float32 whose sums are held at once: 2^24 of them."""

Blocks = Callable[[], Iterable[tuple[slice, list[np.ndarray]]]]


def pooled_reliability(
    columns: Iterable[tuple[np.ndarray, np.ndarray]],
    weights: np.ndarray,
    *,
    bins: int = 15,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[Reliability, Interval]:
    """Return the reliability diagram and the ECE of an orbit, reading one element at a time.

        r[n, b] = sum_g w_g 1(z[g, n] in bin b) (correct[g, n] - z[g, n])
        m[n] = sum_g w_g 1(z[g, n] is known)
        ece = sum_b |mean_n r[n, b]| / mean_n m[n]

    The mean over samples is drawn from its normal distribution, with the covariance that the
    samples show: around the observed mean, and around zero for a calibrated model. Where outputs
    are missing it is the quotient of two means, with its covariance to first order. Samples
    almost all right, or all wrong, show too little of it: with an accuracy a, (1 - 2a)^2 c^2
    samples of the other kind are added (c standard deviations cover the level), spread over the
    bins as the outputs are; a model never wrong in N may be wrong in c^2 / N (Wilson). The ends are
    those of `interval`.

    Args:
        columns: For each of K elements, confidences `[N]`, NaN where there is no output, and
            whether they are correct `[N]`.
        weights: Weights `[K]` of the elements, summing to 1.
        bins: Number of bins.
        level: Nominal coverage.
        seed: Seed of the draws.

    Returns:
        The diagram, each output weighted by its element, and the ECE with its interval.

    Example:
        >>> columns = [(np.full(50, 0.75), np.arange(50) % 4 > 0) for _ in range(4)]
        >>> diagram, error = pooled_reliability(columns, np.full(4, 0.25))
        >>> round(float(error.value), 6), int(diagram.count.sum())
        (0.01, 200)
    """
    bins = number_of_bins(bins)
    checked_level(level)
    sums = np.zeros((4, bins))  # counts, weights, and weighted confidence and correctness
    residual, known = torch.zeros((bins, 0), dtype=torch.float64), np.zeros(0)
    expected = "confidences and correctness of each element"
    check_type("columns", columns, Iterable, expected)
    for column, weight in zip(columns, as_numpy("weights", weights), strict=True):
        check_type("columns", column, Sequence, expected)
        sure, right = (as_numpy("columns", values) for values in column)
        if not len(known):
            residual, known = residual.new_zeros((bins, len(sure))), np.zeros(len(sure))
        seen, at = ~np.isnan(sure), bin_index(as_array("columns", sure), bins)
        exact = sure.astype(np.float64)
        terms = np.where(seen, weight * (right - exact), 0.0)
        residual.scatter_add_(0, at[None], torch.from_numpy(terms)[None])
        known += weight * seen
        inside, exact, right = at.numpy()[seen], exact[seen], right[seen].astype(np.float64)
        here = np.stack([np.bincount(inside, part, bins) for part in (None, exact, right)])
        sums += np.concatenate([here[:1], weight * here])
    each = residual.T.contiguous().numpy()
    error = pooled_ece_interval(each, known, sums[3].sum(), sums[1], level, seed)
    count, *weighted = torch.from_numpy(sums)
    return reliability_of_bins(count.long(), *weighted), error


def pooled_ece_interval(
    residual: np.ndarray, known: np.ndarray, right: float, mass: np.ndarray, level: float, seed: int
) -> Interval:
    """Return the ECE of samples that hold several outputs each, from their residuals `[N, B]`.

    `known [N]` are the weights of a sample's outputs, `mass [B]` those of the outputs of a bin, and
    `right` is the weight of all correct ones.
    """
    total = max(mass.sum(), 1e-300)
    missing = (1 - 2 * right / total) * (mass / total)  # a sample of the kind that few may lack
    residual, known = residual[known > 0], known[known > 0]
    samples, bins = residual.shape
    if samples < 2:
        found = np.abs(residual).sum() / known.sum() if samples else np.nan
        value, low, high, unknown = torch.tensor([found, 0, 1, np.nan], dtype=torch.float64)
        return Interval(value, low, high, unknown, unknown, unknown, level, "too few samples")
    mean = residual.sum(0) / known.sum()
    apart = (residual - known[:, None] * mean) / known.mean()
    spread = np.cov(apart, rowvar=False).reshape(bins, bins) / samples
    spread += np.outer(missing, missing) * (normal_quantile(level) / samples) ** 2
    noise = np.random.default_rng(seed).multivariate_normal(
        np.zeros(bins), spread, _DRAWS, method="eigh"
    )
    value = torch.tensor(np.abs(mean).sum(), dtype=torch.float64)
    drawn, calibrated = (torch.from_numpy(np.abs(part).sum(1)) for part in (mean + noise, noise))
    low, high = distance_interval(value, drawn, calibrated, level)
    least, _, most = tail_interval_ends(calibrated, level)
    usual = (calibrated.mean(), least, most)
    return Interval(value, low, high.clamp(max=1), *usual, level, "orbits drawn together")


def pooled_ks(blocks: Blocks, weights: np.ndarray) -> Tensor:
    """Return KS of all outputs along orbits, however many, without sorting them.

    Numbers >= 0 are ordered as their bits are, read as integers. So differences are added up at
    the pattern of their confidence, one range of patterns at a time: equal confidences come
    together, and memory does not depend on the number of outputs.

    Args:
        blocks: Starts a pass over blocks of samples: which they are, confidences `[n, K]` in
            float32, NaN where there is no output, and whether they are correct `[n, K]`.
        weights: Weights `[K]` of the elements.

    Returns:
        The error, float64.

    Example:
        >>> sure, right = np.float32([[0.9, 0.9, 0.6]]), np.array([[True, False, True]])
        >>> pooled_ks(lambda: [(slice(0, 1), [sure, right])], np.full(3, 1 / 3))
        tensor(0.1333, dtype=torch.float64)
    """
    counts, total = np.zeros(1 << (32 - _RANGE_BITS), np.int64), 0.0
    for _, (sure, _) in blocks():
        known = ~np.isnan(sure)
        counts += np.bincount(_patterns(sure[known]) >> _RANGE_BITS, minlength=len(counts))
        total += float(known.sum(0) @ weights)
    below = largest = torch.zeros((), dtype=torch.float64)
    for number in np.flatnonzero(counts):
        sums = torch.zeros(1 << _RANGE_BITS, dtype=torch.float64)
        for _, (sure, right) in blocks():
            pattern = _patterns(sure)
            mine = (pattern >> _RANGE_BITS == number) & ~np.isnan(sure)
            difference = ((right > 0) - sure.astype(np.float64)) * weights
            place = torch.from_numpy(pattern[mine] & ((1 << _RANGE_BITS) - 1)).long()
            sums.index_add_(0, place, torch.from_numpy(difference[mine]))
        running = sums.cumsum_(0).add_(below)
        below, largest = running[-1].clone(), largest.maximum(running.abs_().max())
    return largest / total


def _patterns(values: np.ndarray) -> np.ndarray:
    return np.asarray(np.abs(values).view(np.int32))
