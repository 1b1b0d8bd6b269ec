"""The interval of a measure, assembled from draws of two worlds; `intervals` explains its ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ..._text import number
from ..registry import BoundMeasure
from .cautions import first_interval_caution
from .levels import exact_interval_ends, normal_quantile

__all__ = ["Interval"]


@dataclass(frozen=True, repr=False)
class Interval:
    """A measure with its uncertainty; all values are float64 of the measure's leading shape.

    Attributes:
        value: the measure.
        low: lower end of the interval for the population's value.
        high: upper end.
        calibrated: mean of the measure for a calibrated model with these confidences.
        calibrated_low: lower end of what such a model shows.
        calibrated_high: upper end.
        level: nominal coverage of both intervals.
        method: how the interval was made.
        caution: why it may cover less often than stated; empty if nothing speaks for that. Of
            several rows it can be an array of texts.
    """

    value: Tensor
    low: Tensor
    high: Tensor
    calibrated: Tensor
    calibrated_low: Tensor
    calibrated_high: Tensor
    level: float
    method: str
    caution: Any = ""

    def __str__(self) -> str:
        value, calibrated = interval_in_short(self.value), interval_in_short(self.calibrated)
        found = f"{value} [{interval_in_short(self.low)}, {interval_in_short(self.high)}]"
        usual = (
            f"[{interval_in_short(self.calibrated_low)}, {interval_in_short(self.calibrated_high)}]"
        )
        text = first_interval_caution(self.caution)
        caution = f"; {text}" if text else ""
        return f"{found}, if calibrated {calibrated} {usual}{caution}"

    def __repr__(self) -> str:
        return f"Interval({self})"

    @property
    def finding(self) -> str:
        """What the interval says: a calibration error, or how large an error may be missed.

        Example:
            >>> from orbical import calibration
            >>> calibration.interval("ks", [0.9, 0.8, 0.7, 0.6], [1, 1, 0, 1], seed=1).finding
            'no error detected; one of up to 0.8385 could have been missed'
        """
        from ..verdicts import error_finding

        # Of several, the one with the least lower end: all are errors only if it is one.
        least = int(self.low.argmin())
        ends = (float(part.flatten()[least]) for part in (self.value, self.low, self.high))
        return error_finding(*ends)

    @property
    def excess(self) -> Tensor:
        """The value minus that of a calibrated model: the part that bias does not explain."""
        return self.value - self.calibrated


NUMBERS = ("value", "low", "high", "calibrated", "calibrated_low", "calibrated_high")
"""The fields of an `Interval` that are tensors."""

_ROUNDING = 1e-12
"""A draw that repeats the observation may differ from it by this much."""


def interval_in_short(values: Tensor, written: Callable[[Tensor], str] = number) -> str:
    """Write a number, or the span of an array of them."""
    if values.numel() == 0:
        return "none"
    return "..".join(map(written, [values] if values.ndim == 0 else [values.min(), values.max()]))


def distance_interval(
    value: Tensor, resampled: Tensor, calibrated: Tensor, level: float
) -> tuple[Tensor, Tensor]:
    """Return the ends of the interval of a distance, from draws `[R, ...]` of both worlds."""
    _, middle, far = tail_interval_ends(resampled, level)
    return _distance_ends(value, middle, far, tail_interval_ends(calibrated, level)[2])


def _distance_ends(
    value: Tensor, middle: Tensor, far: Tensor, usual: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the ends of the interval of a distance, from quantiles of both worlds."""
    above = (value - usual - _ROUNDING).clamp(min=0)
    slope = torch.where(far > usual, value / (far - usual).clamp(min=1e-300), 1.0)
    return above * slope.clamp(max=1), value + (far - middle)


def skew_missed_at_interval_end(resampled: Tensor, level: float) -> Tensor:
    """Return what resamples `[R, ...]` miss of the upper end where few errors make a distance.

    The limit of a Poisson mean lies `(c^2 + 4) / 6` counts beyond the quantile of its resamples,
    less their median. A count is the third over the second moment of the resamples.
    """
    apart = resampled - resampled.mean(0)
    count = apart.pow(3).mean(0) / apart.square().mean(0).clamp(min=1e-300)
    return count.clamp(min=0) * (normal_quantile(level) ** 2 + 4) / 6


