"""The results of a scan: responses along orbits, of single samples or averaged.

Functions take a `Scan`, or its `data` (for example a selection of its samples or models), and
return labeled arrays. A stored scan is read block by block; `responses`, `individual` and
`consensus` stay lazy, and `.compute()` loads them. Unfinished parts of a scan are left out.

The attributes of an array of responses hold what a figure needs: `metric` and its `meaning`,
`reference` (what a score is measured against), `limits` and `higher_is_better` where they are
known, all `models` in their order, the `group` with its `identity`, and the `layout` of its orbit
with `layout_index` and `layout_axes`.

Paper: Zhao et al., Evaluating Machine Learning Models with NERO, sections 2.2 to 2.5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazy_exports
from ..store import responses
from .sums_and_means import (
    POWERS,
    ROWS,
    Moments,
    Sums,
    add_sums,
    element_columns,
    known_terms,
    least_response,
    mean_at_worst,
    mean_of_curves,
    mean_over_models,
    moments,
    orbit_means_and_variances,
    response_bounds,
    summed_values,
    sums_over,
)

__all__ = [
    "Failure", "Failures", "Violation", "action_defect", "aggregate", "averaging",
    "binary_rates", "consensus", "consistency", "enough_elements", "failures", "headline",
    "individual", "invariance_gap", "molecule_name", "order_averages", "position_bias",
    "quadratic_kappa", "responses", "summary", "violations", "worst_orders",
]  # fmt: skip

if TYPE_CHECKING:
    from .along_orbits import aggregate, individual
    from .averages import averages_over_elements, averaging, evenly_spaced
    from .changes import (
        SHARES,
        answer_names,
        changed_share,
        changes_are_binary,
        consistency,
        sample_changes,
    )
    from .classification_scores import binary_rates, quadratic_kappa
    from .failure_search import Failure, Failures, failures
    from .headlines import headline, headline_curves, headline_of, headline_words
    from .molecule_violations import Violation, molecule_name, molecule_score_scope, violations
    from .orders import order_averages, position_bias, worst_orders
    from .spectra import circle_bracket, enough_elements, order_for_spectra
    from .summaries import action_defect, consensus, invariance_gap, summary
else:  # means over orbits need neither torch nor tasks
    __getattr__ = lazy_exports(
        __name__,
        {
            "classification_scores": "binary_rates quadratic_kappa",
            "along_orbits": "aggregate individual",
            "averages": "averages_over_elements averaging evenly_spaced",
            "changes": "SHARES answer_names changed_share changes_are_binary consistency "
            "sample_changes",
            "failure_search": "Failure Failures failures",
            "headlines": "headline headline_of headline_curves headline_words",
            "molecule_violations": "Violation molecule_name molecule_score_scope violations",
            "orders": "order_averages position_bias worst_orders",
            "spectra": "circle_bracket order_for_spectra enough_elements",
            "summaries": "action_defect consensus invariance_gap summary",
        },
    )
