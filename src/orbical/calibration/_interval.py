"""The interval of a measure, put together from draws of two worlds.

Why the ends are what they are is said in the text of `intervals`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from ..errors import InputError
from .inputs import ArrayLike, pair
from .measures import Measure, tail_quantiles


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
    """

    value: Tensor
    low: Tensor
    high: Tensor
    calibrated: Tensor
    calibrated_low: Tensor
    calibrated_high: Tensor
    level: float
    method: str

    def __str__(self) -> str:
        value, calibrated = in_short(self.value), in_short(self.calibrated)
        found = f"{value} [{in_short(self.low)}, {in_short(self.high)}]"
        usual = f"[{in_short(self.calibrated_low)}, {in_short(self.calibrated_high)}]"
        return f"{found}, if calibrated {calibrated} {usual}"

    def __repr__(self) -> str:
        return f"Interval({self})"

    @property
    def excess(self) -> Tensor:
        """How far the value lies above that of a calibrated model: what bias does not explain."""
        return self.value - self.calibrated


def in_short(values: Tensor) -> str:
    """Write a number, or the span of an array of them, in four digits."""
    if values.ndim == 0:
        return f"{values:.4g}"
    if values.numel() == 0:
        return "none"
    return f"{values.min():.4g}..{values.max():.4g}"


def binary_pair(confidence: ArrayLike, correct: ArrayLike) -> tuple[Tensor, Tensor]:
    """Check a pair whose labels can be drawn: `correct` is boolean, or 0 and 1."""
    confidence, correct, _ = pair(confidence, correct)
    if correct.dtype != torch.bool:
        if bool(((correct != 0) & (correct != 1)).any()):
            raise InputError("correct: expected 0 and 1 only; an interval draws single labels")
        correct = correct.bool()
    return confidence.detach(), correct


def unbiased(value: Tensor, resampled: Tensor, calibrated: Tensor) -> Tensor:
    """Return the distance whose median estimate is the value, by linear interpolation."""
    above = (value - calibrated).clamp(min=0)
    slope = value / (resampled - calibrated).clamp(min=1e-300)
    return torch.where(resampled > calibrated, (above * slope).clamp(max=value), value)


def ends(
    value: Tensor, resampled: Tensor, calibrated: Tensor, level: float
) -> tuple[Tensor, Tensor]:
    """Return the ends of the interval of a distance, from draws `[R, ...]` of both worlds."""
    _, middle, far = tail_quantiles(resampled, level)
    _, _, usual = tail_quantiles(calibrated, level)
    above = (value - usual).clamp(min=0)
    slope = torch.where(far > usual, value / (far - usual).clamp(min=1e-300), 1.0)
    return above * slope.clamp(max=1), value + (far - middle)


def assemble(
    measure: Measure,
    value: Tensor,
    observed: Tensor,
    resampled: Tensor,
    calibrated_distance: Tensor,
    calibrated_value: Tensor,
    level: float,
) -> Interval:
    """Make the interval from draws `[R, ...]` of the distance in both worlds."""
    below, _, beyond = tail_quantiles(calibrated_value, level)
    if measure.distance is None:
        low, _, high = tail_quantiles(resampled, level)
        method = "percentile bootstrap"
    else:
        low, high = ends(observed, resampled, calibrated_distance, level)
        low, high = low**measure.power, high**measure.power
        method = "test inversion"
    return Interval(
        value=value,
        low=low,
        high=high,
        calibrated=calibrated_value.mean(0),
        calibrated_low=below,
        calibrated_high=beyond,
        level=level,
        method=method,
    )


def joined(parts: list[Interval], shape: torch.Size) -> Interval:
    """Join the intervals of blocks of rows, and give them the leading shape."""
    whole: dict[str, Any] = {"level": parts[0].level, "method": parts[0].method}
    for field in fields(Interval):
        if field.name not in whole:
            values = [getattr(part, field.name) for part in parts]
            whole[field.name] = torch.cat(values).reshape(shape)
    return Interval(**whole)
