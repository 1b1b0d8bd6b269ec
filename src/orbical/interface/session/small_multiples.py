"""Small multiples: the metric along the orbit for each class, or each value of another column."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ...calibration import MEASURES
from ...errors import InputError, check_name
from ...nero.moments import Sums
from ..selection import Clause, Selection
from .aggregates import axis_of, measured_together, regression
from .columns import Column, keys_of, sample_columns, values_of
from .metrics import Metric
from .scan_view import ScanView
from .subsets import Answer, mask_of, subset_key

Array = np.ndarray

FIRST = 12
"""How many groups are answered unless more are asked for."""


def group_columns(view: ScanView) -> dict[str, Column]:
    """Return the columns whose values divide the samples into groups."""
    return {
        name: column
        for name, column in sample_columns(view).items()
        if column.kind == "category" and not column.by_model
    }


def classes(view: ScanView, selection: Selection, message: dict[str, Any]) -> Answer:
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
