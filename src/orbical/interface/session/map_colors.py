"""Colors of the map: one number for each sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import check_name
from ..selection import Selection
from .moments import Moments, moments_of, over_models
from .scan_view import ScanView
from .subsets import Answer

Array = np.ndarray
Coloring = tuple[str, Array, float | None, float | None]
"""A title, a number for each model and sample, and the ends of the scale, None for their range."""


def available_colors(view: ScanView) -> list[str]:
    """List the colorings that these samples have."""
    known = ["mean", "variance"]
    if "correct" in view.metrics:
        known.append("correct")
    if view.label is not None:
        known.append("class")
    known.append("gap")
    return known


def color(view: ScanView, selection: Selection, message: dict[str, Any]) -> Answer:
    """Answer one number for each sample."""
    known = available_colors(view)
    check_name("selection color", selection.color, known)
    if selection.color == "class":
        label = view.label
        assert label is not None  # otherwise "class" is not available
        about = {"scale": "classes", "range": [0, len(view.classes) - 1], "title": "Class"}
        return about, {"values": label.astype(np.float32)}
    title, each, low, high = _COLORINGS[selection.color](view, selection)
    values = over_models(each[view.of(selection)])
    seen = values[np.isfinite(values)]
    least, most = (float(seen.min()), float(seen.max())) if len(seen) else (0.0, 1.0)
    span = [least if low is None else low, most if high is None else high]
    scale = "diverging" if low == -1.0 else "sequential"
    return {"scale": scale, "range": span, "title": title}, {"values": values}


def _moments(view: ScanView, selection: Selection, name: str) -> Moments:
    return moments_of(view, view.variable(view.metrics[name], view.reference(selection)))


def _mean(view: ScanView, selection: Selection) -> Coloring:
    metric = view.metric(selection, per_sample=True)
    ends = (0.0, 1.0) if metric.unit == "share" else (None, None)
    each = _moments(view, selection, metric.name).mean
    return f"{metric.title}, mean over the orbit", each, *ends


def _variance(view: ScanView, selection: Selection) -> Coloring:
    metric = view.metric(selection, per_sample=True)
    each = _moments(view, selection, metric.name).variance
    return f"{metric.title}, variance over the orbit", each, 0.0, None


def _correct(view: ScanView, selection: Selection) -> Coloring:
    each = _moments(view, selection, "correct").mean
    return "Fraction of the orbit predicted correctly", each, 0.0, 1.0


def _gap(view: ScanView, selection: Selection) -> Coloring:
    """Return confidence minus accuracy over the orbit; without them, the invariance gap."""
    if "correct" in view.metrics and "confidence" in view.metrics:
        right, sure = (_moments(view, selection, one).mean for one in ("correct", "confidence"))
        return "Confidence minus accuracy over the orbit", sure - right, -1.0, 1.0
    stored = view.cache.get_or_compute("gap", lambda: view.reader.whole("invariance_gap"))
    return "Invariance gap: distance of the predictions from their mean", stored, 0.0, None


_COLORINGS = {"mean": _mean, "variance": _variance, "correct": _correct, "gap": _gap}
