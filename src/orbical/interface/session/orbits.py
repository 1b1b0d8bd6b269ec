"""The calibration error over whole orbits, with an interval that knows they hang together.

The answers along one orbit are of one sample: they are not K independent ones, and an interval that
took them for such would be far too narrow. Here samples are drawn, each with its whole orbit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch

from ...calibration._interval import ends
from ...calibration.binned import Reliability, bin_index, diagram_of

Array = np.ndarray

DRAWS = 1000
LEVEL = 0.95


@dataclass(frozen=True)
class OverOrbits:
    """Confidence and correctness over whole orbits, in B bins.

    Attributes:
        diagram: the reliability diagram, each answer with the weight of its element.
        measure: `value`, `low`, `high` and `expected` of the ECE.
    """

    diagram: Reliability
    measure: dict[str, float]


def over_orbits(
    columns: Iterable[tuple[Array, Array]], weights: Array, bins: int, seed: int = 0
) -> OverOrbits:
    """Give the reliability diagram and the ECE over orbits, reading one element at a time.

        r[n, b] = sum_g w_g 1(z[g, n] in bin b) (correct[g, n] - z[g, n])
        m[n] = sum_g w_g 1(z[g, n] is known)
        ece = sum_b |mean_n r[n, b]| / mean_n m[n]

    The mean over samples is drawn from its normal distribution, with the covariance that the
    samples show: around the observed mean, and around zero for a calibrated model. Where answers
    are missing it is the quotient of two means, with its covariance to first order. The ends are
    those of `orbical.calibration.interval`.

    Arguments:
        columns: for each of K elements, confidences `[N]`, NaN where there is no answer, and
            whether they are right `[N]`.
        weights: of the elements, `[K]`, summing to 1.
        bins: the number of bins.
        seed: of the draws.

    >>> columns = [(np.full(50, 0.75), np.arange(50) % 4 > 0) for _ in range(4)]
    >>> found = over_orbits(columns, np.full(4, 0.25), bins=15)
    >>> round(found.measure["value"], 6), int(found.diagram.count.sum())
    (0.01, 200)
    """
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
    return OverOrbits(diagram_of(edges, *sums), _interval(residual, known, seed))


def _interval(residual: Array, known: Array, seed: int) -> dict[str, float]:
    """Give the ECE of residuals `[N, B]` and its ends; `known [N]` are the weights of answers."""
    residual, known = residual[known > 0], known[known > 0]
    samples, bins = residual.shape
    mean = residual.sum(0) / known.sum()
    apart = (residual - known[:, None] * mean) / known.mean()
    spread = np.cov(apart, rowvar=False).reshape(bins, bins) / samples
    noise = np.random.default_rng(seed).multivariate_normal(
        np.zeros(bins), spread, DRAWS, method="eigh"
    )
    value = float(np.abs(mean).sum())
    drawn, calibrated = (torch.from_numpy(np.abs(part).sum(1)) for part in (mean + noise, noise))
    low, high = ends(torch.tensor(value, dtype=torch.float64), drawn, calibrated, LEVEL)
    return {
        "value": value,
        "low": float(low),
        "high": min(1.0, float(high)),
        "expected": float(calibrated.mean()),
    }
