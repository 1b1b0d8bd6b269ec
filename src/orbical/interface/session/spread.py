"""The spread of a metric over the subset: its quantiles at each element, and who is behind them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...errors import InputError, check_name
from ...store import Json
from ..selection import Selection
from .element_columns import SampleColumns, response_columns
from .sample_sets import Answer, mask_of, subset_key
from .scan_view import Metric, ScanView
from .subset_curves import axis_of

Array = np.ndarray

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The quantiles of the fan."""
MIDDLE = 2
BANDS = ((None, 0), (0, 1), (1, 3), (3, 4), (4, None))
"""The bands of the fan, by the quantiles at their ends: 5, 20, 50, 20 and 5 % of the samples."""


def spread(view: ScanView, selection: Selection, message: Json) -> Answer:
    """Answer the quantiles `[M, 5, K]` of a metric over the samples of the subset."""
    metric = spread_metric(view, selection)
    models, mask = view.shown(selection), mask_of(view, selection)
    variable = view.variable(metric, view.reference(selection))
    found = quantiles_of(view, variable, mask, subset_key(view, selection))[models]
    about = {
        "count": view.finished if mask is None else int(mask.sum()),
        "metric": metric.name,
        "models": [view.models[model] for model in models],
        "levels": list(LEVELS),
        "range": axis_of(metric, found),
        "reference": view.reference(selection),
    }
    return about, {"quantiles": found}


def spread_metric(view: ScanView, selection: Selection) -> Metric:
    """Return the metric whose spread is shown.

    A measure of a set has no spread, and that of outcomes which are right or wrong is their share;
    the score replaces both.
    """
    metric = view.metric(selection, per_sample=True)
    return view.metrics["score"] if is_outcome(view, metric) else metric


def is_outcome(view: ScanView, metric: Metric) -> bool:
    """Check whether a metric is right or wrong for each sample, and nothing in between."""
    return metric.name in view.reader and view.reader.dtype(metric.name).kind == "b"


def quantiles_of(view: ScanView, variable: str, mask: Array | None, key: tuple[Any, ...]) -> Array:
    """Return the quantiles `[M, 5, K]` of a variable, NaN where no sample has a value."""

    def compute() -> Array:
        columns = response_columns(view, variable)
        shape = (len(view.models), len(LEVELS), len(view.group))
        found = np.full(shape, np.nan, np.float32)
        for model in range(shape[0]):
            for element in range(shape[2]):
                found[model, :, element] = quantiles(_values(columns, model, element, mask))
        return found

    return view.cache.get_or_compute(("quantiles", variable, *key), compute)


def quantiles(values: Array) -> Array:
    """Return the quantiles of the finite values among `[N]`, NaN if there are none.

    >>> quantiles(np.array([0.0, 1.0, np.nan, 2.0])).tolist()
    [0.1, 0.5, 1.0, 1.5, 1.9]
    """
    known = values[np.isfinite(values)]
    if not len(known):
        return np.full(len(LEVELS), np.nan)
    return np.asarray(np.quantile(known, LEVELS))


def _values(columns: SampleColumns, model: int, element: int, mask: Array | None) -> Array:
    column = columns.column(model, element)
    return column if mask is None else column[mask]


def in_band(view: ScanView, selection: Selection, given: Any) -> Array:
    """Return the mask `[N]` of the samples in a band of the fan at an element.

    Args:
        view: The view of the scan.
        selection: The subset, metric, reference and position.
        given: `model`, the name of a model, and `band`, 0 for the lowest 5 % to 4 for the highest.

    Samples with the value of an end all belong to the outer band, so that equal values are never
    told apart.
    """
    if not isinstance(given, Mapping) or given.get("band") not in range(len(BANDS)):
        raise InputError("band", f"a model and a band from 0 to {len(BANDS) - 1}")
    check_name("band model", given.get("model"), view.models)
    model, element = view.models.index(given["model"]), view.element(selection)
    variable = view.variable(spread_metric(view, selection), view.reference(selection))
    mask = mask_of(view, selection)
    column = response_columns(view, variable).column(model, element)
    inside: Array = np.isfinite(column) if mask is None else np.isfinite(column) & mask
    ends = quantiles_of(view, variable, mask, subset_key(view, selection))[model, :, element]
    low, high = BANDS[given["band"]]
    if low is not None:
        inside &= column >= ends[low] if low > MIDDLE else column > ends[low]
    if high is not None:
        inside &= column <= ends[high] if high < MIDDLE else column < ends[high]
    return inside
