"""Intervals over samples, the correction of several tests, and what an interval says."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray


def wilson(hits: Any, count: Any, level: float = 0.95) -> tuple[Any, Any]:
    """Compute the ends of Wilson's interval of hits among samples; numbers or arrays.

    Example:
        >>> low, high = wilson(5, 100)
        >>> round(float(low), 4), round(float(high), 4)
        (0.0215, 0.1118)
    """
    from orbical.calibration import wilson_interval  # loads torch, which listing studies does not

    ends = wilson_interval(np.asarray(hits / count), np.asarray(count), level)
    return ends[0].numpy()[()], ends[1].numpy()[()]


def sign_flip(differences: NDArray[Any], count: int = 20_000, seed: int = 0) -> float:
    """Test whether differences have the mean 0, by random signs; two-sided p value.

    Example:
        >>> sign_flip(np.ones(20)) < 0.001, sign_flip(np.array([-1.0, 1.0]))
        (True, 1.0)
    """
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(count, len(differences)))
    reached = np.abs(signs @ differences) >= abs(differences.sum()) * (1 - 1e-9)
    return float((reached.sum() + 1) / (count + 1))


def simultaneous(rows: Any) -> Any:
    """Widen the 95 % intervals of some rows so that all of them hold at once (Bonferroni).

    Args:
        rows: A data frame: `value`, and the ends `low` and `high` of its interval.

    >>> import pandas as pd
    >>> row = pd.DataFrame({"value": [1.0], "low": [0.0], "high": [3.0]})
    >>> simultaneous(pd.concat([row] * 10)).round(2).iloc[0].tolist()
    [1.0, -0.43, 3.86]
    """
    normal = NormalDist()
    wider = normal.inv_cdf(1 - 0.025 / len(rows)) / normal.inv_cdf(0.975)
    ends = {end: rows["value"] + wider * (rows[end] - rows["value"]) for end in ("low", "high")}
    return rows.assign(**ends)


def effect(low: float, high: float, better: int, worse: str = "harms") -> str:
    """Describe what a change does to a measure, from its interval and the sign of a better value.

    `worse` is the word for a change to the other side.

    >>> effect(0.1, 0.3, better=1), effect(0.1, 0.3, better=-1), effect(-0.1, 0.3, better=1)
    ('helps', 'harms', 'open')
    """
    if low <= 0 <= high:
        return "open"
    return "helps" if (low > 0) == (better > 0) else worse
