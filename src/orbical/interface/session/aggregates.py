"""The aggregate plot: the mean of a metric over the subset, or a measure of the subset."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...calibration import MEASURES, along_orbit, interval
from ...nero.moments import Sums
from ..selection import Selection, labels_alone
from .confidence_columns import alike, columns_of
from .metrics import Metric
from .scan_view import ScanView
from .subsets import Answer, mask_of, subset_key

Array = np.ndarray

WITH_INTERVAL = "ece"
"""The measure whose interval is fast enough to be drawn at every element."""
ENDS = ("values", "low", "high", "expected")
"""A measure, the ends of its interval, and what it is for a calibrated model."""
LEAST = 3
"""The least number of samples for a measure."""
MOST_AT_ONCE = 1 << 21
RESAMPLES = 200


def aggregate(view: ScanView, selection: Selection, message: dict[str, Any]) -> Answer:
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
                    for part, values in _measure(name, pair).items():
                        found[name][number][part][model, start + places] = values.numpy()
    return found


def _parts(name: str) -> tuple[str, ...]:
    return ENDS if name == WITH_INTERVAL else ENDS[:1]


def _measure(name: str, pair: list[Tensor]) -> dict[str, Tensor]:
    """Return a measure of pairs `[k, n]`, with the ends of its interval if that is fast."""
    measure = MEASURES[name]
    if name != WITH_INTERVAL:
        return {"values": measure(*pair).detach()}
    ends = interval(measure, *pair, resamples=RESAMPLES)
    values = (ends.value, ends.low, ends.high, ends.calibrated)
    return dict(zip(ENDS, values, strict=True))
