"""The point-cloud study's heavy part: train networks, and ask them along whole orbits.

It needs torch, NumPy and SciPy only (and e3nn for the invariant network), so that it can run where
an accelerator is and nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from orbical.actions import Points, Trivial
from orbical.datasets.point_clouds import PointClouds, modelnet10, sweethome3d
from orbical.errors import InputError, MissingExtra
from orbical.groups import Group, parse
from orbical.predictors import as_predictor
from orbical.scanning.sweep import Sweep
from orbical.tasks import Classification
from orbical.zoo.pointnet import NAMES as NETWORKS
from orbical.zoo.pointnet_training import make, train

from ..workers import run_jobs
from .settings import DATA_SETS, SPLIT_SEED, TEST_SHARE, Settings


@dataclass(frozen=True)
class Job:
    """One network to train on one data set."""

    data_set: str
    network: str
    seed: int

    def __str__(self) -> str:
        return f"{self.network} on {self.data_set}, seed {self.seed}"


def read(name: str) -> PointClouds:
    """Read one data set from its public files."""
    return sweethome3d() if name == "sweethome3d" else modelnet10()


def pack(folder: Path) -> list[Path]:
    """Write both data sets as small files, for a machine that has none of the public ones."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name in DATA_SETS:
        clouds = read(name)
        fields = clouds.points if isinstance(clouds.points, dict) else {"pos": clouds.points}
        arrays = {key: leaf.numpy() for key, leaf in fields.items()}
        arrays["pos"] = arrays["pos"].astype(np.float16)
        path = folder / f"{name}.npz"
        np.savez_compressed(
            path, labels=clouds.labels.numpy(), classes=np.array(clouds.classes), **arrays
        )
        files.append(path)
    return files


def unpack(folder: Path | None, name: str) -> PointClouds:
    """Read what `pack` wrote, or the public files themselves where no folder is given."""
    if folder is None:
        return read(name)
    path = folder / f"{name}.npz"
    if not path.is_file():
        raise InputError(
            f"data: there is no file {path.name!r} in {str(folder)!r}; make it with "
            f"`orbical study point-clouds pack --data {folder}`"
        )
    with np.load(path, allow_pickle=False) as file:
        pos = torch.from_numpy(file["pos"].astype(np.float32))
        labels, classes = torch.from_numpy(file["labels"]), tuple(file["classes"].tolist())
        fields = {"pos": pos, "mask": torch.from_numpy(file["mask"])} if "mask" in file else pos
    return PointClouds(fields, labels, classes)


def split(labels: Tensor, seed: int = SPLIT_SEED) -> tuple[Tensor, Tensor]:
    """Split samples into training and test rows, three tenths of every class to test.

    >>> train_rows, test_rows = split(torch.arange(20) % 2)
    >>> len(train_rows), len(test_rows), (torch.arange(20) % 2)[test_rows].tolist()
    (14, 6, [0, 0, 0, 1, 1, 1])
    """
    generator = torch.Generator().manual_seed(seed)
    training, test = [], []
    for label in labels.unique():
        rows = torch.nonzero(labels == label)[:, 0]
        rows = rows[torch.randperm(len(rows), generator=generator)]
        count = round(TEST_SHARE * len(rows))
        test.append(rows[:count])
        training.append(rows[count:])
    return torch.cat(training), torch.cat(test)


def rows_of(clouds: Any, rows: Tensor, points: int | None = None) -> Any:
    """Take some clouds, and at most so many points of each."""
    if isinstance(clouds, dict):
        return {key: leaf[rows][:, :points] for key, leaf in clouds.items()}
    return clouds[rows][:, :points]


def tested_rows(labels: Tensor, settings: Settings) -> Tensor:
    """The rows of the test clouds: at most so many of a class."""
    rows = split(labels)[1]
    return torch.cat([rows[labels[rows] == label][: settings.most] for label in labels.unique()])


def task_of(clouds: Any) -> Classification:
    """The task: classification of points, with a mask where there is one."""
    padded = {"pos": Points(), "mask": Trivial()}
    return Classification(input=padded if isinstance(clouds, dict) else Points())


def answers(
    net: torch.nn.Module, clouds: Any, labels: Tensor, group: Group, device: str, batch: int
) -> dict[str, NDArray]:
    """Ask a network along the orbits of all clouds, sample first.

    Returns:
        `score` and `confidence` (half precision) and `predicted`, each `[sample, element]`.
    """
    predictor = as_predictor(net)
    sweep = Sweep({"net": predictor}, group, task_of(clouds), torch.device(device), batch)
    found: dict[str, list[NDArray]] = {"score": [], "confidence": [], "predicted": []}
    with predictor.ready(torch.device(device)):
        for rows in torch.arange(len(labels)).split(16):
            unit = sweep.run(rows_of(clouds, rows), labels[rows], ["net"])
            unit.wait(group, int(rows[0]))
            for name, parts in found.items():
                parts.append(unit.summaries["net"][name].numpy())
    joined = {name: np.concatenate(parts) for name, parts in found.items()}
    return {
        "score": joined["score"].astype(np.float16),
        "confidence": joined["confidence"].astype(np.float16),
        "predicted": joined["predicted"].astype(np.uint8),
    }


