"""Bounds: the best and the worst accuracy, error and calibration that a symmetry allows.

    import orbical as ob

    ob.bounds.compare_groups((x, label), ["cyclic:4", "dihedral:4"])  # before anything is trained

    table = ob.bounds.OrbitTable.from_data(x, label, "cyclic:4", confidence=p, predicted=y)
    table.accuracy_ceiling
    ob.bounds.classification(table, bins=15)  # every bound of a classifier, with its reason

A table states which samples share an orbit: found by matching (`from_data`), from ids
(`from_labels`), for a scanned model (`from_scan`). Regressors have `ValueTable` and `regression`.

Every bound works on finite orbit masses.
"""

from __future__ import annotations

from .any_model import ModelOutputs
from .bound import Bound, Bounds
from .classification_bounds import TITLES, classification, forced_overconfidence, worst_predictions
from .fibers import Fibers, fibers_from_errors
from .group_comparison import Candidate, Comparison, compare_groups
from .matching import (
    Orbits,
    match_elements,
    match_invariants,
    match_orbits,
    orbits_of_permutations,
)
from .neighbors import Estimate, neighbor_ceiling, neighbor_floor
from .orbit_table import OrbitTable
from .pointwise_taxonomy import Density, Taxonomy, confidence_density, taxonomy
from .price_and_ceiling import Price, certified_ceiling, price_from_pairs
from .regression_bounds import (
    best_equivariant,
    nll_optimal_bleed,
    nll_optimal_variance,
    regression,
)
from .table_checks import normalize
from .value_table import ValueTable

__all__ = [
    "Bound", "Bounds", "Candidate", "Comparison", "Density", "Estimate", "Fibers",
    "ModelOutputs", "OrbitTable", "Orbits", "Price", "Taxonomy", "ValueTable",
    "best_equivariant", "certified_ceiling", "classification", "compare_groups",
    "confidence_density", "fibers_from_errors", "forced_overconfidence", "match_elements",
    "match_invariants", "match_orbits", "neighbor_ceiling", "neighbor_floor",
    "nll_optimal_bleed", "nll_optimal_variance", "normalize", "orbits_of_permutations",
    "price_from_pairs", "regression", "taxonomy", "worst_predictions",
]  # fmt: skip
