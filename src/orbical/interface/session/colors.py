"""One number for each sample, to colour the map by."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import InputError
from ..selection import Selection
from .scan_view import Opened
from .subsets import Answer
from .tallies import over_models, tally

Array = np.ndarray


def available_colors(opened: Opened) -> list[str]:
    """List the colourings that these samples have."""
    known = ["mean", "variance"]
    if "correct" in opened.metrics:
        known.append("correct")
    if opened.label is not None:
        known.append("class")
    known.append("gap")
    return known


def color(opened: Opened, selection: Selection, message: dict[str, Any]) -> Answer:
    """Answer one number for each sample."""
    known = available_colors(opened)
    if selection.color not in known:
        raise InputError(
            f"selection colour: {selection.colour!r} given, one of {', '.join(known)} expected"
        )
    if selection.color == "class":
        label = opened.label
        assert label is not None  # it would not be among the known ones
        about = {"scale": "classes", "range": [0, len(opened.classes) - 1], "title": "Class"}
        return about, {"values": label.astype(np.float32)}
    return _MAKERS[selection.color](opened, selection)


def _spread(values: Array) -> list[float]:
    seen = values[np.isfinite(values)]
    return [float(seen.min()), float(seen.max())] if len(seen) else [0.0, 1.0]


def _mean(opened: Opened, selection: Selection) -> Answer:
    metric = opened.metric(selection, per_sample=True)
    sums = tally(opened, opened.variable(metric, opened.reference(selection)))
    values = over_models(sums.mean[opened.of(selection)])
    span = [0.0, 1.0] if metric.unit == "share" else _spread(values)
    title = f"{metric.title}, mean over the orbit"
    return {"scale": "sequential", "range": span, "title": title}, {"values": values}


def _variance(opened: Opened, selection: Selection) -> Answer:
    metric = opened.metric(selection, per_sample=True)
    sums = tally(opened, opened.variable(metric, opened.reference(selection)))
    values = over_models(sums.variance[opened.of(selection)])
    title = f"{metric.title}, variance over the orbit"
    span = [0.0, _spread(values)[1]]
    return {"scale": "sequential", "range": span, "title": title}, {"values": values}


def _correct(opened: Opened, selection: Selection) -> Answer:
    metric = opened.metrics["correct"]
    sums = tally(opened, opened.variable(metric, opened.reference(selection)))
    values = over_models(sums.mean[opened.of(selection)])
    title = "Share of the orbit answered correctly"
    return {"scale": "sequential", "range": [0.0, 1.0], "title": title}, {"values": values}


def _gap(opened: Opened, selection: Selection) -> Answer:
    """Confidence less accuracy over the orbit; without them, the invariance gap."""
    models = opened.of(selection)
    if "correct" in opened.metrics and "confidence" in opened.metrics:
        reference = opened.reference(selection)
        right = tally(opened, opened.variable(opened.metrics["correct"], reference)).mean
        sure = tally(opened, "confidence").mean
        values = over_models(sure[models] - right[models])
        title = "Confidence less accuracy over the orbit"
        return {"scale": "diverging", "range": [-1.0, 1.0], "title": title}, {"values": values}
    stored = opened.memo.once("gap", lambda: opened.reader.whole("invariance_gap"))
    values = over_models(stored[models])
    title = "Invariance gap: distance of the answers from their mean"
    about = {"scale": "sequential", "range": [0.0, _spread(values)[1]], "title": title}
    return about, {"values": values}


_MAKERS = {"mean": _mean, "variance": _variance, "correct": _correct, "gap": _gap}