def run_job(job: Job, data: Path | None, settings: Settings, device: str) -> dict[str, NDArray]:
    """Train one network, and ask it along all orbits.

    Returns:
        arrays named `SEED/GROUP/VARIABLE`, and `SEED/seconds` of training and of asking; the
        score of each place for the first seed only.
    """
    clouds = unpack(data, job.data_set)
    training = split(clouds.labels)[0]
    net = make(job.network, len(clouds.classes), job.seed, settings.widths).to(device)
    started = time.perf_counter()
    train(
        net,
        rows_of(clouds.points, training),
        clouds.labels[training],
        job.network == "augmented",
        settings.steps,
        settings.drawn,
        job.seed,
    )
    trained = time.perf_counter()
    rows = tested_rows(clouds.labels, settings)
    inputs, labels = rows_of(clouds.points, rows, settings.points), clouds.labels[rows]
    arrays: dict[str, NDArray] = {}
    for name, text in settings.groups:
        found = answers(net, inputs, labels, parse(text), device, settings.batch)
        kept = [key for key in found if key != "score" or job.seed == 0]
        arrays |= {f"{job.seed}/{name}/{key}": found[key] for key in kept}
    seconds = np.array([trained - started, time.perf_counter() - trained])
    return arrays | {f"{job.seed}/seconds": seconds}


def run(
    out: Path,
    data: Path | None,
    settings: Settings,
    device: str = "cpu",
    networks: Sequence[str] = NETWORKS,
    data_sets: Sequence[str] = DATA_SETS,
    workers: int = 0,
) -> list[Path]:
    """Train all networks, and write one file of answers for each data set and kind of network.

    A network that needs a package that is not there is left out, and said to be.

    Args:
        out: the folder for the answers.
        data: packed data sets; None reads the public files.
        settings: what is trained and asked.
        device: where.
        networks: kinds of network.
        data_sets: names of data sets.
        workers: processes; 0 works in this one.
    """
    out.mkdir(parents=True, exist_ok=True)
    for name in data_sets:
        unpack(data, name)  # what is absent is said before anything is trained
    jobs = [
        Job(data_set, network, seed)
        for network in networks
        for data_set in data_sets
        for seed in range(settings.seeds)
    ]
    collected: dict[tuple[str, str], dict[str, NDArray]] = {}
    written: list[Path] = []
    ended: list[Job] = []

    def finished(job: Job, arrays: dict[str, NDArray] | None) -> None:
        ended.append(job)
        if arrays is None:
            return
        mine = collected.setdefault((job.data_set, job.network), {})
        mine |= arrays
        train_seconds, ask_seconds = arrays[f"{job.seed}/seconds"]
        print(f"{job}: trained {train_seconds:.0f} s, asked {ask_seconds:.0f} s", flush=True)
        if all(f"{seed}/seconds" in mine for seed in range(settings.seeds)):
            written.append(_written(out, job, mine, data, settings))

    run_jobs(
        jobs, partial(_Orders, data, settings, device), _run_or_none, finished, workers=workers
    )
    lacking = [str(job) for job in jobs if job not in ended]
    if lacking:
        raise InputError(f"train: {', '.join(lacking)} did not end well; see above")
    return written


class _Orders(NamedTuple):
    """What every job is given."""

    data: Path | None
    settings: Settings
    device: str


def _run_or_none(orders: _Orders, job: Job) -> dict[str, NDArray] | None:
    try:
        return run_job(job, *orders)
    except MissingExtra as error:
        print(f"{job}: left out: {error}", flush=True)
        return None


def _written(
    out: Path, job: Job, arrays: dict[str, NDArray], data: Path | None, settings: Settings
) -> Path:
    clouds = unpack(data, job.data_set)
    rows = tested_rows(clouds.labels, settings)
    path = out / f"{job.data_set}-{job.network}.npz"
    np.savez_compressed(
        path,
        rows=rows.numpy(),
        labels=clouds.labels[rows].numpy(),
        classes=np.array(clouds.classes),
        trained=np.array([len(split(clouds.labels)[0]), settings.steps, settings.seeds]),
        groups=np.array([f"{name}={text}" for name, text in settings.groups]),
        **arrays,  # type: ignore[arg-type]
    )
    return path
