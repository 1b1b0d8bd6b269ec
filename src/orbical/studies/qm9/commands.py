"""The steps of the molecule study on the command line."""

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

from ..command_line import one_line_errors, say_written
from ..pages import write_csv
from ..trials import Trials
from ..workers import run_jobs
from . import packing, training
from .settings import BATCH, EPOCHS, ORIENTED_NAME, SEEDS, Trial, trials

PAGE = Path("docs/studies/qm9.md")
LASTING = 10.0
"""Seconds for which the speed is measured before the epochs are chosen."""

SPARE = 1.06
"""How much longer an epoch may take than it did when it was measured."""

ENDING = 10.0
"""Seconds for the start of the processes beyond what was measured, the test and the writing."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one step: `pack`, `train` or `report`."""
    parser = argparse.ArgumentParser(prog="orbical study qm9", description=__doc__)
    steps = parser.add_subparsers(dest="step", required=True)
    pack = steps.add_parser("pack", help="write QM9 as one small file")
    pack.add_argument("folder", type=Path, help="where qm9.npz goes")
    pack.add_argument("--cache", type=Path, help="the folder of the data set's own cache")
    pack.add_argument("--count", type=int, help="the first so many molecules of each split")
    train = steps.add_parser("train", help="train every network, one result each, written at once")
    train.add_argument("--pack", type=Path, required=True, help="the packed file")
    train.add_argument("--out", type=Path, required=True, help="folder of the results")
    train.add_argument("--workers", type=int, default=0, help="processes; 0 trains in this one")
    train.add_argument("--minutes", type=float, help="measure the speed, and choose the epochs")
    train.add_argument(
        "--epochs", type=int, help=f"default {EPOCHS}; with --minutes at most so many"
    )
    train.add_argument("--batch", type=int, default=BATCH, help="molecules a step")
    train.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS), help="which seeds")
    train.add_argument("--only", default="", help="only trainings whose name contains this")
    report = steps.add_parser("report", help="measure the results, and write the page")
    report.add_argument("--pack", type=Path, help="the packed file, to measure anew")
    report.add_argument("--results", type=Path, help="folder of the results, to measure anew")
    report.add_argument("--page", type=Path, default=PAGE, help=f"default {PAGE}")
    given = parser.parse_args(arguments)
    with one_line_errors(parser):
        if given.step == "pack":
            say_written([packing.pack(given.folder, given.cache, given.count)])
        elif given.step == "train":
            train_all(given)
        else:
            report_all(given)


def report_all(given: argparse.Namespace) -> None:
    """Measure results where they are given, and write the page from its CSV files."""
    if (given.pack is None) != (given.results is None):
        raise InputError("pack, results: got one of them, expected both or neither")
    if given.pack is not None:
        from .collecting import collect

        for name, rows in collect(given.pack, given.results).items():
            write_csv(given.page.with_suffix("") / f"{name}.csv", rows)
    from .page import report

    say_written(report(given.page))


def train_all(given: argparse.Namespace) -> None:
    """Train what the results do not have yet."""
    started = time.time()
    for name in ("epochs", "batch"):
        if (value := getattr(given, name)) is not None and value < 1:
            raise InputError(f"{name}: got {value}, expected at least 1")
    kept = Trials(given.out)
    every = trials(tuple(given.seeds), given.epochs or EPOCHS, given.batch)
    jobs = kept.waiting(every, given.only)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    print(f"{len(jobs)} networks to train on {device}, {len(kept.done)} already there", flush=True)
    setup = partial(packing.unpack, given.pack, device)
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
