"""A measure with its options set, and what its interval must know about it.

A calibration error is a distance: the norm of the signed residual `E[(correct - confidence); z]`,
0 exactly for a calibrated model. Its plug-in estimate is biased upwards. ESD, SKCE and MMCE^2
estimate the square of such a distance. Scores (NLL, Brier, GENCE) are plain means and estimate no
distance.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from ..errors import InputError
from ._cells import Cells

Index = Callable[[Tensor], tuple[Tensor, int]]
OfCells = Callable[[Cells], Tensor]


def takes_weights(function: Callable[..., object]) -> bool:
    """Check whether a function has the argument `weights`."""
    return "weights" in inspect.signature(function).parameters


@dataclass(frozen=True)
class OfWhitened:
    """A measure of d targets as a function of squared Mahalanobis distances and determinants.

    Both are the same in every frame, and a calibrated model's distances follow chi-squared whatever
    its covariances: nothing has to be factorized again in a resample.

    Attributes:
        statistic: reduces distances `[..., N]` and d to what is kept of them.
        drawn: draws the statistics of a calibrated model from a shape, d and a generator.
        value: maps statistics and log-determinants `[..., N]`, and d, to the measure.
        distance: maps the same to the distance of which the value estimates the power.
    """

    statistic: Callable[[Tensor, int], Tensor]
    drawn: Callable[[tuple[int, ...], int, np.random.Generator], np.ndarray]
    value: Callable[[Tensor, Tensor, int], Tensor]
    distance: Callable[[Tensor, Tensor, int], Tensor]


@dataclass(frozen=True)
class BoundMeasure:
    """A measure with its options set.

    Attributes:
        name: The measure's name.
        value: The function of samples, `(confidence, correct)` or `(mean, variance, target)`.
        distance: The plug-in distance of which the value estimates the power; None for a mean.
        power: 1 for a distance, 2 for its square.
        index: Sorts samples into cells, where the measure can be computed from cells.
        cell_value: The value, computed from cells.
        cell_distance: The distance, computed from cells.
        one_target: Whether a regression measure takes one target, `[..., N]`, or vectors,
            `[..., N, d]`; None if unknown, as for a user's function.
        marginal: Whether only the diagonal of a full covariance matters.
        whitened: The measure as a function of Mahalanobis distances alone, where it is one.
        own_interval: Computes the interval of a pair, where nothing has to be drawn for it.
    """

    name: str
    value: Callable[..., Tensor]
    distance: Callable[..., Tensor] | None
    power: int = 1
    index: Index | None = None
    cell_value: OfCells | None = None
    cell_distance: OfCells | None = None
    one_target: bool | None = None
    marginal: bool = False
    whitened: OfWhitened | None = None
    own_interval: Callable[..., Any] | None = None


def check_takes_weights(measure: BoundMeasure) -> None:
    """Refuse weights for a measure that has no such argument."""
    if not takes_weights(measure.value):
        raise InputError(
            "weights",
            f"none, since {measure.name} takes no weights",
            remedy="use a measure that has the argument weights",
        )
