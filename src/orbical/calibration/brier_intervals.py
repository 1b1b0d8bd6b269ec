"""Intervals of the two parts of a Brier score, calibration and refinement.

Both come from an isotonic regression of each class, which adapts to noise: it finds a little
miscalibration in every calibrated model, and takes as much from the refinement. The calibration
part estimates the square of a distance and has the interval of `intervals`; the refinement's upper
end is raised by what a calibrated model would lose to the fit.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from .._arrays import ArrayLike, true_labels
from ._cells import fine_index
from ._interval import Interval, check_draws, ends, tail_quantiles
from .outputs import probabilities
from .scores import brier_parts

_WORK = 1 << 28
"""Largest number of additions of all draws together; very large outputs get fewer draws."""

_FITS = 40_000
"""Largest number of isotonic regressions in each world; many classes get fewer draws, too."""

_FEWEST = 20


def brier_part_intervals(
    *,
    probs: ArrayLike | None = None,
    logits: ArrayLike | None = None,
    labels: ArrayLike,
    level: float = 0.95,
    resamples: int = 200,
    seed: int = 0,
) -> dict[str, Interval]:
    """Return `brier_calibration` and `brier_refinement` of `brier_parts`, with intervals.

    Args:
        probs: probabilities `[N, C]`; or
        logits: scores `[N, C]`. Pass exactly one of the two.
        labels: class indices `[N]`.
        level: nominal coverage.
        resamples: number of draws from each of two worlds; fewer where `N C` or C is large.
        seed: seed of the draws.

    Returns:
        The two intervals, by name.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> z = rng.uniform(0.5, 1, 500)
        >>> found = brier_part_intervals(probs=np.stack([z, 1 - z], 1),
        ...                              labels=(rng.random(500) > z).astype(int), resamples=50)
        >>> bool(found["brier_calibration"].low == 0)
        True
    """
    check_draws(level, resamples)
    parts = brier_parts(probs=probs, logits=logits, labels=labels)
    p = probabilities(probs=probs, logits=logits).detach().double().cpu()
    truth = true_labels(labels, p).cpu()
    index, cells = fine_index(p.T.contiguous())
    draws = max(_FEWEST, min(resamples, _WORK // p.numel(), _FITS // p.shape[-1]))
    generator = np.random.default_rng(seed)
    again, chance = [], []
    cumulative = p.cumsum(-1).numpy()
    squares = p.square().sum(-1).numpy()
    outputs, hit = p.numpy(), truth.numpy()
    # The cell of sample i in class k has the number `place[k, i]` among those of all classes.
    place = (index + cells * torch.arange(len(index))[:, None]).numpy()
    samples, size = np.arange(len(p)), place.max(initial=0) + 1
    terms, right = _terms(outputs, squares, hit), place[hit, samples]
    every = np.bincount(place.ravel(), minlength=size).astype(np.float64)
    for _ in range(draws):
        weight = generator.poisson(1.0, len(p)).astype(np.float64)
        count = np.bincount(place.ravel(), np.tile(weight, len(place)), minlength=size)
        hits = np.bincount(right, weight, minlength=size)
        again.append(_parts((weight * terms).sum(), weight.sum(), count, hits, cells))
        drawn = generator.random((len(p), 1)) * cumulative[:, -1:]
        label = (cumulative < drawn).sum(-1).clip(max=p.shape[-1] - 1)
        hits = np.bincount(place[label, samples], minlength=size).astype(np.float64)
        score = _terms(outputs, squares, label).sum()
        chance.append(_parts(score, float(len(p)), every, hits, cells))
    observed = torch.stack([parts.calibration, parts.refinement]).cpu()
    resampled, calibrated = (torch.tensor(part, dtype=torch.float64) for part in (again, chance))
    here, drawn, right = (
        part[..., 0].clamp(min=0).sqrt() for part in (observed, resampled, calibrated)
    )
    low, high = (end.square() for end in ends(here, drawn, right, level))
    below, middle, above = tail_quantiles(resampled[:, 1], level)
    lost = calibrated[:, 0].mean()
    left = observed[1]
    return {
        "brier_calibration": _interval(observed[0], low, high, calibrated[:, 0], level),
        "brier_refinement": _interval(
            left,
            (left - (middle - below)).clamp(min=0),
            left + (above - middle) + lost,
            calibrated[:, 1],
            level,
        ),
    }


def _interval(value: Tensor, low: Tensor, high: Tensor, chance: Tensor, level: float) -> Interval:
    least, _, most = tail_quantiles(chance, level)
    return Interval(value, low, high, chance.mean(), least, most, level, "isotonic, two worlds")


def _terms(p: np.ndarray, squares: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return `brier_terms`, of which the squares `[N]` do not depend on the labels."""
    return np.asarray(squares - 2 * p[np.arange(len(p)), truth] + 1)


def _parts(
    score: float, total: float, count: np.ndarray, hits: np.ndarray, cells: int
) -> tuple[float, float]:
    """Return calibration and refinement of weighted samples, gathered in cells of each class."""
    from scipy.optimize import isotonic_regression

    total = max(total, 1.0)
    filled = np.flatnonzero(count)
    number, right = count[filled], hits[filled]
    # One regression for all classes: those of one class lie above all of the class before.
    lift = 2.0 * (filled // cells)
    share = isotonic_regression(right / number + lift, weights=number).x - lift
    # sum of (share - hit)^2 over the samples of a cell, some of them right
    left = (number * share**2 - 2 * share * right + right).sum() / total
    return max(score / total - left, 0.0), left
