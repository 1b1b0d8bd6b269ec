"""The subset: the samples shown."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from ..selection import Selection
from .columns import kept_by
from .sample_sets import mask_of_set
from .scan_view import ScanView

Array = np.ndarray

Answer = tuple[dict[str, Any], dict[str, Any]]


def mask_of(view: ScanView, selection: Selection) -> Array | None:
    """Return the mask `[N]` of the subset, None if it is all samples."""
    if not selection.filter and not selection.subset:
        return None
    key = ("mask", *subset_key(view, selection))
    return view.cache.get_or_compute(key, lambda: _mask(view, selection))


def subset_key(view: ScanView, selection: Selection) -> tuple[Hashable, ...]:
    """Return what the subset depends on, as a key for caches."""
    return (selection.filter, selection.subset)


def _mask(view: ScanView, selection: Selection) -> Array:
    mask = mask_of_set(view, selection.subset)
    for clause in selection.filter:
        mask &= kept_by(view, clause)
    return mask


def subset(view: ScanView, selection: Selection, message: dict[str, Any]) -> Answer:
    """Answer which samples are in the subset."""
    mask = mask_of(view, selection)
    mask = np.ones(view.samples, bool) if mask is None else mask
    return {"count": int(mask.sum())}, {"mask": mask.astype(np.uint8)}
