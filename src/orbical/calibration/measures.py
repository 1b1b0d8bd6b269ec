"""What an interval must know of a measure: what it estimates, and how to compute it from cells.

A calibration error is a distance: the norm of the signed residual `E[(correct - confidence); z]`,
0 exactly for a calibrated model. Its plug-in estimate is biased upwards. ESD, SKCE and MMCE^2
estimate the square of such a distance. Scores (NLL, Brier, GENCE) are plain means and estimate no
distance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import InputError, unknown_name
from . import cells as of
from . import gaussian, generalized, regression, sorting
from .binned import checked_bins, ece, named_norm
from .cumulative import esd, ks, ordered_esd
from .inputs import positive
from .kernel import mmce, mmce_squared, skce
from .smooth import smooth_ece
from .soft import sb_ece

Index = Callable[[Tensor], tuple[Tensor, int]]
OfCells = Callable[[of.Cells], Tensor]


@dataclass(frozen=True)
class OfWhitened:
    """A measure of d targets as a function of squared Mahalanobis distances and determinants.

    Both are the same in every frame, and a calibrated model's distances follow chi-squared whatever
    its covariances: nothing has to be factorised again in a resample.

    Attributes:
        statistic: of distances `[..., N]` and d, what of them is kept.
        drawn: shape, d and a generator to the statistics of a calibrated model.
        value: statistics and log-determinants `[..., N]`, and d, to the measure.
        distance: the same, to the distance of which the value estimates the power.
    """

    statistic: Callable[[Tensor, int], Tensor]
    drawn: Callable[[tuple[int, ...], int, np.random.Generator], np.ndarray]
    value: Callable[[Tensor, Tensor, int], Tensor]
    distance: Callable[[Tensor, Tensor, int], Tensor]


@dataclass(frozen=True)
class Measure:
    """A measure, and what it estimates.

    Attributes:
        name: what it is called.
        value: the function of samples, `(confidence, correct)` or `(mean, variance, target)`.
        distance: the plug-in distance of which the value estimates the power; None for a mean.
        power: 1 for a distance, 2 for its square.
        index: the cells that samples are gathered in, where the measure is known on cells.
        cell_value: the value, of cells.
        cell_distance: the distance, of cells.
        one_target: whether a regression measure takes one target, `[..., N]`, or vectors,
            `[..., N, d]`; None where a user's function does not say.
        marginal: whether of a full covariance only the diagonal matters.
        whitened: what a measure of vectors is of Mahalanobis distances alone, where it is.
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


def _fine(
    name: str, value: Callable[..., Tensor], distance: OfCells, estimate: OfCells, power: int
) -> Measure:
    return Measure(name, value, value, power, of.fine_index, estimate, distance)


def _ece(bins: int = 15, norm: str = "l1", binning: str = "width") -> Measure:
    checked_bins(bins)
    if binning not in ("width", "mass"):
        raise unknown_name("binning", binning, ("width", "mass"))
    value = partial(ece, bins=bins, norm=named_norm(norm), binning=binning)
    error = partial(of.binned_error, norm=norm)
    index = partial(of.bins_index, bins=bins, binning=binning)
    return Measure("ece", value, value, 1, index, error, error)


def _ks() -> Measure:
    return _fine("ks", ks, of.largest_deviation, of.largest_deviation, 1)


def _esd() -> Measure:
    return _fine("esd", esd, of.cumulative_norm, of.unbiased_cumulative, 2)


def _smooth_ece(bandwidth: float | None = None) -> Measure:
    if bandwidth is not None:
        positive("bandwidth", bandwidth)
    error = partial(of.smoothed_error, bandwidth=bandwidth)
    return _fine("smooth_ece", partial(smooth_ece, bandwidth=bandwidth), error, error, 1)


def _mmce(phi: float = 0.4) -> Measure:
    positive("phi", phi)
    norm = partial(of.kernel_norm, phi=phi)
    return _fine("mmce", partial(mmce, phi=phi), norm, norm, 1)


