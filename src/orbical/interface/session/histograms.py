"""Histograms of columns, of all samples and of those that the other clauses of the filter keep."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...errors import InputError, check_name
from ...store import Json
from ..selection import Clause, Selection
from .filter_columns import Column, keys_of, robust_ends, sample_columns, values_of
from .sample_sets import Answer, mask_of
from .scan_view import ScanView

Array = np.ndarray

BINS = 24
MOST_COLUMNS = 32


@dataclass(frozen=True)
class Bins:
    """The bin of each sample.

    Attributes:
        codes: `[N]`; -1 if a sample has no value.
        count: The number of bins.
        edges: The edges of bins of numbers, without that of values that never occur.
    """

    codes: Array
    count: int
    edges: list[float] | None = None


def histograms(view: ScanView, selection: Selection, message: Json) -> Answer:
    """Answer for each column how many samples are in its bins: of all, and of the subset.

    The subset is that of the other columns' clauses, so that a brush can be moved where it leaves
    nothing. Numbers that are endless, such as the first failure of what never fails, are in a last
    bin of their own.
    """
    columns = sample_columns(view)
    about: list[Json] = []
    arrays: dict[str, Array] = {}
    for place, (name, model) in enumerate(_asked_for(message)):
        check_name("columns", name, columns)
        column = columns[name]
        if column.kind == "text":
            about.append({"column": name, "model": model})
            continue
        bins = bins_of(view, column, model)
        others = tuple(text for text in selection.filter if not _is_of(text, name, model))
        mask = mask_of(view, replace(selection, filter=others))
        arrays[f"{place}/all"] = _counted(bins, None)
        arrays[f"{place}/kept"] = arrays[f"{place}/all"] if mask is None else _counted(bins, mask)
        about.append({"column": name, "model": model, "edges": bins.edges})
    return {"columns": about}, arrays


def bins_of(view: ScanView, column: Column, model: str) -> Bins:
    """Return the bins of a column, computed once."""

    def compute() -> Bins:
        values = values_of(view, column, model)
        if column.kind == "category":
            return Bins(values, len(keys_of(view, column)))
        return numeric_bins(values, column.ends)

    return view.cache.get_or_compute(("bins", column.name, model), compute)


def numeric_bins(values: Array, ends: list[float] | None) -> Bins:
    """Return bins of equal width; values beyond the ends are in the first and the last.

    >>> numeric_bins(np.array([0.0, 1.0, 1.0, np.inf, np.nan]), None).codes.tolist()
    [0, 1, 1, 2, -1]
    """
    low, high = ends or robust_ends(values)
    endless = np.isposinf(values)
    seen = values[np.isfinite(values)]
    distinct = len(np.unique(seen[:: max(1, len(seen) // 10_000)]))
    count = min(BINS, max(1, distinct))
    width = (high - low) / count if high > low else 1.0
    with np.errstate(invalid="ignore"):
        codes = ((values - low) / width).clip(0, count - 1)
    codes = np.where(np.isnan(values), -1, np.where(endless, count, codes)).astype(np.int32)
    edges = [low + width * edge for edge in range(count + 1)]
    return Bins(codes, count + int(endless.any()), edges)


def _counted(bins: Bins, mask: Array | None) -> Array:
    codes = bins.codes if mask is None else bins.codes[mask]
    return np.bincount(codes + 1, minlength=bins.count + 1)[1:].astype(np.int32)


def _asked_for(message: Json) -> list[tuple[str, str]]:
    given = message.get("columns", [])
    named = isinstance(given, list) and all(
        isinstance(one, dict) and isinstance(one.get("column"), str) for one in given
    )
    if not named or len(given) > MOST_COLUMNS:
        raise InputError("columns", f"a list of at most {MOST_COLUMNS} columns")
    return [(one["column"], str(one.get("model", ""))) for one in given]


def _is_of(text: str, column: str, model: str) -> bool:
    clause = Clause.parse(text)
    return (clause.column, clause.model) == (column, model)
