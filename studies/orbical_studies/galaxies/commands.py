"""Group order and blur on galaxies: what a correct symmetry does to accuracy and calibration.

    orbical study galaxies                       # all of it, in the order of the steps
    orbical study galaxies --data generated      # without the catalogues: generated galaxies alone
    orbical study galaxies coverage              # how often its intervals hold the truth
    orbical study galaxies report                # the page again, from its CSV files alone

282 trainings take a quarter of an hour of a large GPU and days of a laptop; --orders, --seeds,
--epochs and --only choose fewer. What is trained already is not trained again. On another machine,
with torch alone: `pack` here, `train` there, `collect` the answers here.

Section 4.7.2, appendices D and F and Figs 4, 11 to 13 of Berman et al., "On Uncertainty Calibration
for Equivariant Functions".
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
from ..pages import write_csv
from ..trials import Trials
from ..workers import run_jobs
from . import packing, training
from .settings import DATA, EPOCHS, ORDERS, SEEDS, Trial, trials

PAGE = Path("docs/studies/galaxies.md")
RESULTS = Path("results/galaxies")
STEPS = ("all", "pack", "train", "collect", "coverage", "report")


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options, and run the study or a step of it."""
    parser = study_parser("galaxies", __doc__, PAGE, STEPS)
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA), help="default: all")
    parser.add_argument("--out", type=Path, default=RESULTS, help=f"answers; default {RESULTS}")
    parser.add_argument("--pack", type=Path, help="packed images; default OUT/galaxies.npz")
    parser.add_argument("--workers", type=int, default=0, help="processes; 0 trains in this one")
    parser.add_argument("--minutes", type=float, default=1e9, help="start nothing that ends later")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS), help="which seeds")
    parser.add_argument("--orders", type=int, nargs="+", default=list(ORDERS), help="which n")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="epochs of each training")
    parser.add_argument("--only", default="", help="only trainings whose name contains this")
    given = parser.parse_args(arguments)
    with one_line_errors(parser):
        _checked(given)
        given.pack = given.pack or given.out / "galaxies.npz"
        run(given)


def run(given: argparse.Namespace) -> None:
    """Run the steps that are asked for."""
    wanted = STEPS[1:] if given.step == "all" else (given.step,)
    if "pack" in wanted and not (given.step == "all" and given.pack.is_file()):
        say_written([packing.pack(given.pack, given.data)])
    if "train" in wanted:
        train_all(given)
    if "collect" in wanted:
        from .collecting import collect

        say_written(collect(given.out, given.pack, given.page.with_suffix("")))
    if "coverage" in wanted:
        from .coverage import coverage_rows

        path = given.page.with_suffix("") / "coverage.csv"
        say_written([write_csv(path, coverage_rows())])
    if "report" in wanted:
        from .page import report

        say_written(report(given.page))


def _checked(given: argparse.Namespace) -> None:
    for name, values, least in (
        *(("orders", given.orders, 1), ("seeds", given.seeds, 0)),
        *(("epochs", [given.epochs], 1), ("workers", [given.workers], 0)),
    ):
        if min(values) < least:
            raise InputError(f"{name}: {min(values)} given, expected at least {least}")


def train_all(given: argparse.Namespace) -> None:
    """Train what is packed and what the results do not have yet."""
    data = [name for name in packing.packed(given.pack) if name in given.data]
    kept = Trials(given.out)
    every = trials(given.seeds, given.epochs, data, given.orders)
    jobs = kept.waiting(every, given.only)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    print(f"{len(jobs)} networks to train on {device}, {len(kept.done)} already there", flush=True)

    def finished(trial: Trial, result: dict[str, Any]) -> None:
        row = {"name": str(trial), **vars(trial), **result["scores"]}
        np.savez(given.out / trial.file, logits=result["logits"], curves=result["curves"])
        kept.add(row)
        print(f"{trial}: accuracy {row['accuracy']:.4f}, ECE {row['ece']:.4f}", flush=True)

    run_jobs(
        jobs,
        partial(packing.unpack, given.pack, device),
        training.run,
        finished,
        workers=given.workers,
        deadline=time.time() + 60 * given.minutes,
    )
