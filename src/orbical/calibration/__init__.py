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

from typing import TYPE_CHECKING

from .._lazy import lazy_exports
from . import built_in, measure_tables, overview, registry
from .intervals import (
    bounded_means,
    brier_intervals,
    comparisons,
    curves,
    interval_ends,
    means,
    resampled,
)
from .intervals.bounded_means import *
from .intervals.bounded_means import MANY
from .intervals.brier_intervals import *
from .intervals.comparisons import *
from .intervals.curves import *
from .intervals.interval_ends import *
from .intervals.limits import MeanEnds, caution, evidence_of_pairs, one_caution
from .intervals.means import *
from .intervals.means import paired_interval_of_sums
from .intervals.resampled import *
from .measure_tables import *
from .measures import (
    binned,
    bleed,
    by_class,
    cumulative,
    gaussian,
    kernel_errors,
    proper_scores,
    smooth,
    soft,
    variance_errors,
)
from .measures.binned import *
from .measures.binned import bin_index
from .measures.bleed import *
from .measures.by_class import *
from .measures.cumulative import *
from .measures.cumulative import esd_with_slope, softened
from .measures.gaussian import *
from .measures.kernel_errors import *
from .measures.kernel_errors import mmce_with_slope
from .measures.proper_scores import *
from .measures.smooth import *
from .measures.soft import *
from .measures.soft import avuc_with_slope, checked_kappa, fixed_bins_with_slope, sb_ece_with_slope
from .measures.variance_errors import *
from .numerics.gradients import Formula, can_fuse, differentiable
from .numerics.sorting import ascending
from .orbit import pixel_bins, pooled, positions, verdicts, whole_orbit
from .orbit.pixel_bins import *
from .orbit.pixel_bins import calibration_of_sums
from .orbit.pooled import *
from .orbit.positions import *
from .orbit.positions import model_index, pair_blocks, pairs_at_element, pairs_of
from .orbit.verdicts import *
from .orbit.verdicts import measure_limit
from .orbit.whole_orbit import *
from .orbit.whole_orbit import measure_kinds
from .overview import *
from .pairs import from_outputs, from_scans
from .pairs.from_outputs import *
from .pairs.from_outputs import softmax
from .pairs.from_scans import *
from .pairs.validation import (
    check_weights,
    positive,
    probability_tolerance,
    weighted_mean,
    weights_of,
    without_ignored,
    working_float,
)
from .registry import *
from .registry import RESAMPLES, Draws

# fmt: off
_MODULES = (
    measure_tables, overview, registry, bounded_means, brier_intervals, comparisons, curves,
    interval_ends, means, resampled, binned, bleed, by_class, cumulative, gaussian,
    kernel_errors,
    proper_scores, smooth, soft, variance_errors, pixel_bins, pooled, positions, verdicts,
    whole_orbit, from_outputs, from_scans,
)
# fmt: on
__all__ = [name for module in _MODULES for name in module.__all__]

if TYPE_CHECKING:
    from . import metrics
else:  # torchmetrics takes longer to import than all of the above
    __getattr__ = lazy_exports(__name__, {}, modules=["metrics"])
