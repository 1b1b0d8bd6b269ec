"""Intervals over samples, and the correction of several tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray


def wilson(hits: Any, count: Any, level: float = 0.95) -> tuple[Any, Any]:
    """Compute the ends of Wilson's interval of a share.

    For a mean of values between 0 and 1, such as the share of rotations at which a cloud is right,
    the interval is at least as wide as it need be.

    Args:
        hits: Number of hits, or the sum of the values; numbers or arrays.
        count: Number of samples.
        level: Nominal coverage.

    Example:
        >>> low, high = wilson(5, 100)
        >>> round(low, 4), round(high, 4)
        (0.0215, 0.1118)
    """
    z = NormalDist().inv_cdf((1 + level) / 2)
    share, shrink = hits / count, 1 + z * z / count
    middle = (share + z * z / (2 * count)) / shrink
    variance = share * (1 - share) / count + (z / (2 * count)) ** 2
    reach = z / shrink * variance**0.5
    return middle - reach, middle + reach


def bootstrap(
    values: NDArray[Any],
    measure: Callable[[NDArray[Any]], Any] = np.mean,
    count: int = 2000,
    seed: int = 0,
) -> tuple[float, float, float]:
    """Return a measure of samples and its 95 % interval, from samples drawn with replacement.

    Args:
        values: `[n]` or `[n, ...]`, a row for each sample that is drawn as a whole.
        measure: Number of some rows.
        count: Number of draws.
        seed: Of the draws.

    Example:
        >>> bootstrap(np.ones(5))
        (1.0, 1.0, 1.0)
    """
    draws = np.random.default_rng(seed).integers(len(values), size=(count, len(values)))
    low, high = np.quantile([measure(values[rows]) for rows in draws], [0.025, 0.975])
    return float(measure(values)), float(low), float(high)


def sign_flip(differences: NDArray[Any], count: int = 20_000, seed: int = 0) -> float:
    """Test whether differences have the mean 0, by random signs; two-sided p value.

    Example:
        >>> sign_flip(np.ones(20)) < 0.001, sign_flip(np.array([-1.0, 1.0]))
        (True, 1.0)
    """
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(count, len(differences)))
    reached = np.abs(signs @ differences) >= abs(differences.sum()) * (1 - 1e-9)
    return float((reached.sum() + 1) / (count + 1))


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