def assemble_interval(
    measure: BoundMeasure,
    value: Tensor,
    observed: Tensor,
    resampled: Tensor,
    calibrated_distance: Tensor,
    calibrated_value: Tensor,
    level: float,
) -> Interval:
    """Make the interval from draws `[R, ...]` of the distance in both worlds.

    What is negative in a draw is no distance: its interval has two ends around the value. An
    unbiased estimate of a square can be negative although its distance is not; the interval then
    begins at the value.
    """
    below, _, beyond = tail_interval_ends(calibrated_value, level)
    if bool((calibrated_value >= 0).all()):
        below = below.clamp(min=0)
    near, middle, far = tail_interval_ends(resampled, level)
    if min(float(part.min()) for part in (observed, resampled, calibrated_distance)) < 0:
        low, high, method = value + near - middle, value + far - middle, "basic bootstrap"
    else:
        same = calibrated_distance is calibrated_value
        usual = beyond if same else tail_interval_ends(calibrated_distance, level)[2]
        low, high = _distance_ends(observed, middle, far, usual)
        high = high + skew_missed_at_interval_end(resampled, level)
        low, high = torch.minimum(low**measure.power, value), high**measure.power
        method = "test inversion"
    return Interval(value, low, high, calibrated_value.mean(0), below, beyond, level, method)


def mapped_intervals(function: Callable[..., Tensor], *intervals: Interval) -> Interval:
    """Apply a function to each number of intervals; the rest is that of the first."""
    numbers: dict[str, Any] = {
        name: function(*(getattr(one, name) for one in intervals)) for name in NUMBERS
    }
    return replace(intervals[0], **numbers)


def tail_interval_ends(draws: Tensor, level: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return the lower, middle and upper quantile of draws `[R, ...]` at a level.

    >>> [float(q) for q in tail_interval_ends(torch.arange(101.0), 0.9)]
    [5.0, 50.0, 95.0]
    """
    outside = (1 - level) / 2
    known = min(max(outside, 2 / len(draws)), 0.25)
    places = torch.tensor([known, 0.5, 1 - known], dtype=draws.dtype)
    low, middle, high = draws.quantile(places, dim=0)
    # Beyond the draws the tails are taken to be those of a normal distribution.
    stretch = normal_quantile(level) / normal_quantile(1 - 2 * known)
    return middle - stretch * (middle - low), middle, middle + stretch * (high - middle)


def student_quantile(level: float, freedom: Tensor) -> Tensor:
    """Return how many standard errors around a mean cover a level, by degrees of freedom.

    >>> student_quantile(0.95, torch.tensor([0.0, 4.0, 1e9])).round(decimals=2)
    tensor([ inf, 2.7800, 1.9600])
    """
    from scipy.special import stdtrit

    quantile = torch.as_tensor(stdtrit(freedom.double().clamp(min=1e-9).numpy(), (1 + level) / 2))
    return torch.where(freedom > 1e-9, quantile, torch.inf).to(freedom.dtype)


def largest_gap_ends(
    accuracy: Tensor, confidence: Tensor, size: Tensor, level: float
) -> tuple[Tensor, Tensor]:
    """Return the ends of the largest gap of any bin that holds samples, `[...]`.

    Each of the m filled bins has the exact interval of its accuracy (Clopper and Pearson) at the
    level `1 - (1 - level) / m`, so that all of them hold at the level. A bin of few samples says
    little, and the largest gap may be there: resampling would not see it.

    Args:
        accuracy: `[..., B]`, share of correct samples of each bin; anything in empty ones.
        confidence: `[..., B]`, mean confidence.
        size: `[..., B]`, (effective) number of samples.
        level: nominal coverage.

    Example:
        >>> one = [torch.tensor([x], dtype=torch.float64) for x in (1.0, 0.9, 20.0)]
        >>> [round(float(end), 3) for end in largest_gap_ends(*one, 0.95)]
        [0.0, 0.1]
    """
    filled = size > 0
    outside = (1 - level) / 2 / filled.sum(-1, keepdim=True).clamp(min=1)
    right = torch.where(filled, accuracy, 0.5) * size
    low, high = map(
        torch.as_tensor, exact_interval_ends(right.numpy(), size.numpy(), outside.numpy())
    )
    below, above = (torch.where(filled, part - confidence, 0.0) for part in (low, high))
    least = torch.maximum(below, -above).clamp(min=0).amax(-1) + 0.0  # no -0
    return least, torch.maximum(below.abs(), above.abs()).amax(-1)
