# ruff: noqa: F401, F403
"""Everything that `orbical.calibration` offers; most of it computes with torch."""

from __future__ import annotations

from . import built_in, judging, measure_tables, overview, registry
from .intervals import (
    bounded_means,
    brier_intervals,
    comparisons,
    curves,
    interval_ends,
    levels,
    means,
    resampled,
)
from .intervals.bounded_means import *
from .intervals.bounded_means import MANY
from .intervals.brier_intervals import *
from .intervals.comparisons import *
from .intervals.curves import *
from .intervals.interval_ends import *
from .intervals.levels import *
from .intervals.limits import MeanEnds, caution, evidence_of_pairs, first_interval_caution
from .intervals.means import *
from .intervals.means import paired_interval_of_sums
from .intervals.resampled import *
from .judging import *
from .judging import measure_limit
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
from .measures.soft import avuc_with_slope, fixed_bins_with_slope, sb_ece_with_slope
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
from .orbit.whole_orbit import *
from .orbit.whole_orbit import calibration_kinds
from .overview import *
from .pairs import from_outputs, from_scans
from .pairs.from_outputs import *
from .pairs.from_outputs import softmax
from .pairs.from_scans import *
from .pairs.validation import (
    check_weights,
    probability_tolerance,
    weighted_mean,
    weights_of,
    without_ignored,
)
from .registry import *
from .registry import RESAMPLES, Draws

# fmt: off
_MODULES = (
    judging, measure_tables, overview, registry, bounded_means, brier_intervals, comparisons,
    curves, interval_ends, levels, means, resampled, binned, bleed, by_class, cumulative, gaussian,
    kernel_errors,
    proper_scores, smooth, soft, variance_errors, pixel_bins, pooled, positions, verdicts,
    whole_orbit, from_outputs, from_scans,
)
# fmt: on
NAMES = [name for module in _MODULES for name in module.__all__]
"""The public names of `orbical.calibration`."""
