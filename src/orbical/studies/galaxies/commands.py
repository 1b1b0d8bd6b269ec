"""The steps of the galaxy study on the command line."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..workers import run_jobs
from . import packing, training
from .settings import EPOCHS, SEEDS, Trial, trials


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one step: `pack`, `train` or `report`."""
    parser = argparse.ArgumentParser(prog="orbical study galaxies", description=__doc__)
    steps = parser.add_subparsers(dest="step", required=True)
    pack = steps.add_parser("pack", help="write the galaxies of both catalogues as one small file")
    pack.add_argument("folder", type=Path, help="where galaxies.npz goes")
    train = steps.add_parser("train", help="train every network, one result each, written at once")
    train.add_argument("--pack", type=Path, required=True, help="the packed file")
    train.add_argument("--out", type=Path, required=True, help="folder of the results")
    train.add_argument("--workers", type=int, default=0, help="processes; 0 trains in this one")
    train.add_argument("--minutes", type=float, default=1e9, help="start nothing that ends later")
    train.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS), help="which seeds")
    train.add_argument("--epochs", type=int, default=EPOCHS, help="epochs of each training")
    train.add_argument("--only", default="", help="only trainings whose name contains this")
    given = parser.parse_args(arguments)
    if given.step == "pack":
        print(packing.pack(given.folder))
        return
    train_all(given)


def train_all(given: argparse.Namespace) -> None:
    """Train what the results do not have yet."""
    given.out.mkdir(parents=True, exist_ok=True)
    lines = given.out / "trials.jsonl"
    done = (
        {json.loads(line)["name"] for line in lines.read_text().splitlines()}
        if lines.exists()
        else set()
    )
    jobs = [
        trial
        for trial in trials(tuple(given.seeds), given.epochs)
        if str(trial) not in done and given.only in str(trial)
    ]
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    print(f"{len(jobs)} networks to train on {device}, {len(done)} already there", flush=True)

    def finished(trial: Trial, result: dict[str, Any]) -> None:
        row = {"name": str(trial), **vars(trial), **result["scores"]}
        stem = str(trial).replace("/", "-").replace(" ", "").replace(":", "")
        np.savez(given.out / f"{stem}.npz", logits=result["logits"], curves=result["curves"])
        with lines.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{trial}: accuracy {row['accuracy']:.4f}, ECE {row['ece']:.4f}", flush=True)

    run_jobs(
        jobs,
        partial(packing.unpack, given.pack, device),
        training.run,
        finished,
        workers=given.workers,
        deadline=time.time() + 60 * given.minutes,
    )
