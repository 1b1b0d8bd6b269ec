"""Colors of the map: one number for each sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import check_name
from ...nero.moments import over_models
from ..selection import Selection
from .columns import keys_of, robust_ends, sample_columns, titled, values_of
from .scan_view import ScanView
from .subsets import Answer

Array = np.ndarray
MOMENTS = ("mean", "variance")


def available_colors(view: ScanView) -> list[str]:
    """List the colorings that these samples have: moments of the metric, and columns."""
    columns = sample_columns(view).values()
    return [*MOMENTS, *(column.name for column in columns if column.kind != "text")]


def color(view: ScanView, selection: Selection, message: dict[str, Any]) -> Answer:
    """Answer one number for each sample."""
    check_name("selection color", selection.color, available_colors(view))
    if selection.color in MOMENTS:
        return _of_metric(view, selection)
    column = sample_columns(view)[selection.color]
    values = values_of(view, column, selection.of)
    about: dict[str, Any] = {"title": titled(view, column, selection.of)}
    if column.kind == "category":
        about |= {"scale": "classes", "range": [0, len(keys_of(view, column)) - 1]}
        about["names"] = column.keys  # None for classes, which the page knows
        return about, {"values": values.astype(np.float32)}
    low, high = column.ends or robust_ends(values)
    about |= {"scale": "diverging" if low == -1.0 else "sequential", "range": [low, high]}
    shown = np.where(np.isposinf(values), high, values)  # what never fails is beyond the last
    return about | {"unit": column.unit}, {"values": shown.astype(np.float32)}


def _of_metric(view: ScanView, selection: Selection) -> Answer:
    """Answer the mean or the variance of the metric over the orbit."""
    metric = view.metric(selection, per_sample=True)
    moments = view.moments(view.variable(metric, view.reference(selection)))
    spread = selection.color == "variance"
    values = over_models(
        (moments.orbit_variance if spread else moments.orbit_mean)[view.of(selection)]
    )
    low, high = robust_ends(values)
    if spread:
        low = 0.0
    elif metric.unit == "share":
        low, high = 0.0, 1.0
    title = f"{metric.title}, {selection.color} over the orbit"
    about = {"scale": "sequential", "range": [low, high], "title": title}
    better = False if spread else metric.higher_is_better
    return about | {"higher_is_better": better}, {"values": values}
