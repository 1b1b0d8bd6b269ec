"""How often the answers of the subset change along the orbit, for tasks that define it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...nero.changes import SHARES, answer_names, sample_changes, share_of
from ...store.blocks import StoredArrays
from ..selection import Selection
from .scan_view import ScanView
from .subsets import Answer, mask_of

Array = np.ndarray


def counted(view: ScanView) -> str | bool:
    """Return what is counted: samples, pixels, voxels or points; False if nothing is."""
    if not answer_names(StoredArrays(view.scan)):
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
    each = changes(view)
    chosen = slice(None) if mask is None else mask
    return about, {name: np.stack(share_of(each[name][models][:, chosen]), -1) for name in SHARES}


def changes(view: ScanView) -> dict[str, Array]:
    """Return both shares of each sample, `[M, N]`, NaN if it is unfinished; computed once."""

    def compute() -> dict[str, Array]:
        with view.passes.turn():
            return sample_changes(StoredArrays(view.scan))

    return view.cache.get_or_compute("changes", compute)
