"""The metric over the orbit: its mean over the subset, or a measure of the subset."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
import torch

from ...calibration import along_orbit, interval, measure_of
from ...calibration.measures import CLASSIFICATION
from ..selection import Selection
from .columns import alike, columns
from .metrics import REGRESSION_MEASURES, Metric
from .scan_view import Opened
from .subsets import Answer, mask_of, subset_key
from .tallies import sums_over, tally

Array = np.ndarray

WITH_INTERVAL = "ece"
"""The measure whose interval is quick enough to be drawn at every element."""
LEAST = 3
"""Samples below which a measure says nothing."""
MOST_AT_ONCE = 1 << 21
RESAMPLES = 200
_DEVIATIONS = 1.96
"""Standard errors to either side of a mean that hold 95 %."""


def aggregate(opened: Opened, selection: Selection, message: dict[str, Any]) -> Answer:
    """Answer `values [M, K]`, with the ends of an interval where the metric has one."""
    metric = opened.metric(selection)
    models = opened.shown(selection)
    mask = mask_of(opened, selection)
    count = opened.samples if mask is None else int(mask.sum())
    find = _means if metric.per_sample else _measures
    arrays = {name: part[models] for name, part in find(opened, selection, metric, mask).items()}
    about = {
        "count": count,
        "metric": metric.name,
        "models": [opened.models[model] for model in models],
        "range": axis_of(metric, arrays["values"]),
        "reference": opened.reference(selection),
    }
    return about, arrays


def axis_of(metric: Metric, values: Array) -> list[float]:
    """Give the ends of an axis that shows these values."""
    seen = values[np.isfinite(values)]
    least, most = (float(seen.min()), float(seen.max())) if len(seen) else (0.0, 1.0)
    low = least if metric.low is None else metric.low
    high = most if metric.high is None else metric.high
    return [low, high if high > low else low + 1.0]


def _means(
    opened: Opened, selection: Selection, metric: Metric, mask: Array | None
) -> dict[str, Array]:
    variable = opened.variable(metric, opened.reference(selection))
    sums = tally(opened, variable)
    if mask is None:
        parts = tuple(part.sum(1) for part in (sums.count, sums.total, sums.squares))
    elif not selection.lasso and sums.by_class:
        known = [label for label in selection.labels if 0 <= label < sums.count.shape[1]]
        parts = tuple(part[:, known].sum(1) for part in (sums.count, sums.total, sums.squares))
    else:
        key = ("sums", variable, *subset_key(opened, selection))
        parts = opened.memo.once(key, lambda: sums_over(opened, variable, mask))
    return _with_errors(*parts)


def _with_errors(count: Array, total: Array, squares: Array) -> dict[str, Array]:
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / count
        freedom = np.where(count > 1, count - 1, np.nan)  # one sample has no interval
        variance = (squares / count - mean**2).clip(0) * count / freedom
        reach = _DEVIATIONS * np.sqrt(variance / count)
    return {"values": mean, "low": mean - reach, "high": mean + reach}


def _measures(
    opened: Opened, selection: Selection, metric: Metric, mask: Array | None
) -> dict[str, Array]:
    reference = opened.reference(selection)
    key = ("measure", metric.name, reference, *subset_key(opened, selection))
    measure = _regression if metric.name in REGRESSION_MEASURES else _measured
    return opened.memo.once(key, partial(measure, opened, metric.name, reference, mask))


def _regression(opened: Opened, name: str, reference: str, mask: Array | None) -> dict[str, Array]:
    """Measure predicted variances against the errors of the subset, at every element."""
    data = opened.scan.data
    if mask is not None:
        data = data.isel(sample=np.flatnonzero(mask))
    if data.sizes["sample"] < LEAST:
        return {"values": np.full((len(opened.models), len(opened.group)), np.nan)}
    return {"values": along_orbit(data, name).values}


def _measured(opened: Opened, name: str, reference: str, mask: Array | None) -> dict[str, Array]:
    """Measure every element, by the samples that have an answer there; several at once."""
    measure = measure_of(name, CLASSIFICATION, {})
    pairs, size = columns(opened, reference), len(opened.group)
    names = ("values", "low", "high") if name == WITH_INTERVAL else ("values",)
    found = {part: np.full((len(opened.models), size), np.nan) for part in names}
    count = opened.samples if mask is None else int(mask.sum())
    step = max(1, MOST_AT_ONCE // max(1, count))
    for model, start in itertools.product(range(len(opened.models)), range(0, size, step)):
        stop = min(start + step, size)
        some = [pairs.pair(model, element) for element in range(start, stop)]
        sure, right = (
            np.stack([pair[part] if mask is None else pair[part][mask] for pair in some])
            for part in (0, 1)
        )
        for places, *given in alike(sure, right):
            if given[0].shape[1] < LEAST:
                continue
            pair = [torch.from_numpy(part) for part in given]
            if name == WITH_INTERVAL:
                ends = interval(measure, *pair, resamples=RESAMPLES)
                parts = {"values": ends.value, "low": ends.low, "high": ends.high}
            else:
                parts = {"values": measure.value(*pair).detach()}
            for part, values in parts.items():
                found[part][model, start + places] = values.numpy()
    return found
