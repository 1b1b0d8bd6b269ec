"""Levels of intervals, and the quantiles and exact ends that follow from them, without torch."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np

from ...errors import real_number, whole_number

__all__ = ["check_draws", "checked_level"]

RESAMPLES = 1000
"""The default number of draws of an interval: whoever measures the same sees the same ends."""


def checked_level(level: float) -> float:
    """Return the level of an interval if it is valid.

    >>> checked_level(0.95)
    0.95
    """
    return real_number("level", level, "in (0, 1)")


def check_draws(level: float, resamples: int) -> None:
    """Check the level of an interval, and that there are enough resamples for its quantiles.

    >>> check_draws(0.95, 1000)
    """
    checked_level(level)
    whole_number("resamples", resamples, 20)


def exact_interval_ends(right: object, size: object, outside: object) -> tuple[Any, Any]:
    """Return the ends of Clopper and Pearson of shares, also of fractional counts, as arrays.

    Args:
        right: how many are right; NaN where this is unknown.
        size: of how many.
        outside: the probability beyond each end.

    Example:
        >>> [round(float(end), 3) for end in exact_interval_ends(28, 30, 0.025)]
        [0.779, 0.992]
    """
    from scipy.special import betaincinv

    def least(some: Any) -> Any:
        ends = betaincinv(np.maximum(some, 1e-300), size - some + 1, outside)
        return np.where(np.isnan(some), np.nan, np.where(some > 0, ends, 0.0))

    right, size = np.asarray(right, float), np.asarray(size, float)
    return least(right), 1 - least(size - right)


def normal_quantile(level: float) -> float:
    """Return the number of standard deviations around the mean that cover a level.

    >>> round(normal_quantile(0.95), 3)
    1.96
    """
    return NormalDist().inv_cdf((1 + level) / 2)
