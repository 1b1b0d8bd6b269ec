"""Calibration of regression along the orbit: errors against predicted variances at each element.

A scan of regression with uncertainty stores `error`, the moved truth minus the prediction, in the
frame of each element, and `variance` (or `covariance`) there. Every measure depends on these two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ...errors import InputError, real_number
from ...store import Scan, arrays_of, responses
from ..intervals.mean_intervals import mean_interval
from ..intervals.measure_intervals import regression_interval
from ..intervals.resampling import on_vectors
from ..measures.bleed import aleatoric_bleed_terms, covariance_bleed_terms
from ..registry import BoundMeasure, Draws, Measure, MeasureLike, bound_measure, measure_entry
from .labeled_results import calibration_groups, labeled_calibration, labeled_variables

if TYPE_CHECKING:
    import xarray as xr

BLEED = "aleatoric_bleed"


@dataclass(frozen=True)
class RegressionOrbit:
    """One model's predictions along the orbit, S samples (or points of samples) at K elements.

    Attributes:
        error: `[K, S, d]`, truth less mean, in the frame of the element.
        variance: `[K, S, d]`, `[K, S, 1]`, or a full covariance `[K, S, d, d]`.
        aleatoric: `[K, S, d]` or `[K, S, 1]`: the variance that is ascribed to the data; for a full
            covariance all its entries, `[K, S, d d]`, whose norm is the same in every frame.
        sample: `[S]`, the sample that each belongs to.
    """

    error: Tensor
    variance: Tensor
    aleatoric: Tensor
    sample: Tensor

    def chosen(self, kept: Tensor) -> RegressionOrbit:
        """Keep some of the samples, by a mask `[S]`."""
        parts = (self.error, self.variance, self.aleatoric)
        error, variance, aleatoric = (part[:, kept] for part in parts)
        return RegressionOrbit(error, variance, aleatoric, self.sample[kept])

    def at(self, element: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return `(mean, variance, target)` at one element, errors taken as targets.

        The mean is 0, on which no measure depends; one component is `[S]`, several are `[S, d]`.
        """
        error, variance = self.error[element], self.variance[element]
        if error.shape[-1] == 1:
            error, variance = error[:, 0], variance.reshape(len(variance))
        return torch.zeros_like(error), variance, error

    def by_component(self) -> RegressionOrbit:
        """Return each component separately: `[d, K, S, 1]`, with its marginal variance."""
        width = self.error.shape[-1]

        def apart(values: Tensor) -> Tensor:
            return values.expand(*values.shape[:-1], width).movedim(-1, 0)[..., None]

        spread, noise = self.variance, self.aleatoric
        if spread.ndim > self.error.ndim:
            spread = spread.diagonal(dim1=-2, dim2=-1)
        if noise.shape[-1] > width:
            noise = noise.reshape(*noise.shape[:-1], width, width).diagonal(dim1=-2, dim2=-1)
        return RegressionOrbit(apart(self.error), apart(spread), apart(noise), self.sample)


def holds_regression_calibration(scan: Scan | xr.Dataset) -> bool:
    """Check whether a scan is of regression with targets and uncertainty."""
    return {"error", "variance"} <= labeled_variables(scan)


