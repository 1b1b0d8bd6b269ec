"""Calibration: measure whether a model's confidence can be trusted.

Functions on arrays. Most take a pair `(confidence, correct)`, made from a model's outputs by
`top_label` or `classwise`, reduce over the last axis, broadcast over leading axes, and return
float64. The same measures as torchmetrics classes are in `metrics` and `regression_metrics`; all of
them are entries of one registry, `MEASURES`, which tables, commands and the interface read.

| to | use |
|---|---|
| see everything at once | `classification_table`, `regression_table` |
| measure a classifier | `ece`, `smooth_ece`, `ks`, `esd`, `mmce`, `skce`, `sb_ece`, `classwise_*` |
| score it | `nll`, `brier`, `brier_parts`, `accuracy` |
| measure a regressor | `ence`, `regression_esd`, `mahalanobis_calibration`, `gaussian_nll`, ... |
| quantify uncertainty | `interval`, `regression_interval`, `mean_interval` |
| compare two models | `compare`, `compare_means`, `regression_compare` |
| draw | `reliability`, `reliability_curve`, `cumulative_curve`; `orbical.figures.calibration` |
| measure along an orbit | `along_orbit`, `mean_over_orbit`, `pooled_over_orbit` |
| measure each label, point or box | `detections`, `labels`, `points`, `regions`, `thresholds` |
| check it against a threshold | `verdict`, `judge` |
| add a measure | `register`, `Measure` |

Example:
    >>> import orbical as ob
    >>> pair = ob.calibration.top_label(probs=[[0.9, 0.1], [0.2, 0.8]], labels=[0, 0])
    >>> ob.calibration.ece(*pair, bins=15)
    tensor(0.4500, dtype=torch.float64)
"""

from __future__ import annotations

import importlib
from typing import Any

from . import _catalog
from ._interval import Interval
from ._pooled import pooled_reliability
from .binned import Reliability, ece, ece_debiased, error_of, reliability
from .bleed import Bleed, aleatoric_bleed, covariance_bleed, nll_optimal_bleed
from .brier_intervals import brier_part_intervals
from .by_class import (
    classwise_ece,
    classwise_esd,
    classwise_ks,
    classwise_mmce,
    classwise_skce,
    classwise_smooth_ece,
    per_class,
)
from .comparisons import Comparison, compare, regression_compare
from .cumulative import CumulativeCurve, cumulative_curve, esd, esd_softened, ks, ordered_esd
from .curves import ReliabilityCurve, reliability_curve
from .detection_pairs import detections
from .gaussian import gaussian_crps, gaussian_nll
from .generalized import gence, gence_fiber, gence_floor, gence_sq, gence_sq_fiber, gence_sq_floor
from .intervals import interval, oracle_bound, regression_interval
from .kernel import mmce, mmce_squared, mmce_weighted, skce
from .label_pairs import labels, thresholds
from .means import compare_means, mean_interval, share_interval
from .orbit import along_orbit, pair_at, pairs_along, reliability_at
from .orbit_summary import PLACES, mean_over_orbit, pooled_over_orbit, scan_measures
from .outputs import classwise, normalized_entropy, probabilities, top_label
from .pixel_bins import pixel_reliability, regions
from .point_pairs import points
from .registry import MEASURES, Measure, measures, register
from .regression import (
    Coverage,
    ence,
    mahalanobis_calibration,
    quantile_calibration,
    regression_esd,
    regression_esd_normalized,
    uce,
)
from .scores import BrierParts, accuracy, brier, brier_parts, nll
from .smooth import smooth_ece
from .soft import ece_loss, s_avuc, sb_ece
from .table import classification_table, pair_table, regression_score_terms, regression_table
from .verdicts import Verdict, judge, verdict

__all__ = [
    "MEASURES",
    "PLACES",
    "Bleed",
    "BrierParts",
    "Comparison",
    "Coverage",
    "CumulativeCurve",
    "Interval",
    "Measure",
    "Reliability",
    "ReliabilityCurve",
    "Verdict",
    "accuracy",
    "aleatoric_bleed",
    "along_orbit",
    "brier",
    "brier_part_intervals",
    "brier_parts",
    "classification_table",
    "classwise",
    "classwise_ece",
    "classwise_esd",
    "classwise_ks",
    "classwise_mmce",
    "classwise_skce",
    "classwise_smooth_ece",
    "compare",
    "compare_means",
    "covariance_bleed",
    "cumulative_curve",
    "detections",
    "ece",
    "ece_debiased",
    "ece_loss",
    "ence",
    "error_of",
    "esd",
    "esd_softened",
    "gaussian_crps",
    "gaussian_nll",
    "gence",
    "gence_fiber",
    "gence_floor",
    "gence_sq",
    "gence_sq_fiber",
    "gence_sq_floor",
    "interval",
    "judge",
    "ks",
    "labels",
    "mahalanobis_calibration",
    "mean_interval",
    "mean_over_orbit",
    "measures",
    "mmce",
    "mmce_squared",
    "mmce_weighted",
    "nll",
    "nll_optimal_bleed",
    "normalized_entropy",
    "oracle_bound",
    "ordered_esd",
    "pair_at",
    "pair_table",
    "pairs_along",
    "per_class",
    "pixel_reliability",
    "points",
    "pooled_over_orbit",
    "pooled_reliability",
    "probabilities",
    "quantile_calibration",
    "regions",
    "register",
    "regression_compare",
    "regression_esd",
    "regression_esd_normalized",
    "regression_interval",
    "regression_score_terms",
    "regression_table",
    "reliability",
    "reliability_at",
    "reliability_curve",
    "s_avuc",
    "sb_ece",
    "scan_measures",
    "share_interval",
    "skce",
    "smooth_ece",
    "thresholds",
    "top_label",
    "uce",
    "verdict",
]


def __getattr__(name: str) -> Any:
    # The metric classes need torchmetrics, which takes longer to import than all of the above.
    if name in ("metrics", "regression_metrics"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
