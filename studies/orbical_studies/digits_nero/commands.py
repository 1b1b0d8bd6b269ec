"""NERO plots of all MNIST test digits: the paper's claims about them, measured.

    orbical study digits-nero            # scan, measure, write CSV, tables and figures
    orbical study digits-nero report     # the tables again, from the CSV files alone

Sections 2.2 to 2.4 of Zhao et al., "Evaluating Machine Learning Models with NERO", on the 10,000
test images of MNIST at 72 rotations, with the two networks that ship with the package.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from orbical.errors import InputError

from ..command_line import run_and_report, say_written, study_parser
from .figures import draw
from .measures import measure, scan_digits
from .page import report
from .settings import PAGE, STORE


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options, scan, measure, and write the page."""
    parser = study_parser("digits-nero", __doc__, PAGE)
    parser.add_argument("--store", type=Path, default=STORE, help=f"the scan; default {STORE}")
    parser.add_argument("--data", choices=["mnist-full", "mnist"], default="mnist-full")
    parser.add_argument("--samples", type=int, help="only the first so many digits")
    run_and_report(parser, arguments, _run, report)


def _run(options: Namespace) -> None:
    if options.samples is not None and options.samples < 100:
        raise InputError(f"samples: got {options.samples}, expected at least 100")
    scan = scan_digits(options.store, options.samples, options.data)
    folder = options.page.with_suffix("")
    say_written(measure(scan, folder))
    say_written(draw(scan, folder))
