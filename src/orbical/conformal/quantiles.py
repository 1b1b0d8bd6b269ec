"""The threshold of split conformal prediction: a quantile of calibration scores."""

from __future__ import annotations

import math

import torch

from .._arrays import ArrayLike, as_floating
from ..errors import InputError, real_number
from ..recalibrate import calibrator_weights

_SLACK = 1e-9
"""Keeps rounding, such as `10 * 0.7 > 7`, from asking for one score more."""


def conformal_quantile(
    scores: ArrayLike, coverage: float = 0.9, element_weight: ArrayLike | None = None
) -> float:
    """Return the score that a new one does not exceed with a probability of at least `coverage`.

        the smallest q with  sum_i sum_g w_g [s_ig <= q] >= (n + 1) coverage

    Of n exchangeable scores it is the one of rank `ceil((n + 1) coverage)`. Along orbits, the
    samples are exchangeable and the positions of one sample are not: a sample counts once, shared
    among its positions. The bound then holds at a position drawn by the weights.

    Args:
        scores: calibration scores `[N]`, or `[N, K]` for K positions of each sample.
        coverage: the probability, between 0 and 1.
        element_weight: the weights `[K]` of the positions; None for equal ones.

    Returns:
        The threshold.

    Raises:
        InputError: if there are too few samples for the coverage: fewer than
            `coverage / (1 - coverage)`.

    Example:
        >>> conformal_quantile([1.0, 5.0, 3.0, 2.0, 4.0, 6.0, 9.0, 7.0, 8.0], 0.8)
        8.0
        >>> conformal_quantile([1.0, 2.0, 3.0], 0.9)
        Traceback (most recent call last):
        orbical.errors.InputError: coverage: expected at least 9 calibration samples for 0.9, ...

    Paper: Vovk et al. 2005, and for several positions of a sample Lee et al. 2023 (HCP).
    """
    wanted = checked_coverage(coverage)
    values = as_floating("scores", scores).detach().double()
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or not bool(torch.isfinite(values).all()):
        raise InputError(
            "scores",
            "finite numbers of shape [N] or [N, K]",
            f"shape {tuple(values.shape)}{' with NaN or infinity' if values.ndim == 2 else ''}",
        )
    samples, elements = values.shape
    least = math.ceil(wanted / (1 - wanted) - _SLACK)
    if samples < least:
        raise InputError(
            "coverage",
            f"at least {least} calibration samples for {coverage:g}",
            samples,
            remedy="calibrate on more, or lower the coverage",
        )
    weight = calibrator_weights("element_weight", element_weight, elements, values.device)
    ordered, order = values.flatten().sort()
    mass = weight.expand(samples, elements).flatten()[order].cumsum(0)
    place = int(torch.searchsorted(mass, (samples + 1) * wanted - _SLACK * samples))
    return float(ordered[min(place, len(ordered) - 1)])


def checked_coverage(coverage: float) -> float:
    """Return a coverage if it is valid.

    >>> checked_coverage(0.9)
    0.9
    """
    return float(real_number("coverage", coverage, "in (0, 1)"))
