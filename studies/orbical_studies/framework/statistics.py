"""Intervals over samples and over seeds, the correction of several tests, and what intervals say.

Where both samples and seeds are chance, test samples are resampled, the same ones for all networks,
and so are the seeds of each network. An interval is the estimate plus the deviations of the draws
from their own mean, so that the bias of a resampled measure, which all networks share, does not
move it.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import Any, NamedTuple

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


DRAWS = 400


class Interval(NamedTuple):
    """The value of one measure, and the ends of its interval."""

    value: float
    low: float
    high: float


def interval(estimate: np.ndarray, level: float = 0.95) -> Interval:
    """Return the value of one measure with its interval, from the value and its draws.

    >>> interval(np.array([1.0, 2.0, 4.0]), 1.0)
    Interval(value=1.0, low=0.0, high=2.0)
    """
    value, draws = float(estimate[0]), estimate[1:]
    tail = (1 - level) / 2
    low, high = np.quantile(draws - draws.mean(), [tail, 1 - tail])
    return Interval(value, value + float(low), value + float(high))


def over_seeds(each: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """Average measures of a network over its seeds.

    Args:
        each: `[measures, 1 + draws, seeds]`: on the test set, then on draws of it.
        draw: Of the seeds.

    Returns:
        Estimates `[measures, 1 + draws]`: the value, then the draws.
    """
    seeds = each.shape[2]
    chosen = draw.integers(seeds, size=(each.shape[1] - 1, seeds))
    drawn = [resampled_seeds(values[1:], chosen) for values in each]
    return np.column_stack([each[:, 0].mean(-1), drawn])


def resampled_seeds(each: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Average over drawn seeds, with the variance that the mean over so many seeds has.

    The mean of `n` draws out of `n` values varies by `(n - 1) / n` of what the mean of `n` new
    values does; deviations from the mean over all seeds are scaled by the root of `n / (n - 1)`.

    Args:
        each: A measure for each draw of images and each seed, `[draws, n]`.
        chosen: The seeds drawn, `[draws, n]`.

    >>> resampled_seeds(np.array([[0.0, 1.0]]), np.array([[1, 1]])).round(4)
    array([1.2071])
    """
    middle, seeds = each.mean(1), each.shape[1]
    scale = (seeds / max(seeds - 1, 1)) ** 0.5
    return np.asarray(middle + scale * (np.take_along_axis(each, chosen, 1).mean(1) - middle))


def resampled_rows(count: int, draws: int = DRAWS, seed: int = 0) -> np.ndarray:
    """Draw rows of a test set, `[draws, count]`."""
    return np.random.default_rng(seed).integers(count, size=(draws, count))
