"""Train the many networks of a study, resuming where a run was interrupted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn

from orbical.errors import InputError
from orbical.zoo.layout import memory_format

from .packs import read_pack
from .paths import existing_file
from .settings import TrainingSettings
from .workers import run_jobs

FILE = "trials.jsonl"
Trial = TypeVar("Trial")
Network = TypeVar("Network", bound=nn.Module)
Trained = tuple[Mapping[str, Any], Mapping[str, np.ndarray]]
Plan = Callable[[Sequence[Mapping[str, Any]]], Iterable[Any]]


def train(
    trials: Iterable[Any],
    settings: TrainingSettings,
    work: Path,
    setup: Callable[[], Any],
    run: Callable[[Any, Any], Trained],
) -> None:
    """Run every trial that is not finished yet, on the GPU if there is one.

    Args:
        trials: Frozen dataclasses whose text is their name, in the order to start them.
        settings: How many processes and minutes, and which trials.
        work: Folder of the results: a line a trial in `trials.jsonl`, and its arrays in an `.npz`
            file (see `arrays_file`).
        setup: Called once in each process, such as to load the packed data.
        run: `run(loaded, trial)` returns the scores and the arrays of a trial. Both functions must
            be importable from a module (or be partials of such).
    """
    every = list(trials)
    train_plan(lambda rows: every, settings, work, setup, run)


def train_plan(
    plan: Plan,
    settings: TrainingSettings,
    work: Path,
    setup: Callable[[], Any],
    run: Callable[[Any, Any], Trained],
) -> None:
    """Run the trials of a plan: of the finished ones it makes those that can be run now.

    Args:
        plan: `plan(rows)` lists trials, in the order to start them, from a row of each finished one
            (see `trials.jsonl`). Asked after every training.
        settings: As in `train`, with the other arguments.
        work: Folder of the results.
        setup: Called once in each process.
        run: Returns the scores and the arrays of a trial.
    """
    alone = partial(_alone, run)
    train_stacks(lambda rows: ([one] for one in plan(rows)), settings, work, setup, alone)


def _alone(run: Callable[[Any, Any], Trained], loaded: Any, trials: Sequence[Any]) -> list[Trained]:
    return [run(loaded, trial) for trial in trials]


def train_stacks(
    plan: Plan,
    settings: TrainingSettings,
    work: Path,
    setup: Callable[[], Any],
    run: Callable[[Any, Sequence[Any]], Sequence[Trained]],
) -> None:
    """Run stacks of trials, such as small networks that train as one; the rest is as in `train`.

    Args:
        plan: As in `train_plan`, of sequences of trials that run together. Those that are finished
            are left out of their stack.
        settings: How many processes and minutes, and which trials.
        work: Folder of the results.
        setup: Called once in each process.
        run: `run(loaded, trials)` returns the scores and the arrays of each trial of a stack.
    """
    kept = Trials(work)

    def unfinished() -> list[Stack]:
        stacks = (Stack(kept.waiting(stack, settings.only)) for stack in plan(kept.rows))
        return [stack for stack in stacks if stack]

    waiting = sum(map(len, unfinished()))
    print(f"{waiting} trainings to run, {len(kept.rows)} finished before", flush=True)

    def finished(stack: Stack, trained: Sequence[Trained]) -> None:
        for trial, (scores, arrays) in zip(stack, trained, strict=True):
            if arrays:
                np.savez_compressed(arrays_file(work, trial), **dict(arrays))  # type: ignore[arg-type]
            kept.add({"name": str(trial), **vars(trial), **scores})
            shown = ", ".join(f"{k} {v:.4g}" for k, v in scores.items() if isinstance(v, float))
            print(f"{trial}: {shown}", flush=True)

    run_jobs(unfinished, setup, run, finished, workers=settings.workers, deadline=settings.end)


class Stack(tuple[Any, ...]):
    """Trials that run together; its text names them.

    >>> str(Stack(["seed 0", "seed 1"]))
    'seed 0, seed 1'
    """

    __slots__ = ()

    def __str__(self) -> str:
        return ", ".join(map(str, self))


class Trials:
    """The finished trainings of a folder, a line of JSON each: a run goes on from there.

    A line that a kill cut off is as if it had never been written.

    Args:
        folder: of the results; made where absent.

    Attributes:
        rows: one a training.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Trials(Path(folder)).add({"name": "plain", "accuracy": 0.9})
    ...     Trials(Path(folder)).waiting(["plain", "turned", "other"], only="t")
    ['turned', 'other']
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / FILE
        written = self.path.read_text() if self.path.is_file() else ""
        if not written.endswith("\n") and written:
            self.path.write_text(written[: written.rfind("\n") + 1])
        self.rows = read_lines(self.path) if written else []

    def waiting(self, trials: Iterable[Trial], only: str = "") -> list[Trial]:
        """Choose the trials that are not finished, of those whose name contains `only`."""
        done = {row["name"] for row in self.rows}
        return [trial for trial in trials if str(trial) not in done and only in str(trial)]

    def add(self, row: dict[str, Any]) -> None:
        """Write the results of one training."""
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        self.rows.append(row)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read a file of lines of JSON; a last one that a kill cut off is left out.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "results.jsonl"
    ...     _ = path.write_text('{"name": "plain"}\\n{"name": "tur')
    ...     read_lines(path)
    [{'name': 'plain'}]
    """
    *whole, _ = existing_file(path, "work", "run the step 'train' first").read_text().split("\n")
    try:
        return [json.loads(line) for line in whole]
    except json.JSONDecodeError as broken:
        raise InputError(
            "work", f"lines of JSON in {str(path)!r}", repr(broken.doc[:80])
        ) from broken


def read_rows(work: Path) -> list[dict[str, Any]]:
    """Read a row of each training that `train` ran, its name and its scores."""
    return read_lines(work / FILE)


def collected(*folders: Path) -> list[dict[str, Any]]:
    """Read the rows of those folders that have any, for a table: the name is called `key`.

    Refused if none has any.
    """
    trained = [work for work in folders if (work / FILE).is_file()] or folders[:1]
    rows = (row for work in trained for row in read_rows(work))
    return [{"key": row.pop("name"), **row} for row in rows]


def read_arrays(work: Path, trial: Any) -> dict[str, np.ndarray]:
    """Read the arrays of a trial."""
    return read_pack(arrays_file(work, trial), "train")


def read_trained(
    trials: Iterable[Any], work: Path
) -> Iterator[tuple[dict[str, Any], dict[str, np.ndarray]]]:
    """Read the line and the arrays of each trial that `train` ran; refuse if one is missing."""
    rows = {row["name"]: row for row in read_rows(work)}
    for trial in trials:
        if str(trial) not in rows:
            raise InputError(
                "results",
                f"the training '{trial}' in {str(work)!r}",
                "none",
                remedy="run the step 'train' again",
            )
        yield rows[str(trial)], read_arrays(work, trial)


def finished(trials: Iterable[Any], work: Path) -> list[Any]:
    """Return the trials that `train` ran; refuse if it ran none of them."""
    trials = list(trials)
    names = {row["name"] for row in read_rows(work)}
    done = [trial for trial in trials if str(trial) in names]
    if not done:
        raise InputError(
            "results",
            f"a training such as '{trials[0]}' in {str(work)!r}",
            "none",
            remedy="run the step 'train' first",
        )
    return done


def arrays_file(work: Path, trial: Any) -> Path:
    """Return where the arrays of a trial are stored.

    >>> arrays_file(Path("work"), "efigi/cyclic:4/seed 0").name
    'efigi-cyclic4-seed0.npz'
    """
    return work / (str(trial).replace("/", "-").replace(" ", "").replace(":", "") + ".npz")


def device() -> torch.device:
    """Return the GPU if there is one, and the processor otherwise."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def placed(network: Network, place: torch.device) -> Network:
    """Move a network to a device, in its layout."""
    return network.to(place).to(memory_format=memory_format(place))  # type: ignore[call-overload]
