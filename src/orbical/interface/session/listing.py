"""The list of the subset: sorted by the metric or by a column, asked for a page at a time."""

from __future__ import annotations

import numpy as np

from ...errors import InputError, unknown_name
from ...nero import over_models
from ...store import Json
from ..selection import Selection
from .filter_columns import sample_columns, titled, values_of
from .sample_sets import Answer, mask_of, subset_key
from .scan_view import ScanView

Array = np.ndarray

PAGE = 200
MOST_ON_PAGE = 1000
_BY_METRIC = ("worst", "best", "variable")


def listed(view: ScanView, selection: Selection, message: Json) -> Answer:
    """Answer `count` samples of the sorted subset from `start`, with the numbers they are by."""
    start, count = _page(message, "start", 0), _page(message, "count", PAGE)
    metric = view.metric(selection, per_sample=True)
    values, falling, title, unit = _sorted_by(view, selection)
    mask = mask_of(view, selection)
    if selection.order in _BY_METRIC and not np.isfinite(values).all():  # some are unfinished
        mask = np.isfinite(values) if mask is None else mask & np.isfinite(values)
    total = view.samples if mask is None else int(mask.sum())
    stop = start + min(count, MOST_ON_PAGE)
    if stop <= PAGE or stop <= total // 8:
        order = _first(values, falling, mask, stop)
    else:
        by = (selection.order, selection.of, metric.name, view.reference(selection))
        key = ("order", *by, *subset_key(view, selection))
        order = view.cache.get_or_compute(key, lambda: _first(values, falling, mask, view.samples))
    page = order[start:stop]
    about = {
        "order": selection.order,
        "metric": metric.name,
        "count": len(page),
        "start": start,
        "total": total,
        "title": title,
        "unit": unit,
    }
    return about, {"samples": page.astype(np.int32), "values": values[page].astype(np.float32)}


def _sorted_by(view: ScanView, selection: Selection) -> tuple[Array, bool, str, str]:
    """Return the numbers that the list is sorted by, whether they fall, their title and unit."""
    order = selection.order
    if order in _BY_METRIC:
        metric = view.metric(selection, per_sample=True)
        moments = view.moments(view.variable(metric, view.reference(selection)))
        spread = order == "variable"
        values = over_models(
            (moments.orbit_variance if spread else moments.orbit_mean)[view.of(selection)]
        )
        upward = metric.higher_is_better is not False
        kind = "variance" if spread else "mean"
        unit = "number" if spread and metric.unit != "share" else metric.unit
        title = f"{metric.title}, {kind} over the orbit"
        return values, spread or (order == "best") == upward, title, unit
    columns = {
        name: column for name, column in sample_columns(view).items() if column.kind == "number"
    }
    name = order.removeprefix("-")
    if name not in columns:
        raise unknown_name("selection order", order, [*_BY_METRIC, *columns])
    column = columns[name]
    values = values_of(view, column, selection.of)
    return values, order.startswith("-"), titled(view, column, selection.of), column.unit


def _first(values: Array, falling: bool, mask: Array | None, count: int) -> Array:
    """Return the first `count` samples of the order; those without a number come last."""
    among = np.arange(len(values)) if mask is None else np.flatnonzero(mask)
    keys = -values[among] if falling else values[among]
    if len(among) > count:
        if count == 0:
            return among[:0]
        last = np.partition(keys, count - 1)[count - 1]  # NaN sorts last
        some = np.ones(len(keys), bool) if np.isnan(last) else keys <= last
        among, keys = among[some], keys[some]
    order: Array = among[np.lexsort((among, keys))][:count]
    return order


def _page(message: Json, name: str, usual: int) -> int:
    given = message.get(name, usual)
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise InputError(name, "a number of samples", f"{given!r:.60}")
    return given
