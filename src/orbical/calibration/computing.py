# ruff: noqa: E402, F401, F403
"""Everything that `orbical.calibration` offers; most of it computes with torch."""

from __future__ import annotations

from .intervals.bounded_means import *
from .intervals.brier_intervals import *
from .intervals.comparisons import *
from .intervals.interval_ends import *
from .intervals.levels import *
from .intervals.mean_intervals import *
from .intervals.measure_intervals import *
from .intervals.reliability_curves import *
from .measure_tables import *
from .measures.binned import *
from .measures.bleed import *
from .measures.by_class import *
from .measures.cumulative import *
from .measures.gaussian import *
from .measures.kernel_errors import *
from .measures.proper_scores import *
from .measures.smooth import *
from .measures.soft import *
from .measures.variance_errors import *
from .orbit.pixel_bins import *
from .orbit.pooled import *
from .orbit.positions import *
from .orbit.scan_verdicts import *
from .orbit.whole_orbit import *
from .output_comparisons import *
from .pairs.from_outputs import *
from .pairs.from_scans import *
from .registry import *
from .scan_tables import *
from .verdicts import *

NAMES = [name for name in dir() if name[0].isalpha() and name != "annotations"]
"""The public names of `orbical.calibration`: all so far. What follows is for other packages."""

from . import built_in_measures
from .intervals.bounded_means import MANY
from .intervals.cautions import (
    CautionedMean,
    caution,
    caution_evidence_of_pairs,
    first_interval_caution,
)
from .intervals.mean_intervals import paired_interval_of_sums
from .measures.binned import bin_index, fixed_bins_with_slope
from .measures.cumulative import cumulative_esd_softened, esd_with_slope
from .measures.kernel_errors import mmce_with_slope
from .measures.soft import sb_ece_with_slope, soft_avuc_with_slope
from .numerics.gradients import Formula, can_fuse_gradient, differentiable
from .numerics.sorting import ascending
from .orbit.labeled_results import labeled_along_elements
from .orbit.pixel_bins import calibration_of_sums
from .orbit.positions import model_index, pair_arrays_at_positions, pair_blocks, pairs_at_element
from .pairs.from_outputs import softmax
from .pairs.pairs_and_weights import (
    check_weights,
    unchecked_sample_weights,
    weighted_mean,
    without_ignored,
)
from .registry import RESAMPLES, Draws
from .scan_tables import calibration_kinds
from .verdicts import measure_limit
