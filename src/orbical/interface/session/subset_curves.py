"""Curves of the subset along the orbit: means and measures, of groups, and changed predictions."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from ...calibration import MEASURES, along_orbit, row_intervals
from ...errors import InputError, check_name
from ...nero import SHARES, Sums, answer_names, changes_are_binary, sample_changes, share_of
from ...store import Json, StoredArrays
from ..selection import Clause, Selection, labels_alone
from .element_columns import alike, columns_of
from .filter_columns import Column, keys_of, sample_columns, values_of
from .sample_sets import Answer, mask_of, subset_key
from .scan_view import Metric, ScanView

Array = np.ndarray

WITH_INTERVAL = "ece"
"""The measure whose interval is fast enough to be drawn at every element."""
ENDS = ("values", "low", "high", "expected")
"""A measure, the ends of its interval, and what it is for a calibrated model."""
LEAST = 3
"""The least number of samples for a measure."""
MOST_AT_ONCE = 1 << 21
RESAMPLES = 200


def aggregate(view: ScanView, selection: Selection, message: Json) -> Answer:
    """Answer `values [M, K]`, with the ends of an interval if the metric has one."""
    metric = view.metric(selection)
    models = view.shown(selection)
    mask = mask_of(view, selection)
    count = view.finished if mask is None else int(mask.sum())
    reference, key = view.reference(selection), subset_key(view, selection)
    if metric.per_sample:
        labels = None if selection.subset else labels_alone(selection.filter)
        variable = view.variable(metric, reference)
        found = mean_of_sums(metric, sums_of(view, variable, mask, key, labels))
    else:
        found = measures_over(view, metric.name, reference, mask, key)
    arrays = {name: found[name][models] for name in ENDS[:3] if name in found}
    about = {
        "count": count,
        "metric": metric.name,
        "models": [view.models[model] for model in models],
        "range": axis_of(metric, arrays["values"]),
        "reference": reference,
    }
    return about, arrays


def axis_of(metric: Metric, values: Array) -> list[float]:
    """Return the limits of an axis for these values."""
    seen = values[np.isfinite(values)]
    least, most = (float(seen.min()), float(seen.max())) if len(seen) else (0.0, 1.0)
    low = least if metric.low is None else metric.low
    high = most if metric.high is None else metric.high
    return [low, high if high > low else low + 1.0]


def sums_of(
    view: ScanView,
    variable: str,
    mask: Array | None,
    key: tuple[Hashable, ...],
    labels: tuple[int, ...] | None = None,
) -> Sums:
    """Return sums over a mask; `labels` are its classes, if it is whole classes: those are summed
    already.
    """
    sums = view.moments(variable)
    if mask is None:
        return sums[:]
    if labels and sums.count.shape[1] > 1:
        return sums[[label for label in labels if label < len(view.classes)]]
    return view.cache.get_or_compute(
        ("sums", variable, *key), lambda: view.sums_over(variable, np.where(mask, 0, -1))
    )


def mean_of_sums(metric: Metric, sums: Sums) -> dict[str, Array]:
    """Return the mean `[M, K]` of a metric with the ends of its interval."""
    ends = sums.interval(metric.unit == "share", metric.low)
    return {name: part[:, 0] for name, part in zip(ENDS, ends, strict=False)}


def measures_over(
    view: ScanView, name: str, reference: str, mask: Array | None, key: tuple[Hashable, ...]
) -> dict[str, Array]:
    """Return a measure of the samples of a mask at every element, computed once."""
    measure = measured if MEASURES[name].kind == "pair" else regression
    return view.cache.get_or_compute(
        ("measure", name, reference, *key), partial(measure, view, name, reference, mask)
    )


def regression(view: ScanView, name: str, reference: str, mask: Array | None) -> dict[str, Array]:
    """Compute a measure of the predicted variances of the subset, at every element."""
    data = view.scan.data
    if mask is not None:
        data = data.isel(sample=np.flatnonzero(mask))
    if data.sizes["sample"] < LEAST:
        return {"values": np.full((len(view.models), len(view.group)), np.nan)}
    return {"values": along_orbit(data, name).values}


def measured(view: ScanView, name: str, reference: str, mask: Array | None) -> dict[str, Array]:
    """Compute a measure at every element, from the samples with an output there."""
    return measured_together(view, [name], reference, [mask])[name][0]


def measured_together(
    view: ScanView, names: Sequence[str], reference: str, masks: Sequence[Array | None]
) -> dict[str, list[dict[str, Array]]]:
    """Compute measures of several subsets at every element; all outputs are read once."""
    pairs, size = columns_of(view, reference), len(view.group)
    shape = (len(view.models), size)
    found = {
        name: [{part: np.full(shape, np.nan) for part in _parts(name)} for _ in masks]
        for name in names
    }
    counts = [view.samples if mask is None else int(mask.sum()) for mask in masks]
    step = max(1, MOST_AT_ONCE // max(1, *counts))
    for model, start in itertools.product(range(len(view.models)), range(0, size, step)):
        stop = min(start + step, size)
        some = [pairs.pair(model, element) for element in range(start, stop)]
        sure, right = (np.stack([pair[part] for pair in some]) for part in (0, 1))
        for number, mask in enumerate(masks):
            mine = (sure, right) if mask is None else (sure[:, mask], right[:, mask])
            for places, *given in alike(*mine):
                if given[0].shape[1] < LEAST:
                    continue
                pair = [torch.from_numpy(part) for part in given]
                for name in names:
                    for part, values in measure_rows(name, pair).items():
                        found[name][number][part][model, start + places] = values.numpy()
    return found


def _parts(name: str) -> tuple[str, ...]:
    return ENDS if name == WITH_INTERVAL else ENDS[:1]


def measure_rows(name: str, pair: list[Tensor]) -> dict[str, Tensor]:
    """Return a measure of pairs `[k, n]`, with the ends of its interval if that is fast."""
    if name != WITH_INTERVAL:
        return {"values": MEASURES[name](*pair).detach()}
    ends = row_intervals(name, *pair, resamples=RESAMPLES)
    values = (ends.value, ends.low, ends.high, ends.calibrated)
    return dict(zip(ENDS, values, strict=True))


FIRST = 12
"""How many groups are answered unless more are asked for."""


def group_columns(view: ScanView) -> dict[str, Column]:
    """Return the columns whose values divide the samples into groups."""
    return {
        name: column
        for name, column in sample_columns(view).items()
        if column.kind == "category" and not column.by_model
    }


def classes(view: ScanView, selection: Selection, message: Json) -> Answer:
    """Answer `values [G, M, K]` of groups of samples: few in their order, of many the worst first.

    A filter by the column itself is left out, so that the group that was chosen keeps the others
    beside it.
    """
    known = group_columns(view)
    if not known:
        raise InputError("show", "a column of categories for groups", "a scan without")
    name = selection.by or next(iter(known))
    check_name("selection by", name, known)
    others = [text for text in selection.filter if Clause.parse(text).column != name]
    rest = replace(selection, filter=tuple(others), by=name)
    metric = view.metric(selection)
    key = ("groups", name, metric.name, view.reference(rest), *subset_key(view, rest))
    compute = partial(_values, view, rest, known[name], metric)
    values, counts = view.cache.get_or_compute(key, compute)
    models = view.shown(selection)
    values = values[:, models]
    order = np.flatnonzero(counts)
    most = message.get("most", FIRST)
    if not isinstance(most, int) or isinstance(most, bool) or most < 1:
        raise InputError("most", "a positive integer", repr(most))
    if len(order) > FIRST:
        order = order[np.argsort(_badness(metric, values[order]), kind="stable")]
    shown = order[:most]
    names = known[name].keys or [*map(str, view.classes)]
    keys = keys_of(view, known[name])
    about = {
        "column": name,
        "groups": [
            {"key": keys[one], "name": names[one], "count": int(counts[one])} for one in shown
        ],
        "total": len(order),
        "metric": metric.name,
        "models": [view.models[model] for model in models],
        "range": axis_of(metric, values[order]),
        "reference": view.reference(selection),
    }
    return about, {"values": values[shown].astype(np.float32)}


def _badness(metric: Metric, values: Array) -> Array:
    """Return a number for each group by which the worst comes first; no value comes last."""
    seen = np.isfinite(values)
    count = seen.sum((1, 2))
    mean = np.where(seen, values, 0).sum((1, 2)) / np.maximum(count, 1)
    sign = -1 if metric.higher_is_better is False else 1
    return np.where(count > 0, sign * mean, np.inf)


def _values(
    view: ScanView, selection: Selection, column: Column, metric: Metric
) -> tuple[Array, Array]:
    """Return the values `[G, M, K]` of all groups, and how many samples each has."""
    reference, mask = view.reference(selection), mask_of(view, selection)
    codes = np.asarray(values_of(view, column))
    groups = len(keys_of(view, column))
    inside = (codes >= 0) & (codes < groups)
    codes = np.where(inside if mask is None else inside & mask, codes, -1)
    counts = np.bincount(codes[codes >= 0], minlength=groups)
    if metric.per_sample:
        variable = view.variable(metric, reference)
        sums: Sums = view.moments(variable)
        if mask is not None or column.name != "label" or sums.count.shape[1] < groups:
            sums = view.sums_over(variable, codes, groups)
        return sums.mean[:, :groups].transpose(1, 0, 2), counts
    masks: list[Array | None] = [codes == one for one in range(groups)]
    if MEASURES[metric.name].kind == "pair":
        found = measured_together(view, [metric.name], reference, masks)[metric.name]
    else:
        found = [regression(view, metric.name, reference, one) for one in masks]
    return np.stack([part["values"] for part in found]), counts


def counted(view: ScanView) -> str | bool:
    """Return what is counted: samples, pixels, voxels or points; False if nothing is."""
    if not answer_names(StoredArrays(view.scan)):
        return False
    if "changed_pixels" not in view.reader:
        return "samples"
    if "point_class" in view.reader:
        return "points"
    return "voxels" if view.input_view == "volume" else "pixels"


def consistency(view: ScanView, selection: Selection, message: Json) -> Answer:
    """Answer `changed` and `pairs`, `[M, 3]` each: the share and the ends of its interval."""
    models, mask = view.shown(selection), mask_of(view, selection)
    about = {
        "count": view.samples if mask is None else int(mask.sum()),
        "models": [view.models[model] for model in models],
    }
    each = changes(view)
    chosen = slice(None) if mask is None else mask
    binary = changes_are_binary(StoredArrays(view.scan))
    return about, {
        name: np.stack(
            share_of(each[name][models][:, chosen], binary=binary and name == "changed"), -1
        )
        for name in SHARES
    }


def changes(view: ScanView) -> dict[str, Array]:
    """Return both shares of each sample, `[M, N]`, NaN if it is unfinished; computed once."""

    def compute() -> dict[str, Array]:
        with view.passes.turn():
            return sample_changes(StoredArrays(view.scan))

    return view.cache.get_or_compute("changes", compute)
