"""Moments of a variable: sums for each class and element, mean and variance of each sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .scan_view import ScanView

Array = np.ndarray

MOST_CELLS = 1 << 22


@dataclass(frozen=True)
class Moments:
    """Sums over samples, and the mean and variance of each sample over its orbit.

    Attributes:
        count: `[M, C, K]`, finished samples of each class at each element; C is 1 without classes.
        total: `[M, C, K]`, their sum.
        squares: `[M, C, K]`, the sum of their squares.
        mean: `[M, N]`, each sample's mean over its orbit, weighted by the group, over the elements
            at which it has a value (an object may leave the view); NaN if it has none.
        variance: `[M, N]`, its variance over the orbit.
        low: The smallest value.
        high: The largest value.
    """

    count: Array
    total: Array
    squares: Array
    mean: Array
    variance: Array
    low: float
    high: float

    @property
    def by_class(self) -> bool:
        """Whether there are sums for each class."""
        return bool(self.count.shape[1] > 1)


def moments_of(view: ScanView, variable: str) -> Moments:
    """Return the moments of a variable, computed once."""

    def compute() -> Moments:
        with view.passes.turn():
            return _make(view, variable)

    return view.cache.get_or_compute(("moments", variable), compute)


def sums_over(view: ScanView, variable: str, rows: Array) -> tuple[Array, Array, Array]:
    """Sum over the samples of a mask `rows [N]`: count, total and squares, `[M, K]` each."""
    with view.passes.turn():
        return _sums(view, variable, rows)


def _sums(view: ScanView, variable: str, rows: Array) -> tuple[Array, Array, Array]:
    sums = np.zeros((3, len(view.models), len(view.group)))
    for span in view.blocks(variable):
        mask = rows[span]
        if not mask.any():
            continue
        for model in range(len(view.models)):
            sums[:, model] += power_sums(view.responses(variable, span, model)[mask])
    count, total, squares = sums
    return count, total, squares


def power_sums(values: Array) -> Array:
    """Return count, sum and sum of squares `[3, K]` of those values `[n, K]` that are numbers."""
    seen = np.isfinite(values)
    known = np.where(seen, values, 0.0).astype(np.float64)
    return np.stack([seen.sum(0), known.sum(0), np.square(known).sum(0)])


def sums_by(view: ScanView, variable: str, codes: Array, groups: int) -> tuple[Array, Array]:
    """Sum over the samples of each group: count and total, `[M, G, K]`; a code of -1 is none."""
    with view.passes.turn():
        shape = (len(view.models), groups, len(view.group))
        count, total = np.zeros(shape), np.zeros(shape)
        for span in view.blocks(variable):
            order = np.argsort(codes[span], kind="stable")
            order = order[codes[span][order] >= 0]
            present, starts = np.unique(codes[span][order], return_index=True)
            if not len(present):
                continue
            for model in range(shape[0]):
                values = view.responses(variable, span, model)[order].astype(np.float64)
                seen = np.isfinite(values)
                count[model, present] += np.add.reduceat(seen.astype(np.float64), starts)
                total[model, present] += np.add.reduceat(np.where(seen, values, 0.0), starts)
        return count, total


def _make(view: ScanView, variable: str) -> Moments:
    models, size = len(view.models), len(view.group)
    classes = 1 if view.label is None else max(1, len(view.classes))
    if models * classes * size > MOST_CELLS:
        classes = 1
    label = view.label if classes > 1 else None
    weights = view.group.weights.astype(np.float32)
    count, total, squares = (np.zeros((models, classes, size)) for _ in range(3))
    mean, variance = (np.full((models, view.samples), np.nan, np.float32) for _ in range(2))
    low, high = np.inf, -np.inf
    for rows in view.blocks(variable):
        members = None if label is None else _members(label[rows], classes)
        for model in range(models):
            values = view.responses(variable, rows, model)
            seen = np.isfinite(values)
            whole = bool(seen.all())
            filled = values if whole else np.where(seen, values, np.float32(0))
            if members is None:
                total[model, 0] += filled.sum(0, dtype=np.float64)
                squares[model, 0] += np.square(filled).sum(0, dtype=np.float64)
                count[model, 0] += seen.sum(0)
            else:
                total[model] += members @ filled
                squares[model] += members @ np.square(filled)
                count[model] += members.sum(1)[:, None] if whole else members @ seen.astype("f4")
            share = _shares(seen, weights, whole)
            mean[model, rows] = filled @ weights / share
            centered = filled - mean[model, rows, None]
            if not whole:
                centered[~seen] = 0
            variance[model, rows] = np.square(centered) @ weights / share
            if seen.any():
                low = min(low, float(filled.min() if whole else values[seen].min()))
                high = max(high, float(filled.max() if whole else values[seen].max()))
    return Moments(count, total, squares, mean, variance, low, high)


def over_models(values: Array) -> Array:
    """Average `[M, N]` over the models that have a value, to `[N]`; NaN if none has.

    >>> over_models(np.array([[1.0, 2.0, np.nan], [3.0, np.nan, np.nan]])).tolist()
    [2.0, 2.0, nan]
    """
    seen = np.isfinite(values)
    if seen.all():
        return np.asarray(values.mean(0))
    count = np.where(seen.any(0), seen.sum(0), np.nan).astype(values.dtype)
    return np.asarray(np.where(seen, values, 0).sum(0) / count)


def _shares(seen: Array, weights: Array, whole: bool) -> Array | float:
    """Return the total weight of the elements with a value in each row `[rows, K]`."""
    if whole:
        return 1.0
    share = seen @ weights
    return np.where(share > 0, share, np.float32(np.nan))


def _members(label: Array, classes: int) -> Array:
    """Return which rows belong to which class, `[C, rows]`, ones and zeros."""
    return np.asarray(label[None] == np.arange(classes)[:, None], np.float32)
