"""Harmful invariance on the Swiss roll: accuracy against its ceiling, ECE inside its interval.

    orbical study swiss-roll            # train, measure, write CSV, tables and figures
    orbical study swiss-roll report     # the page again, from the CSV alone

Section 4.7.1 and Fig. 3 of Berman et al., "On Uncertainty Calibration for Equivariant Functions",
with several seeds, a test set that is a whole finite world, and bounds beside the measurements.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from ..command_line import add_settings, given_settings, run_and_report, study_parser
from ..pages import Row, write_csv
from .page import report
from .settings import PAGE, Settings
from .training import run

OPTIONS = {
    "seeds": "networks a world",
    "points": "on each spiral",
    "width": "of the invariant net",
    "plain_width": "of the plain net",
    "epochs": "lengths of training",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options, run the study, and write its page."""
    parser = study_parser("swiss-roll", __doc__, PAGE)
    add_settings(parser, Settings(), OPTIONS)
    run_and_report(parser, arguments, _run, report)


def _run(options: Namespace) -> None:
    rows = []
    for row in run(given_settings(options, Settings())):
        rows.append(row)
        _say(row)
    write_csv(options.page.with_suffix("") / "results.csv", rows)


def _say(row: Row) -> None:
    print(
        f"correct {row['correct']:.3f} incorrect {row['incorrect']:.3f} {row['network']:16} "
        f"seed {row['seed']} epoch {row['epoch']:5}: accuracy {row['accuracy']:.3f} "
        f"(ceiling {row['ceiling']:.3f}), ECE {row['ece']:.3f}",
        flush=True,
    )
