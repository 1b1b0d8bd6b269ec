"""The calibration error of all positions of an orbit pooled, with its interval.

The outputs along one orbit belong to one sample: they are not K independent samples, and an
interval that treated them as such would be far too narrow. Here samples are drawn, each with its
whole orbit.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch

from ._interval import Interval, checked_level, ends, tail_quantiles
from .binned import Reliability, bin_index, diagram_of
from .inputs import whole_number

_DRAWS = 1000


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
    are missing it is the quotient of two means, with its covariance to first order. The ends are
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
    whole_number("bins", bins)
    checked_level(level)
    count = np.zeros(bins, np.int64)
    mass, confidence, correct = (np.zeros(bins) for _ in range(3))
    residual, known = np.zeros((0, bins)), np.zeros(0)
    for (sure, right), weight in zip(columns, weights, strict=True):
        if not len(residual):
            residual, known = np.zeros((len(sure), bins)), np.zeros(len(sure))
        rows = np.flatnonzero(~np.isnan(sure))
        sure, right = sure[rows], right[rows]
        at = bin_index(torch.from_numpy(sure), bins).numpy()
        exact = sure.astype(np.float64)
        residual[rows, at] += weight * (right - exact)
        known[rows] += weight
        here = np.bincount(at, minlength=bins)
        count += here
        mass += weight * here
        confidence += weight * np.bincount(at, exact, minlength=bins)
        correct += weight * np.bincount(at, right.astype(np.float64), minlength=bins)
    edges = torch.arange(bins + 1, dtype=torch.float64) / bins
    sums = (torch.from_numpy(part) for part in (count, mass, confidence, correct))
    return diagram_of(edges, *sums), _interval(residual, known, level, seed)


def _interval(residual: np.ndarray, known: np.ndarray, level: float, seed: int) -> Interval:
    """Return the ECE of residuals `[N, B]`; `known [N]` are the weights of a sample's outputs."""
    residual, known = residual[known > 0], known[known > 0]
    samples, bins = residual.shape
    mean = residual.sum(0) / known.sum()
    apart = (residual - known[:, None] * mean) / known.mean()
    spread = np.cov(apart, rowvar=False).reshape(bins, bins) / samples
    noise = np.random.default_rng(seed).multivariate_normal(
        np.zeros(bins), spread, _DRAWS, method="eigh"
    )
    value = torch.tensor(np.abs(mean).sum(), dtype=torch.float64)
    drawn, calibrated = (torch.from_numpy(np.abs(part).sum(1)) for part in (mean + noise, noise))
    low, high = ends(value, drawn, calibrated, level)
    least, _, most = tail_quantiles(calibrated, level)
    usual = (calibrated.mean(), least, most)
    return Interval(value, low, high.clamp(max=1), *usual, level, "orbits drawn together")
