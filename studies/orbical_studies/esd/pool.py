"""All configurations of the study, in this process or in several; each result written at once."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from ..workers import Setup, run_jobs
from . import packing, trial
from .batches import Split
from .results import Results
from .settings import BATCH, Configuration

Splits = dict[str, Split]


def load(folder: Path | None, name: str, device: torch.device, count: int | None = None) -> Splits:
    """Unpack one data set onto a device.

    Args:
        folder: with `NAME.npz`, or None for the public files.
        name: of the data set.
        device: where to.
        count: only the first so many images of each split.
    """
    return {
        split: Split(pixels[:count].to(device), labels[:count].to(device))
        for split, (pixels, labels) in packing.unpack(folder, name).items()
    }


def run_all(
    configurations: Sequence[Configuration],
    results: Results,
    splits: dict[str, Splits],
    *,
    device: torch.device,
    workers: int,
    deadline: float,
    say: Callable[[str], None] = print,
) -> None:
    """Train every configuration that the results do not have yet, and write each as it ends.

    Args:
        configurations: in the order in which to start them.
        results: where rows go.
        splits: of every data set in use, on the device.
        device: where to train.
        workers: processes; 0 trains in this one.
        deadline: `time.time()` after which no training may still run; a worker starts one only
            if its longest so far would end before.
        say: tells a person of progress.
    """
    done = results.keys
    todo = [c for c in configurations if c.key() not in done]
    say(f"{len(todo)} configurations to train, {len(configurations) - len(todo)} already there")

    def finished(row: dict[str, Any], logits: torch.Tensor) -> None:
        results.add(row)
        if row["seed"] == 0 and row["batch"] == BATCH:
            results.keep_outputs(row["key"], logits, splits[row["data"]]["test"].labels.cpu())
        test = row["test"]
        say(
            f"{row['key']}: accuracy {test['accuracy']:.4f}, ECE {test['ece']:.4f}, "
            f"after scaling {row['test_ts']['ece']:.4f}; {row['seconds']:.1f} s"
        )

    with tempfile.TemporaryDirectory() as folder:
        setup: Setup = splits.copy
        if workers:  # other processes read the images from files
            _to_folder(Path(folder), splits)
            setup = partial(_from_folder, Path(folder), [*splits], device)
        run_jobs(
            [_Named(c) for c in todo],
            setup,
            partial(_train, device),
            lambda _, result: finished(*result),
            workers=workers,
            deadline=deadline,
            say=say,
        )


class _Named(NamedTuple):
    """A configuration that prints as its key."""

    configuration: Configuration

    def __str__(self) -> str:
        return self.configuration.key()


def _train(
    device: torch.device, splits: dict[str, Splits], job: _Named
) -> tuple[dict[str, Any], torch.Tensor]:
    return trial.run(job.configuration, splits[job.configuration.data], device)


def _to_folder(folder: Path, splits: dict[str, Splits]) -> None:
    for name, both in splits.items():
        for split, content in both.items():
            np.save(folder / f"{name}-{split}-pixels.npy", content.pixels.cpu().numpy())
            np.save(folder / f"{name}-{split}-labels.npy", content.labels.cpu().numpy())


def _from_folder(folder: Path, names: list[str], device: torch.device) -> dict[str, Splits]:
    def part(name: str, split: str, kind: str) -> torch.Tensor:
        return torch.from_numpy(np.load(folder / f"{name}-{split}-{kind}.npy")).to(device)

    return {
        name: {
            split: Split(part(name, split, "pixels"), part(name, split, "labels"))
            for split in packing.SPLITS
        }
        for name in names
    }
