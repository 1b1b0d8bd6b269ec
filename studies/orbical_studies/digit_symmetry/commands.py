"""What rotation invariance costs on real digits: 6 and 9 collide.

    orbical study digits            # measure, write CSV, tables and figures
    orbical study digits report     # the page again, from the CSV files alone

Two photographs never match exactly, so a tolerance alone would decide the accuracy ceiling of a
symmetry. Two questions do have an answer: how often the nearest other image, after the best group
element, is another digit; and what the exact ceiling is once the images are quantised.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from ..command_line import run_and_report, study_parser
from .measures import run
from .page import report
from .settings import PAGE, SOURCES


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options, run the study, and write its page."""
    parser = study_parser("digits", __doc__, PAGE)
    parser.add_argument("--data", default="mnist", help=f"one of {', '.join(SOURCES)}")
    parser.add_argument("--turns", type=int, default=72, help="samples of SO(2)")
    parser.add_argument("--images", type=int, help="only the first so many")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    run_and_report(parser, arguments, _run, report)


def _run(options: Namespace) -> None:
    run(
        options.data,
        options.page.with_suffix(""),
        turns=options.turns,
        images=options.images,
        device=options.device,
    )
