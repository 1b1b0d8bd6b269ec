"""Flow in particle images along D4 x time reversal: classical methods against learned ones.

    orbical study piv            # scan, measure, write CSV, tables and figures
    orbical study piv report     # the page again, from the files beside it

Section 3.2 of the NERO paper (Farneback against PIV-LiteFlowNet-en) with generated pairs, the
networks that ship with the package, the 20 pairs of Cai et al. where they are at hand, arbitrary
rotations in a view that stays inside, the consensus, and the caveat of time reversal.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from functools import partial

import torch

from ..command_line import add_settings, given_settings, run_and_report, study_parser
from .page import report
from .scans import estimators, run
from .settings import PAGE, Settings

OPTIONS = {
    "pairs": "of each kind of flow",
    "size": "of a generated pair, in pixels",
    "angles": "of the rotations",
    "turned": "generated pairs of each kind that are rotated",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options, run the study, and write its page."""
    parser = study_parser("piv", __doc__, PAGE)
    add_settings(parser, Settings(), OPTIONS)
    parser.add_argument("--no-real", dest="real", action="store_false", help="generated pairs only")
    run_and_report(parser, arguments, _run, report)


def _run(options: Namespace) -> None:
    settings, folder = given_settings(options, Settings()), options.page.with_suffix("")
    with torch.inference_mode():
        run(settings, folder, estimators(), partial(print, flush=True))
