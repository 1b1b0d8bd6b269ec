"""What would help: remedies for a scanned model, each measured on samples it was not fitted to.

All is computed from the stored predictions of a scan, so no model runs. One half of the samples
fits temperatures, thresholds and sets, and the other half judges them.

Remedies are compared in one currency, the cost of a prediction that is acted on if its confidence
says so: an error costs 1, passing a prediction on to a person costs `passing`, and one acts where
the confidence is at least `1 - passing`. For calibrated confidence no other threshold is cheaper
(Chow, 1970), so a model that is accurate and honest has nothing to gain.
"""

from __future__ import annotations

from .causes import Cause, cause
from .remedies import Advice, Expectation, Remedy, advise
from .what_if_changes import RECALIBRATED, Change, what_if

__all__ = [
    "Advice", "Cause", "Change", "Expectation", "Remedy", "advise", "cause", "what_if",
]  # fmt: skip
