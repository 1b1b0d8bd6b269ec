"""Intervals over samples, and tests corrected for their number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binomtest

from orbical.errors import InputError

LEVEL = 0.95


def interval(
    samples: ArrayLike,
    statistic: Callable[[Any], float] = np.mean,
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> dict[str, float]:
    """Return a statistic with its 95 % percentile bootstrap interval.

    Args:
        samples: One sample a row; whole rows are drawn, so that what belongs together stays so.
        statistic: A function of the drawn rows.
        resamples: How often to draw.
        seed: Of the draws.

    Example:
        >>> interval([1.0, 1.0, 1.0])
        {'value': 1.0, 'low': 1.0, 'high': 1.0, 'n': 3}
    """
    rows = np.asarray(samples)
    if rows.ndim == 0 or len(rows) < 2:
        raise InputError("samples", "at least 2 rows", f"shape {rows.shape}")
    generator = np.random.default_rng(seed)
    drawn = [
        statistic(rows[generator.integers(len(rows), size=len(rows))]) for _ in range(resamples)
    ]
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return {"value": float(statistic(rows)), "low": float(low), "high": float(high), "n": len(rows)}


def share(happened: ArrayLike) -> dict[str, float]:
    """Return the share of samples where something happened, with its 95 % Wilson interval.

    Example:
        >>> share([True, False, False, False])["value"]
        0.25
    """
    events = np.asarray(happened, dtype=bool).ravel()
    if not len(events):
        raise InputError("happened", "at least 1 sample", "none")
    found = binomtest(int(events.sum()), len(events)).proportion_ci(LEVEL, method="wilson")
    limits = {"low": float(found.low), "high": float(found.high)}
    return {"value": float(events.mean()), **limits, "n": len(events)}


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Return Holm's adjusted p values, which bound the chance of any false alarm.

    Example:
        >>> holm({"a": 0.01, "b": 0.04, "c": 0.03})
        {'a': 0.03, 'b': 0.06, 'c': 0.06}
    """
    adjusted, least = {}, 0.0
    for place, name in enumerate(sorted(p_values, key=p_values.__getitem__)):
        least = max(least, min(1.0, (len(p_values) - place) * p_values[name]))
        adjusted[name] = least
    return {name: adjusted[name] for name in p_values}
