"""The list of the subset, a page at a time, and histograms of the columns it is sorted by."""

from __future__ import annotations

import numpy as np

from ...errors import InputError, check_name, unknown_name, whole_number
from ...store import Json
from ..selection import SelectionClause
from . import filter_columns
from .scan_view import ScanView
from .subset_request import Answer, SubsetRequest

Array = np.ndarray

PAGE = 200
MOST_ON_PAGE = 1000
BINS = 24
MOST_COLUMNS = 32
_BY_METRIC = ("worst", "best", "variable")


def listed_samples(request: SubsetRequest) -> Answer:
    """Answer `count` samples of the sorted subset from `start`, with the numbers they are by."""
    view, order = request.view, request.selection.order
    start = whole_number("start", request.message.get("start", 0), 0)
    count = whole_number("count", request.message.get("count", PAGE), 0)
    values, falling, title, unit = _sorting_of_list(request)
    mask = request.subset.mask
    if order in _BY_METRIC and not np.isfinite(values).all():  # some are unfinished
        mask = request.subset.members & (np.isfinite(values) | view.without_result)
    total = view.samples if mask is None else int(mask.sum())
    stop = start + min(count, MOST_ON_PAGE)
    if stop <= PAGE or stop <= total // 8:
        page = _first_listed(values, falling, mask, stop)[start:]
    else:
        by = (order, request.selection.of, request.sample_metric.name, request.reference)
        key = ("order", *by, *request.subset.key)
        every = view.cache.get_or_compute(
            key, lambda: _first_listed(values, falling, mask, view.samples)
        )
        page = every[start:stop]
    about = {
        "order": order,
        "metric": request.sample_metric.name,
        "count": len(page),
        "start": start,
        "total": total,
        "title": title,
        "unit": unit,
    }
    return about, {"samples": page.astype(np.int32), "values": values[page].astype(np.float32)}


def _sorting_of_list(request: SubsetRequest) -> tuple[Array, bool, str, str]:
    """Return the numbers that the list is sorted by, whether they fall, their title and unit."""
    order, of = request.selection.order, request.selection.of
    if order in _BY_METRIC:
        metric, spread = request.sample_metric, order == "variable"
        values, title = request.over_orbits("variance" if spread else "mean")
        falling = spread or (order == "best") == (metric.higher_is_better is not False)
        unit = "number" if spread and metric.unit != "share" else metric.unit
        return values, falling, title, unit
    every = filter_columns.sample_columns(request.view)
    columns = {name: column for name, column in every.items() if column.kind == "number"}
    name = order.removeprefix("-")
    if name not in columns:
        raise unknown_name("selection order", order, [*_BY_METRIC, *columns])
    values = filter_columns.filter_column_values(request.view, columns[name], of)
    title = filter_columns.filter_title(request.view, columns[name], of)
    return values, order.startswith("-"), title, columns[name].unit


def _first_listed(values: Array, falling: bool, mask: Array | None, count: int) -> Array:
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


Bins = tuple[Array, int, list[float] | None]
"""The bin of each sample `[N]`, -1 if it has no value; how many bins there are; and the edges of
bins of numbers, without that of values that never occur."""


def listing_histograms(request: SubsetRequest) -> Answer:
    """Answer for each column how many samples are in its bins: of all, and of the subset.

    The subset is that of the other columns' clauses, so that a brush can be moved where it leaves
    nothing. Numbers that are endless, such as the first failure of what never fails, are in a last
    bin of their own.
    """
    columns = filter_columns.sample_columns(request.view)
    about: list[Json] = []
    arrays: dict[str, Array] = {}
    for place, (name, model) in enumerate(_asked_for(request.message)):
        check_name("columns", name, columns)
        column = columns[name]
        if column.kind == "text":
            about.append({"column": name, "model": model})
            continue
        codes, count, edges = _listing_column_bins(request.view, column, model)
        clauses = request.selection.filter
        others = tuple(text for text in clauses if not _is_of(text, name, model))
        left = request.but(filter=others).subset
        for kind, rows in (("all", slice(None)), ("kept", left.rows)):
            counts = np.bincount(codes[rows] + 1, minlength=count + 1)[1:]
            arrays[f"{place}/{kind}"] = counts.astype(np.int32)
        about.append({"column": name, "model": model, "edges": edges})
    return {"columns": about}, arrays


def _listing_column_bins(view: ScanView, column: filter_columns.Column, model: str) -> Bins:
    """Return the bins of a column, computed once."""

    def compute() -> Bins:
        values = filter_columns.filter_column_values(view, column, model)
        if column.kind == "category":
            return values, len(filter_columns.filter_keys(view, column)), None
        return _numeric_listing_bins(values, column.ends)

    return view.cache.get_or_compute(("bins", column.name, model), compute)


def _numeric_listing_bins(values: Array, ends: list[float] | None) -> Bins:
    """Return bins of equal width; values beyond the ends are in the first and the last.

    >>> _numeric_listing_bins(np.array([0.0, 1.0, 1.0, np.inf, np.nan]), None)[0].tolist()
    [0, 1, 1, 2, -1]
    """
    low, high = ends or filter_columns.filter_column_ends(values)
    endless = np.isposinf(values)
    seen = values[np.isfinite(values)]
    distinct = len(np.unique(seen[:: max(1, len(seen) // 10_000)]))
    count = min(BINS, max(1, distinct))
    width = (high - low) / count if high > low else 1.0
    with np.errstate(invalid="ignore"):
        codes = ((values - low) / width).clip(0, count - 1)
    codes = np.where(np.isnan(values), -1, np.where(endless, count, codes)).astype(np.int32)
    edges = [low + width * edge for edge in range(count + 1)]
    return codes, count + int(endless.any()), edges


def _asked_for(message: Json) -> list[tuple[str, str]]:
    columns = message.get("columns", [])
    named = isinstance(columns, list) and all(
        isinstance(one, dict) and isinstance(one.get("column"), str) for one in columns
    )
    if not named or len(columns) > MOST_COLUMNS:
        raise InputError("columns", f"a list of at most {MOST_COLUMNS} columns")
    return [(one["column"], str(one.get("model", ""))) for one in columns]


def _is_of(text: str, column: str, model: str) -> bool:
    clause = SelectionClause.parse(text)
    return (clause.column, clause.model) == (column, model)
