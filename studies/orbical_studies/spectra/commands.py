"""Infrared spectra of molecules: where along a spectrum uncertainty bleeds, and into which part.

    orbical study spectra                 # all of it: pack, train, collect, report
    orbical study spectra report          # the page again, from its CSV files alone

Labelling the molecules takes an hour or two of one core (--label-minutes ends it sooner, and the
same command goes on from there), the 27 trainings some minutes of a large GPU and days of a laptop;
--epochs, --seeds and --only choose fewer. What is trained already is not trained again. On another
machine, with torch and e3nn alone: `pack` here, `train` there, `collect` the answers here.

Section 6.1.2, appendix E and Fig. 9 of Berman et al., "On Uncertainty Calibration for Equivariant
Functions".
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from orbical.errors import InputError

from ..command_line import one_line_errors, say_written, study_parser
from ..trials import Trials
from ..workers import run_jobs
from . import packing, training
from .settings import EPOCHS, PAGE, SEEDS, Trial, trials

RESULTS = Path("results/spectra")
STEPS = ("all", "pack", "train", "collect", "report")
STARTING = 40.0
"""Seconds kept back from the time given, for the start of the processes and the last answers."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options, and run the study or a step of it."""
    parser = study_parser("spectra", __doc__, PAGE, STEPS)
    parser.add_argument("--out", type=Path, default=RESULTS, help=f"answers; default {RESULTS}")
    parser.add_argument("--pack", type=Path, help="packed molecules; default OUT/spectra.npz")
    parser.add_argument("--cache", type=Path, help="the folder of the data sets' own cache")
    parser.add_argument("--label-minutes", type=float, default=1e9, help="label no longer")
    parser.add_argument("--count", type=int, help="label at most so many molecules")
    parser.add_argument("--workers", type=int, default=0, help="processes; 0 trains in this one")
    parser.add_argument("--minutes", type=float, default=1e9, help="end every training before this")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="of each training")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS), help="which seeds")
    parser.add_argument("--only", default="", help="only trainings whose name contains this")
    given = parser.parse_args(arguments)
    with one_line_errors(parser):
        given.pack = given.pack or given.out / "spectra.npz"
        run(given)


def run(given: argparse.Namespace) -> None:
    """Run the steps that are asked for."""
    wanted = STEPS[1:] if given.step == "all" else (given.step,)
    if "pack" in wanted and not (given.step == "all" and given.pack.is_file()):
        say_written([packing.pack(given.pack, given.cache, given.label_minutes, given.count)])
    if "train" in wanted:
        train_all(given)
    if "collect" in wanted:
        from .page import measured

        say_written(measured(given.pack, given.out, given.page.with_suffix("")))
    if "report" in wanted:
        from .page import report

        say_written(report(given.page))


def train_all(given: argparse.Namespace) -> None:
    """Train what the results do not have yet."""
    if given.epochs < 1:
        raise InputError(f"epochs: got {given.epochs}, expected at least 1")
    kept = Trials(given.out)
    every = trials(tuple(given.seeds), given.epochs, _seconds_each(given))
    jobs = kept.waiting(every, given.only)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    print(f"{len(jobs)} networks to train on {device}, {len(kept.done)} already there", flush=True)

    def finished(trial: Trial, result: dict[str, Any]) -> None:
        row = {"name": str(trial), **vars(trial), **result["scores"]}
        for place, answers in result["test"].items():
            path = given.out / trial.file(place)
            np.savez_compressed(path, test=answers, curve=result["curve"])
        kept.add(row)
        print(
            f"{trial}: {row['steps']} steps in {row['seconds']:.0f} s, validation NLL "
            f"{row['validation_nll']:.4f} at epoch {row['best_epoch']}",
            flush=True,
        )

    run_jobs(
        jobs,
        partial(packing.unpack, given.pack, device),
        training.run,
        finished,
        workers=given.workers,
        deadline=time.time() + 60 * given.minutes,
    )


def _seconds_each(given: argparse.Namespace) -> float:
    """Share the time out: with as many processes as trainings, each has almost all of it."""
    count = sum(given.only in str(trial) for trial in trials(tuple(given.seeds)))
    rounds = -(-count // max(1, given.workers))
    return max(1.0, (60 * given.minutes - STARTING) / max(1, rounds))
