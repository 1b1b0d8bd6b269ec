"""Calibration: measure whether a model's confidence can be trusted.

Functions on arrays. Most take a pair `(confidence, correct)`, made from a model's outputs by
`top_label` or `classwise`, reduce over the last axis, broadcast over leading axes, and return
float64. The same measures as torchmetrics classes are in `metrics`; all of
them are entries of one registry, `MEASURES`, which tables, commands and the interface read.

| to | use |
|---|---|
| see everything at once | `measure_table`, `scan_table` |
| measure a classifier | `ece`, `smooth_ece`, `ks`, `esd`, `mmce`, `skce`, `sb_ece`, `classwise_*` |
| score it | `nll`, `brier`, `brier_parts`, `accuracy` |
| measure a regressor | `ence`, `regression_esd`, `mahalanobis_calibration`, `gaussian_nll`, ... |
| quantify uncertainty | `interval`, `regression_interval`, `bounded_mean_interval`, ... |
| compare two models | `compare_outputs`, `compare`, `compare_means`, `regression_compare` |
| draw | `reliability`, `reliability_curve`, `cumulative_curve`; `orbical.figures.calibration` |
| measure along an orbit | `along_orbit`, `at_places`, `mean_over_orbit`, `pooled_over_orbit` |
| measure each label, threshold, point, region or box | `pairs_within` |
| check it against a threshold | `verdict`, `judge`, `error_verdict` |
| add a measure | `register`, `Measure`, `list_measures` |

Example:
    >>> import orbical as ob
    >>> pair = ob.calibration.top_label(probs=[[0.9, 0.1], [0.2, 0.8]], labels=[0, 0])
    >>> ob.calibration.ece(*pair, bins=15)
    tensor(0.4500, dtype=torch.float64)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

# A gate that checks means needs no torch, which takes longer to import than all of its work.
from .intervals.bounded_means import *
from .intervals.bounded_means import MANY
from .intervals.cautions import CautionedMean, caution, first_interval_caution
from .intervals.levels import *
from .intervals.levels import RESAMPLES
from .verdicts import *
from .verdicts import measure_limit

if TYPE_CHECKING:
    from . import metrics
    from .computing import *
else:

    def __getattr__(name: str) -> object:
        """Import what computes with torch on first use, and torchmetrics only for `metrics`."""
        if name == "metrics":
            return importlib.import_module(f"{__name__}.metrics")
        if not name.startswith("__") or name == "__all__":
            computing = vars(importlib.import_module(f"{__name__}.computing"))
            if (known := "NAMES" if name == "__all__" else name) in computing:
                return computing[known]
        classes = "; classes for torchmetrics are in its module metrics" * name[:1].isupper()
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{classes}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__getattr__("__all__")})
