"""Detectors under shifts: how far the key object strayed in training decides where it is found.

    orbical study detection             # train, scan, write CSV, tables and figures
    orbical study detection report      # the page again, from its CSV files alone
    orbical study detection scenes      # the two detectors of generated scenes that ship

15 trainings side by side take five minutes of a large GPU and days of a laptop; --seeds, --steps
and --only choose fewer. What is trained already is not trained again. On a machine with an
accelerator that has neither the data nor more than torch, NumPy, SciPy and Pillow: `pack` the
images into `--data` here, `train` there, `collect` the results here.

Five detectors of one architecture, material and budget differ in one thing: by how much of
32 pixels the key object was moved away from the centre of the view in training (0 to 100 %). Each
is scanned over 33 x 33 shifts of the view on objects that none has seen. All is done with three
seeds.

Paper: Zhao et al., Evaluating Machine Learning Models with NERO, sections 3.1 and 3.4.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from orbical.errors import InputError

from ..command_line import one_line_errors, say_written, study_parser
from .collecting import collect
from .material import pack, test_views, unpack
from .page import report
from .settings import BATCH, PAGE, RESULTS, SCENE_STEPS, SCENES, SEEDS, STEP, STEPS
from .training import scene_detectors, train_all

STUDY_STEPS = ("all", "pack", "train", "collect", "scenes", "report")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study, or one of its steps; see the module."""
    parser = study_parser("detection", __doc__, PAGE, STUDY_STEPS)
    parser.add_argument("--data", type=Path, help="packed images; default: the data set")
    parser.add_argument("--out", type=Path, default=RESULTS, help=f"results; default {RESULTS}")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--workers", type=int, default=6, help="processes; 0 trains in this one")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="trainings of each level")
    parser.add_argument("--only", default="", help="only trainings whose name contains this")
    parser.add_argument("--steps", type=int, default=STEPS, help="of each training")
    parser.add_argument("--scenes", type=int, default=SCENES)
    parser.add_argument("--scene-steps", type=int, default=SCENE_STEPS)
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="after which a training stops early"
    )
    parser.add_argument("--batch", type=int, default=BATCH, help="views in one step")
    parser.add_argument("--step-px", type=int, default=STEP, help="pixels between shifts")
    parser.add_argument("--images", type=int, help="only the first images of each part")
    parser.add_argument("--objects", type=int, help="only the first objects to test on")
    given = parser.parse_args(arguments)
    with one_line_errors(parser):
        _checked(given)
        if given.step == "pack":
            say_written([pack(given.data or Path("carry"))])
        if given.step in ("all", "train"):
            train_all(given)
        if given.step == "scenes":
            say_written([scene_detectors(given)])
        if given.step in ("all", "collect"):
            packed = None if given.data is None else test_views(unpack(given.data)["test"])
            say_written(collect(given.out, given.page.with_suffix(""), packed))
        if given.step in ("all", "collect", "report"):
            say_written(report(given.page))


def _checked(given: argparse.Namespace) -> None:
    for name in ("seeds", "steps", "scenes", "scene_steps", "batch", "step_px"):
        value = getattr(given, name)
        if value < 1:
            raise InputError(f"{name.replace('_', '-')}: {value} given, at least 1 expected")
