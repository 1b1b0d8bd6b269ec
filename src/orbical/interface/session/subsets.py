"""Subsets of samples: a filter, and a lasso on the map."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from ..selection import Selection
from .columns import kept_by
from .sample_maps import sample_map
from .scan_view import ScanView

Array = np.ndarray

Answer = tuple[dict[str, Any], dict[str, Any]]


def mask_of(view: ScanView, selection: Selection) -> Array | None:
    """Return the mask `[N]` of the subset, None if it is all samples."""
    if not selection.filter and not selection.lasso:
        return None
    key = ("mask", *subset_key(view, selection))
    return view.cache.get_or_compute(key, lambda: _mask(view, selection))


def subset_key(view: ScanView, selection: Selection) -> tuple[Hashable, ...]:
    """Return what the subset depends on, as a key for caches."""
    if not selection.lasso:
        return (selection.filter,)
    map_of = (selection.method, selection.of, view.reference(selection))
    return (selection.filter, selection.lasso, *map_of)


def _mask(view: ScanView, selection: Selection) -> Array:
    mask = np.ones(view.samples, bool)
    for clause in selection.filter:
        mask &= kept_by(view, clause)
    if selection.lasso:
        mask &= inside(np.asarray(selection.lasso), sample_map(view, selection).xy)
    return mask


def inside(polygon: Array, xy: Array) -> Array:
    """Check which points `[N, 2]` lie inside a polygon `[V, 2]`, by the even-odd rule.

    >>> inside(np.array([[0, 0], [1, 0], [0, 1]]), np.array([[0.2, 0.2], [0.9, 0.9]])).tolist()
    [True, False]
    """
    from matplotlib.path import Path

    return Path(polygon).contains_points(xy)


def subset(view: ScanView, selection: Selection, message: dict[str, Any]) -> Answer:
    """Answer which samples are in the subset."""
    mask = mask_of(view, selection)
    mask = np.ones(view.samples, bool) if mask is None else mask
    return {"count": int(mask.sum())}, {"mask": mask.astype(np.uint8)}
