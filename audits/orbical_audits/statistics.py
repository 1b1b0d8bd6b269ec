"""Intervals over samples, and tests corrected for their number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from orbical import calibration
from orbical.calibration import bootstrap_interval, wilson_interval
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
    value, low, high = bootstrap_interval(
        samples, statistic, level=LEVEL, resamples=resamples, seed=seed
    )
    return {"value": value, "low": low, "high": high, "n": len(np.asarray(samples))}


def bounded(samples: ArrayLike, least: float = 0.0, most: float = 1.0) -> dict[str, float]:
    """Return the mean of samples between two bounds, with the part of its interval within them.

    Example:
        >>> bounded([0.0, 0.0, 1.0])["low"]
        0.0
    """
    found = interval(samples)
    return found | {"low": max(least, found["low"]), "high": min(most, found["high"])}


def share(happened: ArrayLike) -> dict[str, float]:
    """Return the share of samples where something happened, with its 95 % Wilson interval.

    Example:
        >>> share([True, False, False, False])["value"]
        0.25
    """
    events = np.asarray(happened, dtype=bool).ravel()
    if not len(events):
        raise InputError("happened", "at least 1 sample", "none")
    low, high = wilson_interval(events.mean(), len(events), LEVEL)
    return {"value": float(events.mean()), "low": float(low), "high": float(high), "n": len(events)}


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Return Holm's adjusted p values, which bound the chance of any false alarm.

    Example:
        >>> holm({"a": 0.01, "b": 0.04, "c": 0.03})
        {'a': 0.03, 'b': 0.06, 'c': 0.06}
    """
    adjusted = calibration.holm([*p_values.values()])
    return dict(zip(p_values, adjusted.tolist(), strict=True))
