"""Intervals over samples, and the correction of several tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

LEVEL_Z = 1.959964


def wilson(hits: Any, count: Any) -> tuple[Any, Any]:
    """Compute the ends of Wilson's 95 % interval of a share.

    For a mean of values between 0 and 1, such as the share of rotations at which a cloud is right,
    the interval is at least as wide as it need be.

    Args:
        hits: Number of hits, or the sum of the values; numbers or arrays.
        count: Number of samples.

    Example:
        >>> low, high = wilson(5, 100)
        >>> round(low, 4), round(high, 4)
        (0.0215, 0.1118)
    """
    share, shrink = hits / count, 1 + LEVEL_Z**2 / count
    middle = (share + LEVEL_Z**2 / (2 * count)) / shrink
    variance = share * (1 - share) / count + (LEVEL_Z / (2 * count)) ** 2
    reach = LEVEL_Z / shrink * variance**0.5
    return middle - reach, middle + reach


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p values, which bound the chance of any false alarm among them.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    scaled = np.asarray(p_values, float)[order] * np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.maximum.accumulate(scaled).clip(max=1)
    return adjusted.tolist()
