"""How often the answers of the subset change along the orbit, for tasks that define it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...calibration.means import share_interval_of_sums
from ...nero import consistency as changes_of
from ...nero.changes import has_answers
from ..selection import Selection
from .scan_view import ScanView
from .subsets import Answer, mask_of

Array = np.ndarray

SHARES = ("changed", "pairs")
"""The share of samples whose answer changes, and of pairs of elements that disagree."""


def counted(view: ScanView) -> str | bool:
    """Return what is counted: samples, pixels, voxels or points; False if nothing is."""
    if not has_answers(view.scan):
        return False
    if "changed_pixels" not in view.reader:
        return "samples"
    if "point_class" in view.reader:
        return "points"
    return "voxels" if view.input_view == "volume" else "pixels"


def consistency(view: ScanView, selection: Selection, message: dict[str, Any]) -> Answer:
    """Answer `changed` and `pairs`, `[M, 3]` each: the share and the ends of its interval."""
    models, mask = view.shown(selection), mask_of(view, selection)
    about = {
        "count": view.samples if mask is None else int(mask.sum()),
        "models": [view.models[model] for model in models],
    }
    rows = np.ones(view.samples, bool) if mask is None else mask
    each = changes(view)
    arrays = {name: np.stack(_interval(sums(each[name][models], rows)), -1) for name in SHARES}
    return about, arrays


def changes(view: ScanView) -> dict[str, Array]:
    """Return both shares of each sample, `[M, N]`, NaN if it is unfinished; computed once."""

    def compute() -> dict[str, Array]:
        with view.passes.turn():
            found = changes_of(view.scan)
        return {name: found[f"{name}_per_sample"].values for name in SHARES}

    return view.cache.get_or_compute("changes", compute)


def sums(values: Array, rows: Array) -> Array:
    """Return count, sum and sum of squares `[M, 3]` of the finished samples of a mask."""
    chosen = values[:, rows]
    filled = np.nan_to_num(chosen)
    return np.stack([(~np.isnan(chosen)).sum(1), filled.sum(1), np.square(filled).sum(1)], -1)


def _interval(given: Array) -> tuple[Array, Array, Array]:
    return share_interval_of_sums(*np.moveaxis(given.astype(float), -1, 0))
