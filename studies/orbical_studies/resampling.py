"""Intervals that cover both sources of chance: test samples and seeds.

Test samples are resampled, the same ones for all networks, and so are the seeds of each network. An
interval is the estimate plus the deviations of the draws from their own mean, so that the bias of a
resampled measure, which all networks share, does not move it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

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


def resampled_rows(count: int, draws: int = DRAWS, seed: int = 0) -> Tensor:
    """Draw rows of a test set, `[draws, count]`."""
    return torch.from_numpy(np.random.default_rng(seed).integers(count, size=(draws, count)))
