"""How often the answers of the subset change along the orbit, for tasks that define it."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import torch

from ...calibration import share_interval_of_sums
from ...tasks._same_answers import answer_variables
from ...tasks._same_answers import changes as changes_of
from ..selection import Selection
from .scan_view import FINISHED, ScanView
from .subsets import Answer, mask_of

Array = np.ndarray

SHARES = ("changed", "pairs")
"""The share of samples whose answer changes, and of pairs of elements that disagree."""


def counted(view: ScanView) -> str | bool:
    """Return what is counted: samples, pixels, voxels or points; False if nothing is."""
    if not _variables(view):
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
        names, arrays = _variables(view), view.scan.arrays
        blocks = view.blocks(names[0] if names[0] in view.reader else FINISHED)
        settings = view.scan.record.task.settings
        found = {name: np.full((len(view.models), view.samples), np.nan) for name in SHARES}
        with view.passes.turn():
            for model, rows in product(range(len(view.models)), blocks):
                parts = [torch.from_numpy(np.asarray(arrays[name][model, rows])) for name in names]
                done = np.isfinite(view.responses(FINISHED, rows, model, keep=False)).any(1)
                for name, each in zip(
                    SHARES, changes_of(names, parts, view.group, settings), strict=True
                ):
                    found[name][model, rows] = np.where(done, each, np.nan)
        return found

    return view.cache.get_or_compute("changes", compute)


def _variables(view: ScanView) -> tuple[str, ...]:
    stored: Any = view.scan.arrays
    return answer_variables({name: one.metadata.dimension_names for name, one in stored.items()})


def sums(values: Array, rows: Array) -> Array:
    """Return count, sum and sum of squares `[M, 3]` of the finished samples of a mask."""
    chosen = values[:, rows]
    filled = np.nan_to_num(chosen)
    return np.stack([(~np.isnan(chosen)).sum(1), filled.sum(1), np.square(filled).sum(1)], -1)


def _interval(given: Array) -> tuple[Array, Array, Array]:
    return share_interval_of_sums(*np.moveaxis(given.astype(float), -1, 0))
