"""The numbers of a smooth reliability diagram: accuracy by confidence, its band, the density."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..._arrays import ArrayLike
from ...errors import InputError, real_number, whole_number
from ..pairs.pairs_and_weights import binary_pair
from .cautions import caution, caution_evidence_of_pairs
from .cells import fine_cell_index, tally
from .interval_ends import Interval
from .levels import RESAMPLES, check_draws
from .mean_intervals import wilson_interval
from .measure_intervals import interval

__all__ = ["ReliabilityCurve", "reliability_curve"]


_FEWEST = 3.0
"""Least number of samples under the Gaussian; with fewer, the accuracy is left out."""

_DENSITY_WIDTH = 0.04
_IMAGES = (-2, 0, 2)


@dataclass(frozen=True)
class ReliabilityCurve:
    """Accuracy as a smooth function of confidence, on a grid of P confidences; float64.

    Attributes:
        place: `[P]`, the confidences, 0 to 1.
        accuracy: `[P]`, the smoothed accuracy there; NaN where fewer than three samples are near,
            and beyond the least and the largest confidence.
        low: `[P]`, lower end of its pointwise band.
        high: `[P]`, upper end.
        density: `[P]`, the smoothed density of confidences, of integral 1.
        bandwidth: standard deviation of the smoothing Gaussian, in logits.
        error: the smooth calibration error with its interval.
        caution: why the band may cover less often than stated; empty if nothing speaks for that.
    """

    place: Tensor
    accuracy: Tensor
    low: Tensor
    high: Tensor
    density: Tensor
    bandwidth: float
    error: Interval
    caution: str = ""


def reliability_curve(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    bandwidth: float | None = None,
    points: int = 201,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> ReliabilityCurve:
    """Return the numbers of a smooth reliability diagram, without bins.

        accuracy(t) = y + b (t - z),   b = 1 + cov(confidence, correct - confidence) / (v + 1 / 4n)

    with y and z the means of outcome and confidence around t, v the variance of the confidence, and
    n the effective number of samples: a line through the samples near t, whose slope is 1, as of a
    calibrated model, where samples are few. What is near is weighted by a Gaussian in the
    difference of logits. Most confidences of a sharp classifier are near 1; on the scale of logits
    they are far from 0.9, and so do not decide what is drawn there. The band is Wilson's interval
    at each place; it does not know how far smoothing moves the curve, and for sharp models contains
    the accuracy at 88 to 93 % of the places.

    Args:
        confidence: `[N]` in [0, 1].
        correct: `[N]` boolean, or 0 and 1.
        bandwidth: of the Gaussian, in logits; by default `2 N^(-1/4)`.
        points: number of places P.
        level: nominal coverage of the band and of the error's interval.
        resamples: number of draws of the error's interval.
        seed: seed of the draws.

    Returns:
        The curve, its band, the density of confidences and the error.

    Example:
        >>> import numpy as np
        >>> confidence = np.linspace(0.5, 1.0, 400)
        >>> correct = np.random.default_rng(0).random(400) < confidence
        >>> curve = reliability_curve(confidence, correct, resamples=100)
        >>> round(float(curve.density.mean()), 2), curve.accuracy.shape
        (1.0, torch.Size([201]))
    """
    check_draws(level, resamples)
    points = whole_number("points", points, 2)
    z, y, _ = binary_pair(confidence, correct)
    if z.ndim != 1:
        raise InputError("confidence", "shape [N]", z)
    width = float(2 * len(z) ** -0.25 if bandwidth is None else bandwidth)
    real_number("bandwidth", width, "> 0")
    index, count = fine_cell_index(z[None])
    gathered = tally(z[None], y[None], index, count)
    cells, own = gathered.observed(), gathered.place[0]
    size, residual = cells.count.reshape(-1), cells.residual.reshape(-1)
    place = torch.linspace(0, 1, points, dtype=torch.float64)
    step = 1 / (points - 1)
    # Confidences that the picture cannot tell from 0 or 1 are one place.
    apart = own.logit(step / 2)[:, None] - place.logit(step / 2)
    kernel = torch.exp(-(apart / width).square() / 2)
    weight = (size @ kernel).clamp(min=1e-200)
    effective = weight.square() / (size @ kernel.square()).clamp(min=1e-200)
    sums = torch.stack([size * own, residual, size * own.square(), residual * own])
    mean, gap, square, product = sums @ kernel / weight
    spread = (square - mean.square()).clamp(min=0) + 0.25 / effective
    slope, kept = 1 + (product - mean * gap) / spread, 0.25 / effective / spread
    shift = slope * (place - mean)
    level_at = mean + gap
    low, high = wilson_interval(level_at, effective, level)
    # The slope is as uncertain as that of a line, and may be that of a calibrated model.
    noise = ((low - high) / 2).square() / spread
    tilted = noise * (place - mean).square() + ((slope - 1) * kept * (place - mean)).square()
    low = level_at - ((level_at - low).square() + tilted).sqrt()
    high = level_at + ((high - level_at).square() + tilted).sqrt()
    curves = torch.stack([level_at, low, high]) + shift
    least, most = (end.item() for end in z.double().aminmax())
    # Beyond the confidences that occur the curve would only repeat its ends.
    seen = (weight >= _FEWEST) & (place >= least - step) & (place <= most + step)
    accuracy, low, high = torch.where(seen, curves.clamp(0, 1), torch.nan)
    density = size @ _reflected_gaussian(own, place, _DENSITY_WIDTH) / len(z)
    error = interval("smooth_ece", z, y, level=level, resamples=resamples, seed=seed)
    limit = caution("reliability_curve", caution_evidence_of_pairs(y))
    return ReliabilityCurve(place, accuracy, low, high, density, width, error, limit)


def _reflected_gaussian(places: Tensor, grid: Tensor, bandwidth: float) -> Tensor:
    """Return `K(z, t)` of places `[G]` and grid `[P]`, with their mirror images at 0 and 1."""
    images = [grid + shift for shift in _IMAGES] + [shift - grid for shift in _IMAGES]
    bells = [torch.exp(-((places[:, None] - at) / bandwidth).square() / 2) for at in images]
    return torch.stack(bells).sum(0).div(bandwidth * (2 * torch.pi) ** 0.5)
