"""Curves of the subset along the orbit: means, measures and spread, of groups, and changes."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from ... import calibration, nero
from ..._threads import in_threads
from ...errors import InputError, check_name, whole_number
from ...store import Json, StoredArrays, row_runs
from ..selection import SelectionClause
from .element_columns import (
    ConfidenceColumns,
    alike_element_columns,
    columns_of_view,
    response_columns,
)
from .filter_columns import Column, filter_column_values, filter_keys, sample_columns
from .scan_view import ScanView, ViewMetric
from .subset_request import Answer, Subset, SubsetRequest

Array = np.ndarray

WITH_INTERVAL = "ece"
"""The measure whose interval is fast enough to be drawn at every element."""
ENDS = ("values", "low", "high", "expected")
"""A measure, the ends of its interval, and what it is for a calibrated model."""
CAUTION = "caution"
"""Why the ends of an interval may be too near, or ""."""
LEAST = 3
"""The least number of samples for a measure."""
MOST_AT_ONCE = 1 << 17
"""How many samples times elements are measured at once: what a processor's cache holds."""
FIRST = 12
"""How many groups are answered unless more are asked for."""
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The quantiles of the fan."""
MIDDLE = 2
BANDS = ((None, 0), (0, 1), (1, 3), (3, 4), (4, None))
"""The bands of the fan, by the quantiles at their ends: 5, 20, 50, 20 and 5 % of the samples."""


def aggregate(request: SubsetRequest) -> Answer:
    """Answer `values [M, K]`, with the ends of an interval if the metric has one."""
    metric, subset = request.metric, request.subset
    if metric.per_sample:
        curves = subset_mean(subset, metric)
    else:
        curves = subset_measures(subset, metric.name)
    arrays = {name: curves[name][request.models] for name in ENDS[:3] if name in curves}
    about = page_curve_header(request, metric, arrays["values"]) | subset_cautions(request, curves)
    failed = int(request.view.without_result[subset.rows].sum())
    return {**about, "count": subset.judged, **({"failed": failed} if failed else {})}, arrays


def subset_cautions(request: SubsetRequest, curves: Mapping[str, Array]) -> Json:
    """Return the caution of the band of each model shown that needs one, if any does."""
    each = {
        name: calibration.first_interval_caution(curves[CAUTION][model])
        for name, model in zip(request.names, request.models, strict=True)
        if CAUTION in curves
    }
    found = {name: text for name, text in each.items() if text}
    return {"cautions": found} if found else {}


def page_curve_header(request: SubsetRequest, metric: ViewMetric, values: Array) -> Json:
    """Return what a plot of curves must know about them."""
    return {
        "metric": metric.name,
        "models": request.names,
        "range": _axis_of(metric, values),
        "reference": request.reference,
    }


def _axis_of(metric: ViewMetric, values: Array) -> list[float]:
    """Return the limits of an axis for these values."""
    seen = values[np.isfinite(values)]
    least, most = (float(seen.min()), float(seen.max())) if len(seen) else (0.0, 1.0)
    low = least if metric.low is None else metric.low
    high = most if metric.high is None else metric.high
    return [low, high if high > low else low + 1.0]


def subset_sums(subset: Subset, variable: str) -> nero.Sums:
    """Return the sums of a variable over the samples of a subset."""
    view = subset.view
    sums = view.moments(variable)
    if subset.mask is None:
        return sums[:]
    if subset.labels and sums.count.shape[1] > 1:
        return sums[[label for label in subset.labels if label < len(view.classes)]]
    members = np.where(subset.mask, 0, -1)
    key = ("sums", variable, *subset.key)
    return view.cache.get_or_compute(key, lambda: view.sums_over(variable, members))


def subset_mean(subset: Subset, metric: ViewMetric) -> dict[str, Array]:
    """Return the mean `[M, K]` of a metric with the ends of its interval, computed once."""
    view, variable = subset.view, subset.view.variable(metric, subset.reference)

    def compute() -> dict[str, Array]:
        sums = subset_sums(subset, variable)
        with view.passes.turn():
            sets = None if subset.mask is None else np.where(subset.mask, 0, -1)
            values = nero.summed_values(view.reader, variable, sets)
            bounds = (0.0, 1.0) if metric.unit == "share" else None
            ends = sums.interval(bounds, metric.low, values=values)
        found = {name: part[:, 0] for name, part in zip(ENDS, ends, strict=False)}
        said = np.broadcast_to(np.asarray(ends.caution, dtype=object), ends[0].shape)
        return found | {CAUTION: said[:, 0]}

    return view.cache.get_or_compute(("mean", variable, *subset.key), compute)


def subset_measures(subset: Subset, name: str) -> dict[str, Array]:
    """Return a measure of the samples of a subset at every element, computed once."""
    compute = partial(_measured, subset.view, name, subset.reference, [subset.mask])
    return subset.view.cache.get_or_compute(_measure_key(subset, name), compute)[0]


def prepare_subset_measures(subset: Subset, names: Iterable[str]) -> None:
    """Compute several measures of a subset in one pass; `subset_measures` then has them."""
    pairs = [name for name in names if calibration.MEASURES[name].kind == "pair"]
    found = (
        _curves_of_pairs(subset.view, pairs, subset.reference, [subset.mask])[0] if pairs else {}
    )
    for name, curves in found.items():
        key = _measure_key(subset, name)
        subset.view.cache.get_or_compute(key, partial(list, [curves]))


def _measure_key(subset: Subset, name: str) -> tuple[Hashable, ...]:
    return ("measure", name, subset.reference, *subset.key)


def _measured(
    view: ScanView, name: str, reference: str, masks: Sequence[Array | None]
) -> list[dict[str, Array]]:
    """Compute a measure of several subsets at every element, from the outputs that are there."""
    if calibration.MEASURES[name].kind == "pair":
        return [found[name] for found in _curves_of_pairs(view, [name], reference, masks)]
    return [{"values": _of_variances(view, name, mask)} for mask in masks]


def _of_variances(view: ScanView, name: str, mask: Array | None) -> Array:
    """Compute a measure of the predicted variances of a subset, at every element."""
    data = view.scan.data
    if mask is not None:
        data = data.isel(sample=np.flatnonzero(mask))
    if data.sizes["sample"] < LEAST:
        return np.full((len(view.models), len(view.group)), np.nan)
    return np.asarray(calibration.along_orbit(data, name).values)


def _curves_of_pairs(
    view: ScanView, names: Sequence[str], reference: str, masks: Sequence[Array | None]
) -> list[dict[str, dict[str, Array]]]:
    """Compute measures of confidence and correctness; outputs are read and sorted once."""
    columns, shape = columns_of_view(view, reference), (len(view.models), len(view.group))
    measured = [{name: _unknown(name, shape) for name in names} for _ in masks]
    for subset, mask in zip(measured, masks, strict=True):
        rows = slice(None) if mask is None else np.flatnonzero(mask)
        count = view.samples if mask is None else int(mask.sum())
        work = partial(_fill_subset_curves, subset, columns, rows)
        in_threads(work, element_runs(range(shape[0]), shape[1], count))
    return measured


def element_runs(models: Iterable[int], elements: int, samples: int) -> Iterator[tuple[int, slice]]:
    """Yield each model with the runs of elements at which so many samples are measured at once."""
    step = max(1, MOST_AT_ONCE // max(1, samples))
    yield from itertools.product(models, row_runs(elements, step))


def _fill_subset_curves(
    measured: Mapping[str, Mapping[str, Array]],
    columns: ConfidenceColumns,
    rows: slice | Array,
    place: tuple[int, slice],
) -> None:
    """Fill in the measures of some samples of a model at a run of elements."""
    model, run = place
    for places, *given in alike_element_columns(
        *columns.pairs(model, range(run.start, run.stop), rows)
    ):
        if given[0].shape[1] < LEAST:
            continue
        pair = [torch.from_numpy(part) for part in given]
        if len(measured) > 1:  # most measures begin by sorting
            ordered, order = calibration.ascending(pair[0])
            pair = [ordered, pair[1].gather(-1, order)]
        for name, curves in measured.items():
            for part, values in subset_measure_rows(name, pair).items():
                curves[part][model, run.start + places] = values


def _unknown(name: str, shape: tuple[int, int]) -> dict[str, Array]:
    if name != WITH_INTERVAL:
        return {"values": np.full(shape, np.nan)}
    return {part: np.full(shape, np.nan) for part in ENDS} | {CAUTION: np.full(shape, "", object)}


def subset_measure_rows(name: str, pair: list[Tensor]) -> dict[str, Array]:
    """Return a measure of pairs `[k, n]`, with the ends of its interval if that is fast."""
    if name != WITH_INTERVAL:
        return {"values": calibration.MEASURES[name](*pair).detach().numpy()}
    error = calibration.interval(name, *pair)
    found = {part: end.numpy() for part, end in zip(ENDS, subset_interval_ends(error), strict=True)}
    return found | {CAUTION: error.caution}


def subset_interval_ends(error: calibration.Interval) -> tuple[Tensor, ...]:
    """Return a measure, the ends of its interval, and what it is for a calibrated model."""
    return error.value, error.low, error.high, error.calibrated


def subset_curves_by_class(request: SubsetRequest) -> Answer:
    """Answer `values [G, M, K]` of groups of samples: few in their order, of many the worst first.

    A filter by the column itself is left out, so that the group that was chosen keeps the others
    beside it.
    """
    view, metric = request.view, request.metric
    columns = {
        name: column
        for name, column in sample_columns(view).items()
        if column.kind == "category" and not column.by_model
    }
    if not columns:
        raise InputError("show", "a column of categories for groups", "a scan without")
    name = request.selection.by or next(iter(columns))
    check_name("selection by", name, columns)
    clauses = request.selection.filter
    others = tuple(text for text in clauses if SelectionClause.parse(text).column != name)
    rest = request.but(filter=others).subset
    key = ("groups", name, metric.name, rest.reference, *rest.key)
    compute = partial(_subset_curves_of_groups, rest, columns[name], metric)
    values, counts = view.cache.get_or_compute(key, compute)
    values = values[:, request.models]
    order = np.flatnonzero(counts)
    most = whole_number("most", request.message.get("most", FIRST), 1)
    if len(order) > FIRST:
        order = order[np.argsort(_badness(metric, values[order]), kind="stable")]
    names, keys = columns[name].keys or [*map(str, view.classes)], filter_keys(view, columns[name])
    shown = order[:most]
    groups = [{"key": keys[one], "name": names[one], "count": int(counts[one])} for one in shown]
    about = {"column": name, "groups": groups, "total": len(order)}
    about |= page_curve_header(request, metric, values[order])
    return about, {"values": values[shown].astype(np.float32)}


def _badness(metric: ViewMetric, values: Array) -> Array:
    """Return a number for each group by which the worst comes first; no value comes last."""
    seen = np.isfinite(values)
    count = seen.sum((1, 2))
    mean = np.where(seen, values, 0).sum((1, 2)) / np.maximum(count, 1)
    sign = -1 if metric.higher_is_better is False else 1
    return np.where(count > 0, sign * mean, np.inf)


def _subset_curves_of_groups(
    subset: Subset, column: Column, metric: ViewMetric
) -> tuple[Array, Array]:
    """Return the values `[G, M, K]` of all groups, and how many samples with a result each has."""
    view, codes = subset.view, np.asarray(filter_column_values(subset.view, column))
    groups = len(filter_keys(view, column))
    judged = subset.members & ~view.without_result
    codes = np.where((codes >= 0) & (codes < groups) & judged, codes, -1)
    counts = np.bincount(codes[codes >= 0], minlength=groups)
    if metric.per_sample:
        variable = view.variable(metric, subset.reference)
        sums: nero.Sums = view.moments(variable)
        if subset.mask is not None or column.name != "label" or sums.count.shape[1] < groups:
            sums = view.sums_over(variable, codes, groups)
        return sums.mean[:, :groups].transpose(1, 0, 2), counts
    masks = [codes == one for one in range(groups)]
    measured = _measured(view, metric.name, subset.reference, masks)
    return np.stack([part["values"] for part in measured]), counts


def curves_counted_in_view(view: ScanView) -> str | bool:
    """Return what is counted: samples, pixels, voxels or points; False if nothing is."""
    if not nero.answer_names(StoredArrays(view.scan)):
        return False
    if "changed_pixels" not in view.reader:
        return "samples"
    if "point_class" in view.reader:
        return "points"
    return "voxels" if view.input_view == "volume" else "pixels"


def subset_consistency(request: SubsetRequest) -> Answer:
    """Answer `changed` and `pairs`, `[M, 3]` each: the share and the ends of its interval."""
    each, rows = subset_changes(request.view), request.subset.rows
    binary = nero.changes_are_binary(StoredArrays(request.view.scan))
    shares = {
        name: nero.changed_share(
            each[name][request.models][:, rows], binary=binary and name == "changed"
        )
        for name in nero.SHARES
    }
    about = {"count": request.subset.judged, "models": request.names}
    return about, {name: np.stack(share, -1) for name, share in shares.items()}


def subset_changes(view: ScanView) -> dict[str, Array]:
    """Return both shares of each sample, `[M, N]`, NaN if it is unfinished; computed once."""

    def compute() -> dict[str, Array]:
        with view.passes.turn():
            return nero.sample_changes(StoredArrays(view.scan))

    return view.cache.get_or_compute("changes", compute)


def subset_spread(request: SubsetRequest) -> Answer:
    """Answer the quantiles `[M, 5, K]` of a metric over the samples of the subset."""
    metric = subset_spread_metric(request.view, request.sample_metric)
    variable = request.view.variable(metric, request.reference)
    levels = _subset_quantiles(request.subset, variable)[request.models]
    about = {"count": request.subset.judged, "levels": list(LEVELS)}
    return about | page_curve_header(request, metric, levels), {"quantiles": levels}


def subset_spread_metric(view: ScanView, metric: ViewMetric) -> ViewMetric:
    """Return the metric whose spread is shown in place of a metric.

    A measure of a set has no spread, and that of outcomes which are right or wrong is their share;
    the score replaces both.
    """
    stored = metric.name in view.reader and view.reader.dtype(metric.name).kind == "b"
    return view.metrics["score"] if stored or not metric.per_sample else metric


def _subset_quantiles(subset: Subset, variable: str) -> Array:
    """Return the quantiles `[M, 5, K]` of a variable, NaN where no sample has a value."""

    def compute() -> Array:
        columns = response_columns(subset.view, variable)
        shape = (len(subset.view.models), len(LEVELS), len(subset.view.group))
        levels = np.full(shape, np.nan, np.float32)

        def fill(place: tuple[int, slice]) -> None:
            model, run = place
            elements = range(run.start, run.stop)
            some = [columns.column(model, element, subset.rows) for element in elements]
            levels[model, :, run] = subset_curve_quantiles(np.stack(some))

        in_threads(fill, element_runs(range(shape[0]), shape[2], subset.count))
        return levels

    return subset.view.cache.get_or_compute(("quantiles", variable, *subset.key), compute)


def subset_curve_quantiles(values: Array) -> Array:
    """Return the quantiles `[5, ...]` of the finite values of `[..., N]`, NaN if there are none.

    >>> subset_curve_quantiles(np.array([0.0, 1.0, np.nan, 2.0])).tolist()
    [0.1, 0.5, 1.0, 1.5, 1.9]
    """
    if values.ndim > 1 and not np.isfinite(values).all():
        return np.stack([subset_curve_quantiles(row) for row in values], -1)
    known = np.sort(values if values.ndim > 1 else values[np.isfinite(values)])
    if not known.shape[-1]:
        return np.full((len(LEVELS), *values.shape[:-1]), np.nan)
    # Sorting is vectorized, and takes an eighth of the time of `numpy.quantile`.
    places = np.array(LEVELS) * (known.shape[-1] - 1)
    below, part = places.astype(int), places % 1
    above = np.minimum(below + 1, known.shape[-1] - 1)
    ends = (1 - part) * known[..., below] + part * known[..., above]
    return np.moveaxis(ends, -1, 0)


def in_fan_band(request: SubsetRequest, given: object) -> Array:
    """Return the mask `[N]` of the samples in a band of the fan at an element.

    Args:
        request: The subset, metric, reference and position.
        given: `model`, the name of a model, and `band`, 0 for the lowest 5 % to 4 for the highest.

    Samples with the value of an end all belong to the outer band, so that equal values are never
    told apart.
    """
    view, element = request.view, request.element
    if not isinstance(given, Mapping) or given.get("band") not in range(len(BANDS)):
        raise InputError("band", f"a model and a band from 0 to {len(BANDS) - 1}")
    check_name("band model", given.get("model"), view.models)
    model = view.models.index(given["model"])
    variable = view.variable(subset_spread_metric(view, request.sample_metric), request.reference)
    column = response_columns(view, variable).column(model, element)
    inside: Array = np.isfinite(column) & request.subset.members
    ends = _subset_quantiles(request.subset, variable)[model, :, element]
    low, high = BANDS[given["band"]]
    if low is not None:
        inside &= column >= ends[low] if low > MIDDLE else column > ends[low]
    if high is not None:
        inside &= column <= ends[high] if high < MIDDLE else column < ends[high]
    return inside