def _mmce_squared(phi: float = 0.4) -> Measure:
    positive("phi", phi)
    norm = partial(of.kernel_norm, phi=phi)

    def squared(cells: of.Cells) -> Tensor:
        return norm(cells).square()

    return _fine("mmce_squared", partial(mmce_squared, phi=phi), norm, squared, 2)


def _skce(phi: float = 0.4) -> Measure:
    positive("phi", phi)
    unbiased = partial(of.unbiased_kernel, phi=phi)
    return _fine("skce", partial(skce, phi=phi), partial(of.kernel_norm, phi=phi), unbiased, 2)


def _sb_ece(bins: int = 15, temperature: float = 0.01) -> Measure:
    checked_bins(bins)
    positive("temperature", temperature)
    error = partial(of.soft_binned_error, bins=bins, temperature=temperature)
    return _fine("sb_ece", partial(sb_ece, bins=bins, temperature=temperature), error, error, 1)


CLASSIFICATION: dict[str, Callable[..., Measure]] = {
    "ece": _ece,
    "ks": _ks,
    "esd": _esd,
    "smooth_ece": _smooth_ece,
    "mmce": _mmce,
    "mmce_squared": _mmce_squared,
    "skce": _skce,
    "sb_ece": _sb_ece,
}


def _cumulative_distance(difference: Tensor, order_by: Tensor) -> Tensor:
    """Return the root of the biased form of `ordered_esd`."""
    ordered, order = sorting.ascending(order_by)
    sums = sorting.ties(ordered).at_last(difference.gather(-1, order).cumsum(-1))
    return (sums / difference.shape[-1]).square().mean(-1).sqrt()


def _esd_distance(mean: Tensor, variance: Tensor, target: Tensor) -> Tensor:
    error, spread = gaussian.one_target(mean, variance, target)
    return _cumulative_distance(error.square() - spread, spread)


def _normalized_esd_distance(mean: Tensor, variance: Tensor, target: Tensor) -> Tensor:
    error, spread, full = gaussian.vector_target(mean, variance, target)
    return _esd_root_of(*gaussian.whitened(error, spread, full), error.shape[-1])


def _chi_squared(shape: tuple[int, ...], width: int, generator: np.random.Generator) -> np.ndarray:
    return generator.chisquare(width, shape)


def _uniform(shape: tuple[int, ...], width: int, generator: np.random.Generator) -> np.ndarray:
    return generator.random(shape)


def _covered(name: str, function: Callable[..., Any], one_target: bool) -> Callable[..., Measure]:
    def make(levels: int = 99) -> Measure:
        def error(mean: Tensor, variance: Tensor, target: Tensor) -> Tensor:
            return function(mean, variance, target, levels=levels).error

        def of_probabilities(probability: Tensor, _: Tensor, width: int) -> Tensor:
            return regression.coverage_of(probability, levels).error

        regression.checked_levels(levels)
        known = OfWhitened(
            regression.ellipsoid_probability, _uniform, of_probabilities, of_probabilities
        )
        return Measure(
            name, error, error, one_target=one_target, whitened=None if one_target else known
        )

    return make


def _binned(name: str, function: Callable[..., Tensor]) -> Callable[..., Measure]:
    def make(bins: int = 15) -> Measure:
        value = partial(function, bins=checked_bins(bins))
        return Measure(name, value, value, one_target=True)

    return make


def _binned_square(name: str, function: Callable[..., Tensor]) -> Callable[..., Measure]:
    def make(bins: int = 15) -> Measure:
        value = partial(function, bins=checked_bins(bins))
        return Measure(
            name, value, lambda *given: value(*given).sqrt(), 2, one_target=False, marginal=True
        )

    return make


def _unbinned(
    name: str,
    value: Callable[..., Tensor],
    one_target: bool,
    distance: Callable[..., Tensor] | None = None,
    **settings: Any,
) -> Callable[..., Measure]:
    """Make a mean, or with a distance the estimate of its square."""
    power = 1 if distance is None else 2
    return lambda: Measure(name, value, distance, power, one_target=one_target, **settings)


def _nll_of(distance: Tensor, log_determinant: Tensor, width: int) -> Tensor:
    return gaussian.nll_of(distance, log_determinant, width).mean(-1)


