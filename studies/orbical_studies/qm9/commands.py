"""Molecules: what a correct symmetry does to errors and to the uncertainty that is reported.

    orbical study qm9                # all of it: pack, train, collect, report
    orbical study qm9 report         # the page again, from its CSV files alone

15 trainings take nine minutes of a large GPU with --workers 15 --minutes 9, and days of a laptop;
--count, --epochs and --seeds choose less, and --only a part of the step `train`. What is trained
already is not trained again. On another machine, with torch alone: `pack` here, `train` there,
`collect` the answers here.

Section 6.1.2, appendix E, Table 1 and Fig. 8 of Berman et al., "On Uncertainty Calibration for
Equivariant Functions".
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from orbical.errors import InputError

from ..command_line import one_line_errors, say_written, study_parser
from ..pages import write_csv
from ..trials import Trials
from ..workers import run_jobs
from . import packing, training
from .settings import BATCH, EPOCHS, ORIENTED_NAME, SEEDS, Trial, trials

PAGE = Path("docs/studies/qm9.md")
RESULTS = Path("results/qm9")
STEPS = ("all", "pack", "train", "collect", "report")
LASTING = 10.0
"""Seconds for which the speed is measured before the epochs are chosen."""

SPARE = 1.06
"""How much longer an epoch may take than it did when it was measured."""

ENDING = 10.0
"""Seconds for the start of the processes beyond what was measured, the test and the writing."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options, and run the study or a step of it."""
    parser = study_parser("qm9", __doc__, PAGE, STEPS)
    parser.add_argument("--out", type=Path, default=RESULTS, help=f"answers; default {RESULTS}")
    parser.add_argument("--pack", type=Path, help=f"packed molecules; default OUT/{packing.FILE}")
    parser.add_argument("--cache", type=Path, help="the folder of the data set's own cache")
    parser.add_argument("--count", type=int, help="pack the first so many molecules of each split")
    parser.add_argument("--workers", type=int, default=0, help="processes; 0 trains in this one")
    parser.add_argument("--minutes", type=float, help="measure the speed, and choose the epochs")
    parser.add_argument(
        "--epochs", type=int, help=f"default {EPOCHS}; with --minutes at most so many"
    )
    parser.add_argument("--batch", type=int, default=BATCH, help="molecules a step")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS), help="which seeds")
    parser.add_argument("--only", default="", help="only trainings whose name contains this")
    given = parser.parse_args(arguments)
    with one_line_errors(parser):
        _checked(given)
        given.pack = given.pack or given.out / packing.FILE
        run(given)


def run(given: argparse.Namespace) -> None:
    """Run the steps that are asked for."""
    wanted = STEPS[1:] if given.step == "all" else (given.step,)
    if "pack" in wanted and not (given.step == "all" and given.pack.is_file()):
        say_written([packing.pack(given.pack, given.cache, given.count)])
    if "train" in wanted:
        train_all(given)
    if "collect" in wanted:
        from .collecting import collect

        folder = given.page.with_suffix("")
        found = collect(given.pack, given.out).items()
        say_written(write_csv(folder / f"{name}.csv", rows) for name, rows in found)
    if "report" in wanted:
        from .page import report

        say_written(report(given.page))


def _checked(given: argparse.Namespace) -> None:
    for name, least in (("epochs", 1), ("batch", 1), ("count", 1), ("workers", 0)):
        value = getattr(given, name)
        if value is not None and value < least:
            raise InputError(f"{name}: got {value}, expected at least {least}")
    if min(given.seeds) < 0:
        raise InputError(f"seeds: got {min(given.seeds)}, expected at least 0")


def train_all(given: argparse.Namespace) -> None:
    """Train what the results do not have yet."""
    started = time.time()
    kept = Trials(given.out)
    every = trials(tuple(given.seeds), given.epochs or EPOCHS, given.batch)
    jobs = kept.waiting(every, given.only)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    print(f"{len(jobs)} networks to train on {device}, {len(kept.done)} already there", flush=True)
    setup = partial(packing.unpack, packing.there(given.pack), device)
    if given.minutes is not None and jobs:
        epochs = chosen_epochs(jobs, setup, given.workers, started + 60 * given.minutes)
        epochs = min(epochs, given.epochs or epochs)
        print(f"{epochs} epochs each, {time.time() - started:.0f} s after the start", flush=True)
        jobs = [replace(trial, epochs=epochs) for trial in jobs]

    def finished(trial: Trial, result: dict[str, Any]) -> None:
        row = {"name": str(trial), **vars(trial), **result["scores"]}
        stem = str(trial).replace("/", "-").replace(" ", "")
        arrays = {name: result[name] for name in ("test", "turned", "curve")}
        if trial.network != ORIENTED_NAME:
            del arrays["turned"]  # the same, up to rounding, which the row holds
        np.savez_compressed(given.out / f"{stem}.npz", **arrays)
        kept.add(row)
        errors = " ".join(f"{value:.4f}" for value in result["curve"][-1, 1])
        print(f"{trial}: {row['seconds']:.0f} s, validation MAE {errors}", flush=True)

    run_jobs(jobs, setup, training.run, finished, workers=given.workers)


def chosen_epochs(jobs: Sequence[Trial], setup: Any, workers: int, deadline: float) -> int:
    """Measure the first trainings side by side, and choose epochs that end before a time.

    All trainings get the same number, so that every network has the same budget and every
    schedule comes to its end.
    """
    found: list[float] = []

    def measured(trial: Trial, seconds: float) -> None:
        print(f"{trial}: {seconds:.2f} s an epoch", flush=True)
        found.append(seconds)

    start = time.time()
    timed = partial(training.seconds_an_epoch, lasting=LASTING)
    first = list(jobs[: max(1, workers)])
    run_jobs(first, setup, timed, measured, workers=workers)
    if not found:
        raise InputError("minutes: no training could be measured")
    preparing = max(0.0, time.time() - start - LASTING * (1 if workers else len(first)))
    rounds = math.ceil(len(jobs) / max(1, workers))
    left = deadline - time.time() - preparing - ENDING
    return max(1, int(left / (rounds * SPARE * max(found))))
