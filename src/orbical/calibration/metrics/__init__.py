"""The measures as torchmetrics classes: `update(preds, target)`, `compute`, `reset`, `plot`.

A measure that has no class of its own is made into a metric by `MEASURES[name].metric()`.
"""

from __future__ import annotations

from typing import Any

from torchmetrics import Metric

from ..registry import Measure, measure_entry
from . import classification_metrics, regression_metrics
from .classification_metrics import *
from .classification_metrics import KeptPairs
from .regression_metrics import *
from .regression_metrics import KeptPredictions

__all__ = [*classification_metrics.__all__, *regression_metrics.__all__]


def metric_of_measure(measure: str | Measure, **options: object) -> Metric:
    """Return the metric of a registered measure that has no class of its own."""
    entry = measure_entry(measure, "pair", "regression")
    kept = KeptPredictions if entry.kind == "regression" else KeptPairs
    return kept(measure=entry, **options)
