"""Differences between losses, seed by seed: paired t tests, Holm's correction, power."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.stats import nct, t, ttest_1samp

from orbical.calibration import holm

ALPHA, POWER = 0.05, 0.8


@dataclass(frozen=True)
class Change:
    """A change of a score, seed by seed.

    Attributes:
        mean: Over seeds.
        deviation: Standard deviation over seeds.
        p: Of a two-sided paired t test.
        detectable: The change that as many seeds detect with a power of 80 %.
        seeds: Their number.
    """

    mean: float
    deviation: float
    p: float
    detectable: float
    seeds: int


def paired(ours: pd.Series, theirs: pd.Series) -> Change:
    """Compare two settings trained with the same seeds.

    Args:
        ours: Scores, indexed by seed.
        theirs: Those that are subtracted; seeds that only one has are left out.

    Returns:
        The change.

    Example:
        >>> seeds = [1, 2, 3, 4]
        >>> found = paired(pd.Series([3.0, 2, 4, 3], seeds), pd.Series([5.0, 4, 5, 4], seeds))
        >>> found.mean, round(found.p, 3), round(found.detectable, 2)
        (-1.5, 0.014, 1.23)
    """
    change = (ours - theirs).dropna().to_numpy()
    if len(change) < 2:
        unknown = float("nan")
        return Change(
            change.mean() if len(change) else unknown, unknown, unknown, unknown, len(change)
        )
    deviation = float(np.std(change, ddof=1))
    p = float(ttest_1samp(change, 0.0).pvalue) if deviation else float(not change.any())
    reach = deviation / len(change) ** 0.5 * _noncentrality(len(change))
    return Change(float(change.mean()), deviation, p, reach, len(change))


@cache
def _noncentrality(count: int) -> float:
    """Return how many standard errors a change must have to be detected."""
    limit = t.ppf(1 - ALPHA / 2, count - 1)
    return float(brentq(lambda size: nct.sf(limit, count - 1, size) - POWER, 0.1, 50.0))


def outcome(changes: Iterable[Change]) -> str:
    """Decide whether all changes go down: `confirmed`, `contradicted` or `open`.

    Confirmed if every one is below 0 with p < 0.05 after Holm's correction for their number,
    contradicted if one is above 0 with that certainty, and open otherwise.

    Example:
        >>> down, up = (Change(size, 0.1, 0.001, 0.1, 5) for size in (-1.0, 1.0))
        >>> outcome([down, down]), outcome([down, up]), outcome([down, Change(-1.0, 9, 0.7, 9, 5)])
        ('confirmed', 'contradicted', 'open')
    """
    given = list(changes)
    certain = [p < ALPHA for p in holm([change.p for change in given])]
    if any(sure and change.mean > 0 for sure, change in zip(certain, given, strict=True)):
        return "contradicted"
    return "confirmed" if all(certain) else "open"
