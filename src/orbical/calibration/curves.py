"""The numbers of a smooth reliability diagram: accuracy by confidence, its band, the density."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .._arrays import ArrayLike
from ..errors import InputError
from ._cells import Cells, fine_index, tally
from ._interval import Interval, binary_pair, check_draws, tail_quantiles
from .inputs import positive
from .intervals import interval
from .smooth import smooth_ece

_NARROWEST, _WIDEST = 0.04, 0.1
_FEWEST = 3.0
"""Least number of samples under the Gaussian; with fewer, the accuracy is left out."""

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
        bandwidth: standard deviation of the smoothing Gaussian.
        error: the smooth calibration error with its interval.
    """

    place: Tensor
    accuracy: Tensor
    low: Tensor
    high: Tensor
    density: Tensor
    bandwidth: float
    error: Interval


def reliability_curve(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    bandwidth: float | None = None,
    points: int = 201,
    level: float = 0.95,
    resamples: int = 500,
    seed: int = 0,
) -> ReliabilityCurve:
    """Return the numbers of a smooth reliability diagram (Blasiok and Nakkiran 2023).

        accuracy(t) = sum_i K(z_i, t) correct_i / sum_i K(z_i, t)

    with K the Gaussian reflected at 0 and 1. No bins: neither their number nor their edges shape
    the picture. The band is the pointwise bootstrap of the curve.

    Args:
        confidence: `[N]` in [0, 1].
        correct: `[N]` boolean, or 0 and 1.
        bandwidth: of the Gaussian; by default that of `smooth_ece`, within 0.04 and 0.1.
        points: number of places P.
        level: nominal coverage of the band and of the error's interval.
        resamples: number of draws.
        seed: seed of the draws.

    Returns:
        The curve, its band, the density of confidences and the error.

    Example:
        >>> confidence = np.linspace(0.5, 1.0, 400)
        >>> correct = np.random.default_rng(0).random(400) < confidence
        >>> curve = reliability_curve(confidence, correct, resamples=100)
        >>> round(float(curve.density.mean()), 2), curve.accuracy.shape
        (1.0, torch.Size([201]))
    """
    check_draws(level, resamples)
    if isinstance(points, bool) or not isinstance(points, int) or points < 2:
        raise InputError(f"points: expected a whole number >= 2, got {points!r}")
    z, y = binary_pair(confidence, correct)
    if z.ndim != 1:
        raise InputError(f"confidence: expected shape [N], got {tuple(z.shape)}")
    if bandwidth is None:
        bandwidth = min(max(float(smooth_ece(z, y)), _NARROWEST), _WIDEST)
    positive("bandwidth", bandwidth)
    index, count = fine_index(z[None])
    gathered = tally(z[None], y[None], index, count)
    place = torch.linspace(0, 1, points, dtype=torch.float64)
    kernel = _reflected_gaussian(gathered.place[0], place, bandwidth)
    density, accuracy = (part[0] for part in _smoothed(gathered.observed(), kernel))
    drawn = gathered.resampled(resamples, np.random.default_rng(seed))
    low, _, high = (part[0] for part in tail_quantiles(_smoothed(drawn, kernel)[1], level))
    near = density * len(z) * bandwidth * (2 * torch.pi) ** 0.5
    least, most = (end.item() for end in z.double().aminmax())
    # Beyond the confidences that occur the curve would only repeat its ends.
    step = 1 / (points - 1)
    seen = (near >= _FEWEST) & (place >= least - step) & (place <= most + step)
    accuracy, low, high = (torch.where(seen, part, torch.nan) for part in (accuracy, low, high))
    error = interval("smooth_ece", z, y, level=level, resamples=resamples, seed=seed)
    return ReliabilityCurve(place, accuracy, low, high, density, float(bandwidth), error)


def _reflected_gaussian(places: Tensor, grid: Tensor, bandwidth: float) -> Tensor:
    """Return `K(z, t)` of places `[G]` and grid `[P]`, with their mirror images at 0 and 1."""
    images = [grid + shift for shift in _IMAGES] + [shift - grid for shift in _IMAGES]
    bells = [torch.exp(-((places[:, None] - at) / bandwidth).square() / 2) for at in images]
    return torch.stack(bells).sum(0).div(bandwidth * (2 * torch.pi) ** 0.5)


def _smoothed(cells: Cells, kernel: Tensor) -> tuple[Tensor, Tensor]:
    """Return density and accuracy; half where nothing at all is near."""
    weight = cells.count @ kernel
    hits = (cells.residual + cells.count * cells.place) @ kernel
    empty = weight < 1e-200
    accuracy = torch.where(empty, 0.5, hits / torch.where(empty, 1.0, weight)).clamp(0, 1)
    return weight / cells.total, accuracy
