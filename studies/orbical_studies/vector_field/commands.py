"""Vector fields with right and with wrong symmetry: errors, calibration, and where variance goes.

    orbical study vector-field            # train, measure, write CSV, tables and figures
    orbical study vector-field report     # the page again, from the CSV files alone

Section 6.1.1, appendix B and Figs 6 and 7 of Berman et al., "On Uncertainty Calibration for
Equivariant Functions", without noise, with a network that is more than linear, with several seeds,
one test set and the same coordinates for all networks, and with the limits beside the measurements.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from functools import partial

from ..command_line import add_settings, given_settings, run_and_report, study_parser
from ..pages import write_csv
from .measures import run
from .page import report
from .settings import PAGE, Settings

OPTIONS = {
    "seeds": "networks a field",
    "train": "training points",
    "side": "of the test set",
    "angles": "in the plane",
    "epochs": "when to measure",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options, run the study, and write its page."""
    parser = study_parser("vector-field", __doc__, PAGE)
    add_settings(parser, Settings(), OPTIONS)
    run_and_report(parser, arguments, _run, report)


def _run(options: Namespace) -> None:
    settings = given_settings(options, Settings())
    for name, rows in run(settings, partial(print, flush=True)).items():
        write_csv(options.page.with_suffix("") / f"{name}.csv", rows)
