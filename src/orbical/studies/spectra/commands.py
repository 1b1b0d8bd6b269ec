"""The steps of the spectra study on the command line."""

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

from ..command_line import one_line_errors, say_written
from ..trials import Trials
from ..workers import run_jobs
from . import packing, training
from .settings import EPOCHS, PAGE, SEEDS, Trial, trials

STARTING = 40.0
"""Seconds kept back from the time given, for the start of the processes and the last answers."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one step: `pack`, `train` or `report`."""
    parser = argparse.ArgumentParser(prog="orbical study spectra", description=__doc__)
    steps = parser.add_subparsers(dest="step", required=True)
    pack = steps.add_parser("pack", help="label molecules, and write them as one small file")
    pack.add_argument("folder", type=Path, help="where spectra.npz goes")
    pack.add_argument("--cache", type=Path, help="the folder of the data sets' own cache")
    pack.add_argument("--minutes", type=float, default=1e9, help="label no longer than this")
    pack.add_argument("--count", type=int, help="label at most so many molecules")
    train = steps.add_parser("train", help="train every network, one result each, written at once")
    train.add_argument("--pack", type=Path, required=True, help="the packed file")
    train.add_argument("--out", type=Path, required=True, help="folder of the results")
    train.add_argument("--workers", type=int, default=0, help="processes; 0 trains in this one")
    train.add_argument("--minutes", type=float, default=1e9, help="end every training before this")
    train.add_argument("--epochs", type=int, default=EPOCHS, help="of each training")
    train.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS), help="which seeds")
    train.add_argument("--only", default="", help="only trainings whose name contains this")
    report = steps.add_parser("report", help="write tables, figures and the page")
    report.add_argument("--pack", type=Path, help="the packed file; without it, from CSV files")
    report.add_argument("--out", type=Path, help="folder of the results")
    report.add_argument("--page", type=Path, default=PAGE, help=f"default {PAGE}")
    given = parser.parse_args(arguments)
    with one_line_errors(parser):
        if given.step == "pack":
            say_written([packing.pack(given.folder, given.cache, given.minutes, given.count)])
        elif given.step == "train":
            train_all(given)
        else:
            from .page import write

            say_written(write(given.pack, given.out, given.page))


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
        np.savez_compressed(
            given.out / f"{trial.stem}.npz", test=result["test"], curve=result["curve"]
        )
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
