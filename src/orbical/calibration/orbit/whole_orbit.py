"""A measure of the whole orbit: the mean of its positions, or all positions pooled into one set.

The two differ: at each position errors of opposite sign stay apart, and in the pool they cancel
within a bin. Both are called as in `PLACES`, everywhere.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ...errors import InputError
from ...groups import PLACES
from ...store import Scan
from ..intervals.cautions import first_interval_caution
from ..intervals.interval_ends import Interval
from ..intervals.resampling import on_vectors
from ..registry import (
    MEASURES,
    BoundMeasure,
    Measure,
    MeasureLike,
    bound_measure,
    measure_takes_weights,
)
from .labeled_results import CAUTION, ENDS
from .pixel_bins import holds_pixel_calibration, pixel_errors_pooled
from .pooled import pooled_ks, pooled_reliability
from .positions import (
    MEASURED_VALUES,
    along_orbit,
    equal_width_options,
    pair_arrays_at_positions,
    pair_blocks,
)
from .regression_orbit import holds_regression_calibration, read_regression_orbit

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["PLACES", "mean_over_orbit", "pooled_over_orbit"]


def mean_over_orbit(
    scan: Scan | xr.Dataset, measure: MeasureLike = "ece", **options: Any
) -> xr.DataArray:
    """Return the mean of a measure over the positions of the orbit, for each model of a scan.

        value[model] = sum_g w_g measure over samples at element g,   w the group's weights

    Args:
        scan: A labeled scan of classification, or of regression with uncertainty; or its `data`.
        measure: The name of a measure, an entry of `MEASURES`, or a function; see `along_orbit`.
        options: Options of `along_orbit`, such as `by` and `interval`, and of the measure. The
            interval is the mean of the elements' intervals, no narrower than that of the mean.

    Returns:
        `[model]`, or `[model, by]`.

    Example:
        >>> import orbical as ob
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, (images[:50], labels[:50]), group="cyclic:4",
        ...                task="classification", progress=False)
        >>> mean_over_orbit(scan, "ece").dims
        ('model',)
    """
    curve = along_orbit(scan, measure, **options)
    weight = curve["weight"]
    found = curve.weighted(weight).mean("element")
    means = {
        end: curve[end].weighted(weight).mean("element").drop_vars(ENDS, errors="ignore")
        for end in ENDS
        if end in curve.coords
    }
    if CAUTION in curve.coords:  # that of any position
        means[CAUTION] = whole_orbit_caution(curve[CAUTION].drop_vars(ENDS))
    return found.assign_coords(means).assign_attrs(curve.attrs, statistic=PLACES["mean"])


def whole_orbit_caution(cautions: xr.DataArray) -> xr.DataArray:
    """Return the first caution along the orbit, for each model."""
    import xarray as xr

    each = [
        first_interval_caution(row)
        for row in cautions.values.reshape(-1, cautions.sizes["element"])
    ]
    like = cautions.isel(element=0, drop=True)
    return xr.DataArray(np.reshape(np.array(each), like.shape), like.coords, like.dims)


def pooled_over_orbit(
    scan: Scan | xr.Dataset,
    measure: MeasureLike = "ece",
    *,
    interval: bool = False,
    level: float = 0.95,
    seed: int = 0,
    **options: Any,
) -> xr.DataArray:
    """Return a measure of all positions of the orbit pooled into one set, for each model of a scan.

    Each output counts with the weight of its element. Where a group's weights differ, the measure
    must take `weights`, as `ece` does.

    Args:
        scan: A labeled scan of classification or segmentation (its pixels), or of regression with
            uncertainty; or its `data`.
        measure: The name of a measure, an entry of `MEASURES`, or a function; see `along_orbit`.
        interval: Whether to attach the coordinates `low`, `high` and `calibrated`; for "ece" over
            bins of equal width. Samples are drawn with their whole orbits.
        level: Nominal coverage of the interval.
        seed: Seed of its draws.
        options: Options of the measure, such as `bins`.

    Returns:
        `[model]`.

    Raises:
        InputError: If the measure takes no weights and those of the group differ, or if it has no
            interval over pooled positions.

    Example:
        >>> import orbical as ob
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, (images[:50], labels[:50]), group="cyclic:4",
        ...                task="classification", progress=False)
        >>> found = pooled_over_orbit(scan, "ece", interval=True)
        >>> bool(found.low <= found) and bool(found <= found.high)
        True
    """
    if holds_regression_calibration(scan):
        if interval:
            raise InputError("interval", "False for pooled regression", "True")
        return _regression_over_whole_orbit(scan, measure, options)
    binned = equal_width_options(measure, options)
    if holds_pixel_calibration(scan):
        name = bound_measure(measure, "pair", options).name
        found = pixel_errors_pooled(scan, name, binned, {"level": level, "seed": seed})
        data: Any = getattr(scan, "data", scan)
        values: list[Any] = [*found] if interval else [one.value for one in found]
        return _whole_orbit_by_model(name, data["mean_confidence"], values)
    like, arrays = pair_arrays_at_positions(scan)
    if interval and (binned is None or binned["norm"] != "l1"):
        raise InputError("interval", "False unless the measure is 'ece'", repr(measure))
    chosen = bound_measure(measure, "pair", options)
    weights = arrays.weights
    large = arrays.samples * len(weights) > MEASURED_VALUES
    values = []
    for model in range(len(arrays.models)):
        if interval and binned is not None:
            columns = (
                (z, y)
                for _, *pairs in pair_blocks(arrays, model)
                for z, y in zip(*pairs, strict=True)
            )
            pooled = {"bins": binned["bins"], "level": level, "seed": seed}
            values.append(pooled_reliability(columns, weights, **pooled)[1])
        elif chosen.name == "ks" and large and arrays.dtype("confidence") == np.float32:
            blocks = partial(arrays.sample_blocks, "confidence", "correct", model=model)
            values.append(pooled_ks(blocks, weights))
        else:
            z, y = (arrays.read(part, model=model) for part in ("confidence", "correct"))
            known = ~np.isnan(z)
            pair = (torch.from_numpy(part[known]) for part in (z, y > 0))
            mass = torch.from_numpy(np.broadcast_to(weights, z.shape)[known])
            values.append(_weighted_value_of_orbit(chosen, tuple(pair), mass))
    return _whole_orbit_by_model(chosen.name, like, values)


def _regression_over_whole_orbit(scan: Any, measure: Any, options: dict[str, Any]) -> xr.DataArray:
    entry = MEASURES.get(measure) if isinstance(measure, str) else measure
    if isinstance(entry, Measure) and entry.interval == "bootstrap":
        # A mean over the same samples at each position is the mean of the positions.
        found = mean_over_orbit(scan, entry, **options)
        return found.assign_attrs(statistic=PLACES["pooled"])
    chosen = bound_measure(measure, "regression", options)
    data: Any = getattr(scan, "data", scan)
    weights = torch.from_numpy(data["weight"].values.astype(np.float64))
    values = []
    for model in range(data.sizes["model"]):
        given = read_regression_orbit(scan, model)
        error, variance = given.error.flatten(0, 1), given.variance.flatten(0, 1)
        mass = weights.repeat_interleave(given.error.shape[1])
        predictions = torch.zeros_like(error), variance, error
        values.append(_weighted_value_of_orbit(chosen, predictions, mass))
    return _whole_orbit_by_model(chosen.name, data["error"], values)


def _weighted_value_of_orbit(
    chosen: BoundMeasure, given: tuple[Tensor, ...], weights: Tensor
) -> Tensor:
    """Evaluate a measure on pooled samples, with weights only where they differ."""
    if not len(weights):
        return torch.tensor(torch.nan)
    alike = bool(weights.max() - weights.min() < 1e-12)
    if not alike and not measure_takes_weights(chosen.value):
        raise InputError(
            "measure",
            "one that takes weights, such as 'ece', since the weights of the group's "
            "elements differ",
            repr(chosen.name),
            remedy="use mean_over_orbit",
        )
    evaluate: Any = partial(on_vectors, chosen) if len(given) == 3 else chosen.values
    found: Tensor = evaluate(chosen.value, *given, weights=None if alike else weights)
    return found


def _whole_orbit_by_model(name: str, like: xr.DataArray, values: list[Any]) -> xr.DataArray:
    import xarray as xr

    entry = MEASURES.get(name)
    numbers = [float(getattr(value, "value", value)) for value in values]
    coords: dict[str, Any] = {"model": like["model"]}
    if values and isinstance(values[0], Interval):
        for end in ENDS:
            coords[end] = ("model", [float(getattr(value, end)) for value in values])
    attrs: dict[str, Any] = {"metric": name, "statistic": PLACES["pooled"]}
    if entry is not None:
        attrs |= {"meaning": entry.meaning, "higher_is_better": entry.higher_is_better}
    return xr.DataArray(numbers, coords, ("model",), name=name, attrs=attrs)
