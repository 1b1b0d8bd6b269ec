"""Many small trainings on one device: worker processes that share a queue of configurations.

Small networks keep a GPU busy only a part of the time, the rest going into launching kernels from
Python; several processes fill the gaps. The parent alone writes results, each as it arrives.
"""

from __future__ import annotations

import queue
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

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

    if not workers:
        longest = 0.0
        for configuration in todo:
            if time.time() + longest > deadline:
                say("no time is left for another configuration")
                return
            row, logits = trial.run(configuration, splits[configuration.data], device)
            longest = max(longest, row["seconds"])
            finished(row, logits)
        return
    _in_processes(todo, splits, device, min(workers, len(todo)), deadline, finished, say)


def _in_processes(
    todo: Sequence[Configuration],
    splits: dict[str, Splits],
    device: torch.device,
    workers: int,
    deadline: float,
    finished: Callable[[dict[str, Any], torch.Tensor], None],
    say: Callable[[str], None],
) -> None:
    context = torch.multiprocessing.get_context("spawn")
    tasks, answers = context.Queue(), context.Queue()
    for configuration in todo:
        tasks.put(configuration)
    with tempfile.TemporaryDirectory() as folder:
        for name, both in splits.items():
            for split, content in both.items():
                np.save(Path(folder) / f"{name}-{split}-pixels.npy", content.pixels.cpu().numpy())
                np.save(Path(folder) / f"{name}-{split}-labels.npy", content.labels.cpu().numpy())
        processes = [
            context.Process(
                target=_work, args=(tasks, answers, folder, str(device), deadline), daemon=True
            )
            for _ in range(workers)
        ]
        for process in processes:
            process.start()
        while any(process.is_alive() for process in processes) or not answers.empty():
            try:
                kind, *content = answers.get(timeout=1.0)
            except queue.Empty:
                continue
            if kind == "row":
                row, logits = content
                finished(row, torch.from_numpy(logits))
            else:
                say(content[0])
        for process in processes:
            process.join()
            if process.exitcode:
                say(f"a worker ended with status {process.exitcode}")


def _work(tasks: Any, answers: Any, folder: str, device_name: str, deadline: float) -> None:
    torch.set_num_threads(1)
    device = torch.device(device_name)
    splits: dict[str, Splits] = {}
    longest = 0.0
    while True:
        try:
            configuration = tasks.get(timeout=1.0)
        except queue.Empty:
            return
        if time.time() + longest > deadline:
            answers.put(("said", f"no time is left for {configuration.key()}"))
            continue
        try:
            if configuration.data not in splits:
                splits[configuration.data] = _from_folder(Path(folder), configuration.data, device)
            row, logits = trial.run(configuration, splits[configuration.data], device)
        except Exception:  # one configuration's failure must not end the others
            answers.put(("said", f"{configuration.key()} failed:\n{traceback.format_exc()}"))
            continue
        longest = max(longest, row["seconds"])
        answers.put(("row", row, logits.numpy()))


def _from_folder(folder: Path, name: str, device: torch.device) -> Splits:
    return {
        split: Split(
            *(
                torch.from_numpy(np.load(folder / f"{name}-{split}-{part}.npy")).to(device)
                for part in ("pixels", "labels")
            )
        )
        for split in packing.SPLITS
    }
