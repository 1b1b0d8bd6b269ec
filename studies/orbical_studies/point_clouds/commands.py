"""Point clouds under rotations: with and without rotated training, and flat by construction.

    orbical study point-clouds                  # train, ask, write CSV, tables and figures
    orbical study point-clouds report           # the page again, from the CSV files alone

On another machine, with torch alone: `pack` the data sets here, `train` there, `collect` the
answers here.

Section 3.3 and Fig. 11 of Zhao et al., "Evaluating Machine Learning Models with NERO".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from orbical.zoo.pointnet import NAMES as NETWORKS

from ..command_line import (
    add_settings,
    given_settings,
    one_line_errors,
    say_written,
    study_parser,
)
from .collecting import collect
from .page import report
from .settings import DATA_SETS, PAGE, RESULTS, Settings
from .training import pack, run

OPTIONS = {
    "seeds": "trainings of each network on each data set",
    "steps": "of each training",
    "points": "of a test cloud",
    "most": "test clouds of a class",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options, run the study or a step of it, and write its page."""
    defaults = Settings()
    steps = ("all", "pack", "train", "collect", "report")
    parser = study_parser("point-clouds", __doc__, PAGE, steps)
    parser.add_argument("--data", type=Path, help="packed data sets; default: the public files")
    parser.add_argument("--out", type=Path, default=RESULTS, help=f"answers; default {RESULTS}")
    add_settings(parser, defaults, OPTIONS)
    parser.add_argument("--slices", default=dict(defaults.groups)["slices"])
    parser.add_argument("--ball", default=dict(defaults.groups)["ball"])
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--data-sets", nargs="+", choices=DATA_SETS, default=list(DATA_SETS))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=0, help="processes; 0 trains in this one")
    options = parser.parse_args(arguments)
    with one_line_errors(parser):
        if options.step == "pack":
            say_written(pack(options.data or Path("carry")))
        if options.step in ("all", "train"):
            groups = (("slices", options.slices), ("ball", options.ball))
            settings = replace(given_settings(options, defaults), groups=groups)
            say_written(
                run(
                    *(options.out, options.data, settings, options.device),
                    *(options.networks, options.data_sets, options.workers),
                )
            )
        if options.step in ("all", "collect"):
            say_written(collect(options.out, options.page.with_suffix("")))
        if options.step in ("all", "collect", "report"):
            say_written(report(options.page))