def read_regression_orbit(scan: Scan | xr.Dataset, model: int) -> RegressionOrbit:
    """Read one model's errors and variances at all elements; unfinished samples are left out.

    >>> import orbical as ob
    >>> task = ob.tasks.Regression(ob.actions.Vectors(), "vector", uncertainty="variance")
    >>> def net(x):
    ...     return 0.9 * x, torch.ones(len(x), 1)
    >>> x = torch.randn(20, 2)
    >>> scan = ob.scan(net, (x, x), group="cyclic:4", task=task, progress=False)
    >>> read_regression_orbit(scan, 0).error.shape
    torch.Size([4, 20, 2])
    """
    stored = arrays_of(scan)
    names = [name for name in ("error", "variance", "covariance", "aleatoric") if name in stored]
    arrays = {
        name: torch.from_numpy(stored.read(name, model=model).swapaxes(0, 1)).double()
        for name in names
    }
    if len(stored.dims["error"]) == 5:  # one target for each point
        arrays = _regression_points_as_samples(arrays)
    error, variance = arrays["error"], arrays.get("covariance", arrays["variance"])
    aleatoric = arrays.get("aleatoric", variance if variance.ndim == 3 else variance.flatten(2))
    samples = torch.arange(stored.samples)
    sample = samples.repeat_interleave(error.shape[1] // len(samples))
    found = RegressionOrbit(error, variance, aleatoric, sample)
    finite = (part.flatten(2).isfinite().all(-1).all(0) for part in (error, variance))
    return found.chosen(torch.stack([*finite]).all(0))


def _regression_points_as_samples(arrays: dict[str, Tensor]) -> dict[str, Tensor]:
    """Make points samples, `[K, N * n, ...]`; those without a target come last in each sample.

    A permutation moves the points without a target; at each element they must be the same rows.
    """
    absent = arrays["error"].isnan().any(-1)
    order = absent.to(torch.uint8).argsort(dim=2, stable=True)
    ordered = {}
    for name, part in arrays.items():
        index = order.reshape(*order.shape, *[1] * (part.ndim - 3)).expand(part.shape)
        ordered[name] = part.gather(2, index).flatten(1, 2)
    return ordered


def regression_along(
    scan: Scan | xr.Dataset,
    measure: MeasureLike,
    by: str | None,
    draws: Draws | None,
    options: dict[str, Any],
) -> xr.DataArray:
    """Return a regression measure `[model, element]` or `[model, by, element]`; see `along_orbit`.

    Args:
        scan: a labeled scan of regression with uncertainty, or its `data`.
        measure: a name, or a function of `(mean, variance, target)`.
        by: "component", or a coordinate on `sample`.
        draws: level, resamples and seed of the intervals; None for no intervals.
        options: options of the measure.
    """
    if isinstance(measure, str | Measure):
        measure = measure_entry(measure, "regression", "aleatoric")
    answer: Callable[[RegressionOrbit], dict[str, Any]]
    if getattr(measure, "name", None) == BLEED:
        name, answer = BLEED, partial(_bleed_on_orbit, _checked_truth(options), draws)
    else:
        chosen = bound_measure(measure, "regression", options)
        name, answer = chosen.name, partial(_regression_measured_on_orbit, chosen, draws)
    like = responses(scan, "score")
    data: Any = getattr(scan, "data", scan)
    if by == "component":
        groups, members = np.arange(data.sizes["component"]), None
    else:
        groups, members = calibration_groups(like, by)

    def parts() -> Iterator[tuple[Any, dict[str, Tensor]]]:
        for model in range(like.sizes["model"]):
            found = read_regression_orbit(scan, model)
            if not len(found.sample):
                continue
            if members is None:
                yield model, answer(found.by_component())
                continue
            member = torch.from_numpy(members)[found.sample]
            for group in member.unique().tolist():
                yield (model, group), answer(found.chosen(member == group))

    return labeled_calibration(name, like, groups, by, parts())


def _regression_measured_on_orbit(
    measure: BoundMeasure, draws: Draws | None, found: RegressionOrbit
) -> dict[str, Any]:
    """Return a measure of errors and variances, at all elements at once."""
    if measure.one_target and found.error.shape[-1] > 1:
        raise InputError(
            "measure",
            "one of vectors",
            f"{measure.name}, which takes one target, for {found.error.shape[-1]} components",
            remedy="pass by='component', or use 'gence' or 'mahalanobis_calibration'",
        )
    given = torch.zeros_like(found.error), found.variance, found.error
    if draws is None:
        return {"value": on_vectors(measure, measure.value, *given)}
    return vars(regression_interval(measure, *given, **draws))


def _checked_truth(options: dict[str, object]) -> float:
    if {*options} - {"truth"}:
        raise InputError("options", problem=f"{BLEED} does not take {', '.join(options)}")
    return float(real_number("truth", options.get("truth", 0.0), ">= 0", "a variance"))


def _bleed_on_orbit(truth: float, draws: Draws | None, found: RegressionOrbit) -> dict[str, Any]:
    """Return aleatoric bleed at all elements at once: a mean over samples, 0 without bleed."""
    width, noise = found.error.shape[-1], found.aleatoric
    if noise.shape[-1] > width:
        terms = covariance_bleed_terms(noise.unflatten(-1, (width, width)), truth).sum(-1)
    else:
        terms = aleatoric_bleed_terms(noise.expand(found.error.shape), truth).sum(-1)
    if draws is None:
        return {"value": terms.mean(-1)}
    none = torch.zeros_like(terms)
    answer = vars(mean_interval(terms, none, none, draws["level"]))
    return {**answer, "low": answer["low"].clamp(min=0)}
