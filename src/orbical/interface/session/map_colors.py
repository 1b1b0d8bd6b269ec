"""Colors of the map: one number for each sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import unknown_name
from ..selection import Selection
from .moments import moments_of, over_models
from .scan_view import ScanView
from .subsets import Answer

Array = np.ndarray


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
    if selection.color not in known:
        raise unknown_name("selection color", selection.color, known)
    if selection.color == "class":
        label = view.label
        assert label is not None  # otherwise "class" is not available
        about = {"scale": "classes", "range": [0, len(view.classes) - 1], "title": "Class"}
        return about, {"values": label.astype(np.float32)}
    return _MAKERS[selection.color](view, selection)


def _spread(values: Array) -> list[float]:
    seen = values[np.isfinite(values)]
    return [float(seen.min()), float(seen.max())] if len(seen) else [0.0, 1.0]


def _mean(view: ScanView, selection: Selection) -> Answer:
    metric = view.metric(selection, per_sample=True)
    sums = moments_of(view, view.variable(metric, view.reference(selection)))
    values = over_models(sums.mean[view.of(selection)])
    span = [0.0, 1.0] if metric.unit == "share" else _spread(values)
    title = f"{metric.title}, mean over the orbit"
    return {"scale": "sequential", "range": span, "title": title}, {"values": values}


def _variance(view: ScanView, selection: Selection) -> Answer:
    metric = view.metric(selection, per_sample=True)
    sums = moments_of(view, view.variable(metric, view.reference(selection)))
    values = over_models(sums.variance[view.of(selection)])
    title = f"{metric.title}, variance over the orbit"
    span = [0.0, _spread(values)[1]]
    return {"scale": "sequential", "range": span, "title": title}, {"values": values}


def _correct(view: ScanView, selection: Selection) -> Answer:
    metric = view.metrics["correct"]
    sums = moments_of(view, view.variable(metric, view.reference(selection)))
    values = over_models(sums.mean[view.of(selection)])
    title = "Fraction of the orbit predicted correctly"
    return {"scale": "sequential", "range": [0.0, 1.0], "title": title}, {"values": values}


def _gap(view: ScanView, selection: Selection) -> Answer:
    """Return confidence minus accuracy over the orbit; without them, the invariance gap."""
    models = view.of(selection)
    if "correct" in view.metrics and "confidence" in view.metrics:
        reference = view.reference(selection)
        right = moments_of(view, view.variable(view.metrics["correct"], reference)).mean
        sure = moments_of(view, "confidence").mean
        values = over_models(sure[models] - right[models])
        title = "Confidence minus accuracy over the orbit"
        return {"scale": "diverging", "range": [-1.0, 1.0], "title": title}, {"values": values}
    stored = view.cache.get_or_compute("gap", lambda: view.reader.whole("invariance_gap"))
    values = over_models(stored[models])
    title = "Invariance gap: distance of the predictions from their mean"
    about = {"scale": "sequential", "range": [0.0, _spread(values)[1]], "title": title}
    return about, {"values": values}


_MAKERS = {"mean": _mean, "variance": _variance, "correct": _correct, "gap": _gap}