def _esd_of(distance: Tensor, log_determinant: Tensor, width: int) -> Tensor:
    return ordered_esd(distance / width - 1, log_determinant)


def _esd_root_of(distance: Tensor, log_determinant: Tensor, width: int) -> Tensor:
    return _cumulative_distance(distance / width - 1, log_determinant)


def _kept(distance: Tensor, width: int) -> Tensor:
    return distance


REGRESSION: dict[str, Callable[..., Measure]] = {
    "ence": _binned("ence", regression.ence),
    "uce": _binned("uce", regression.uce),
    "regression_esd": _unbinned("regression_esd", regression.regression_esd, True, _esd_distance),
    "regression_esd_normalized": _unbinned(
        "regression_esd_normalized",
        regression.regression_esd_normalized,
        False,
        _normalized_esd_distance,
        whitened=OfWhitened(_kept, _chi_squared, _esd_of, _esd_root_of),
    ),
    "quantile_calibration": _covered("quantile_calibration", regression.quantile_calibration, True),
    "mahalanobis_calibration": _covered(
        "mahalanobis_calibration", regression.mahalanobis_calibration, False
    ),
    "gence": _unbinned("gence", generalized.gence, False, marginal=True),
    "gence_sq": _unbinned("gence_sq", generalized.gence_sq, False, marginal=True),
    "gence_fiber": _binned_square("gence_fiber", generalized.gence_fiber),
    "gence_sq_fiber": _binned_square("gence_sq_fiber", generalized.gence_sq_fiber),
    "gaussian_nll": _unbinned(
        "gaussian_nll",
        gaussian.gaussian_nll,
        False,
        whitened=OfWhitened(_kept, _chi_squared, _nll_of, _nll_of),
    ),
    "gaussian_crps": _unbinned("gaussian_crps", gaussian.gaussian_crps, True),
}


def measure_of(
    measure: str | Measure | Callable[..., Tensor],
    known: dict[str, Callable[..., Measure]],
    options: dict[str, Any],
) -> Measure:
    """Find a measure by name, or take a function as a distance, with its options.

    >>> measure_of("ece", CLASSIFICATION, {"bins": 10}).name
    'ece'
    """
    if isinstance(measure, Measure):
        if options:
            raise InputError(f"options: {', '.join(options)} given beside a finished measure")
        return measure
    if callable(measure):
        function = partial(measure, **options)
        name = getattr(measure, "__name__", type(measure).__name__)
        return Measure(name, function, function)
    if measure not in known:
        raise unknown_name("measure", measure, known)
    try:
        return known[measure](**options)
    except TypeError as error:
        raise InputError(f"options: {measure} does not take {', '.join(options)}") from error


def checked_level(level: float) -> float:
    """Return the level of an interval if it is one.

    >>> checked_level(0.95)
    0.95
    """
    if not 0 < level < 1:
        raise InputError(f"level: expected a number in (0, 1), got {level!r}")
    return level


def checked_resamples(resamples: int) -> int:
    """Return the number of resamples if it is one that quantiles can be taken of.

    >>> checked_resamples(1000)
    1000
    """
    if isinstance(resamples, bool) or not isinstance(resamples, int) or resamples < 20:
        raise InputError(f"resamples: expected a whole number >= 20, got {resamples!r}")
    return resamples


def tail_quantiles(draws: Tensor, level: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return the lower, middle and upper quantile of draws `[R, ...]` at a level.

    >>> [float(q) for q in tail_quantiles(torch.arange(101.0), 0.9)]
    [5.0, 50.0, 95.0]
    """
    outside = (1 - level) / 2
    places = torch.tensor([outside, 0.5, 1 - outside], dtype=draws.dtype)
    low, middle, high = draws.quantile(places, dim=0)
    return low, middle, high


def normal_quantile(level: float) -> float:
    """Return how many standard deviations either side of the mean hold a level.

    >>> round(normal_quantile(0.95), 3)
    1.96
    """
    probability = torch.tensor((1 + level) / 2, dtype=torch.float64)
    return float(torch.special.ndtri(probability))
