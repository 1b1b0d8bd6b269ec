"""Train point networks, and evaluate them along whole orbits; needs torch, NumPy and SciPy only."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from orbical.datasets import PointClouds
from orbical.groups import Group, parse

from ..data import modelnet10, sweethome3d
from ..framework import Results, TrainingSettings, option
from ..framework.packs import arrays_under, read_pack, write_pack
from ..framework.training import device
from ..framework.training import train as train_all
from ..networks import parameters_of
from ..networks.point_clouds import PointAttention
from ..zoo_training import build, point_networks

NETWORKS = ("plain", "augmented", "attention", "attention-augmented", "invariant")
WHOLE = 0  # the seed whose weights and probabilities of the true class are kept
TEST_SHARE, SPLIT_SEED = 0.3, 0
STEPS_OF_255 = 255
Halves = tuple[PointClouds, PointClouds]


def split(clouds: PointClouds) -> Halves:
    """Split clouds into training and test clouds, three tenths of every class to test.

    Example:
        >>> labels = torch.arange(20) % 2
        >>> clouds = PointClouds(torch.zeros(20, 5, 3), labels, ("bed", "chair"))
        >>> [half.labels.bincount().tolist() for half in split(clouds)]
        [[7, 7], [3, 3]]
    """
    generator = torch.Generator().manual_seed(SPLIT_SEED)
    halves: tuple[list[Tensor], list[Tensor]] = [], []
    for label in clouds.labels.unique():
        rows = torch.nonzero(clouds.labels == label)[:, 0]
        rows = rows[torch.randperm(len(rows), generator=generator)]
        count = round(TEST_SHARE * len(rows))
        halves[0].append(rows[count:])
        halves[1].append(rows[:count])
    train, test = (
        PointClouds(clouds.points[rows], clouds.labels[rows], clouds.classes)
        for rows in map(torch.cat, halves)
    )
    return train, test


def _sweethome3d_halves() -> Halves:
    """Return the training and the test clouds of Sweet Home 3D."""
    return split(sweethome3d())


SOURCES = {"modelnet10": modelnet10, "sweethome3d": _sweethome3d_halves}
DATA_SETS = tuple(SOURCES)


@dataclass(frozen=True)
class Settings(TrainingSettings):
    """What is trained and evaluated."""

    seeds: int = option(3, "trainings of each network on each data set", least=1)
    steps: int = option(2000, "steps of each training, 64 clouds each", least=1)
    points: int = option(512, "points of a test cloud, and of a cloud at each step", least=1)
    slices: str = option("slices3d:24:13", "rotations about axes in three planes")
    ball: str = option("rotations3d:500", "rotations spread evenly over SO(3)")
    stored: int = 1024  # points of a cloud that are packed
    widths: tuple[int, ...] = (64, 128, 256)
    batch: int = 1024


@dataclass(frozen=True)
class Trial:
    """One network to train on one data set; its text is its name."""

    data: str
    network: str
    seed: int

    def __str__(self) -> str:
        return f"{self.data}/{self.network}/seed {self.seed}"


def trials(settings: Settings) -> Iterator[Trial]:
    """List all trainings, the slowest first."""
    for network in reversed(NETWORKS):
        for data in DATA_SETS:
            yield from (Trial(data, network, seed) for seed in range(settings.seeds))


def first_of_each(clouds: PointClouds, count: int) -> Tensor:
    """Return the places of the first clouds of each class."""
    labels = clouds.labels
    return torch.cat([(labels == label).nonzero()[:count, 0] for label in labels.unique()])


def pack(settings: Settings, results: Results) -> None:
    """Write both data sets as small files."""
    for name, read in SOURCES.items():
        halves = read()
        arrays = {"classes": np.array(halves[0].classes)}
        for part, clouds in zip(("train", "test"), halves, strict=True):
            points = clouds.points[:, : settings.stored].numpy().astype(np.float16)
            arrays |= {f"{part}_points": points, f"{part}_labels": clouds.labels.numpy()}
        write_pack(results.work / f"{name}.npz", arrays)


def unpack(path: Path) -> Halves:
    """Read a data set that `pack` wrote."""
    arrays = read_pack(path)
    train, test = (
        PointClouds(
            torch.from_numpy(arrays[f"{part}_points"].astype(np.float32)),
            torch.from_numpy(arrays[f"{part}_labels"]),
            tuple(arrays["classes"].tolist()),
        )
        for part in ("train", "test")
    )
    return train, test


def train(settings: Settings, results: Results) -> None:
    """Train every network, and evaluate it at every rotation."""
    setup = partial(_load, settings, results.work)
    train_all(trials(settings), settings, results.work, setup, run)


def _load(settings: Settings, work: Path) -> tuple[Settings, dict[str, Halves]]:
    return settings, {name: unpack(work / f"{name}.npz") for name in DATA_SETS}


def fit(network: nn.Module, clouds: PointClouds, trial: Trial, settings: Settings) -> None:
    """Train a network, with rotations if it is an augmented one."""
    rotate, points = trial.network.endswith("augmented"), settings.points
    known = (clouds.points, clouds.labels, rotate, settings.steps, points, trial.seed)
    point_networks.train(network, *known)


def make(trial: Trial, classes: int, widths: tuple[int, ...]) -> nn.Module:
    """Build the untrained network of a trial."""
    if not trial.network.startswith("attention"):
        return point_networks.make(trial.network, classes, trial.seed, widths)
    return build(lambda: PointAttention(classes), trial.seed)


def run(
    loaded: tuple[Settings, dict[str, Halves]], trial: Trial
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Train one network, and evaluate it along all orbits.

    Returns:
        Sizes and seconds, and arrays: the test `labels`, the `classes`, `GROUP/predicted`,
        `GROUP/confidence` and, for the seed `WHOLE`, `slices/score` and `weights/NAME`.
    """
    settings, (training, test) = loaded[0], loaded[1][trial.data]
    network = make(trial, len(test.classes), settings.widths).to(device())
    started = time.perf_counter()
    fit(network, training, trial, settings)
    trained = time.perf_counter()
    arrays = {"labels": test.labels.numpy(), "classes": np.array(test.classes)}
    groups = {"slices": settings.slices, "ball": settings.ball}
    row = {"train": len(training.labels), "steps": settings.steps, **groups}
    row["parameters"] = parameters_of(network)
    points = test.points[:, : settings.points]
    for name, text in groups.items():
        found = evaluate(network, points, test.labels, parse(text), settings.batch)
        row[f"change_{name}"] = float(np.ptp(found["confidence"], 1).max())
        if trial.seed != WHOLE or name != "slices":
            del found["score"]
        arrays |= {f"{name}/{key}": _stored(values) for key, values in found.items()}
    if trial.seed == WHOLE:
        state = network.state_dict().items()
        arrays |= {f"weights/{key}": values.cpu().numpy() for key, values in state}
    row |= {"train_seconds": trained - started, "ask_seconds": time.perf_counter() - trained}
    return row, arrays


def _stored(values: np.ndarray) -> np.ndarray:
    """Store classes as they are, and probabilities as whole numbers of 1/255."""
    if values.dtype.kind == "f":
        values = (STEPS_OF_255 * values).round()
    return values.astype(np.uint8)


def probabilities(stored: np.ndarray) -> np.ndarray:
    """Read stored probabilities."""
    return stored.astype(np.float32) / STEPS_OF_255


def trained_network(
    trial: Trial, arrays: Mapping[str, np.ndarray], settings: Settings
) -> nn.Module:
    """Return the network of a trial of the seed `WHOLE`, in evaluation mode."""
    network = make(trial, len(arrays["classes"]), settings.widths)
    kept = arrays_under(arrays, "weights/")
    network.load_state_dict({name: torch.from_numpy(values) for name, values in kept.items()})
    return network.eval()


@torch.inference_mode()
def evaluate(
    network: nn.Module, clouds: Tensor, labels: Tensor, group: Group, batch: int
) -> dict[str, np.ndarray]:
    """Evaluate a network on every cloud at every rotation.

    Returns:
        `score` (the probability of the true class), `confidence` and `predicted`, each
        `[sample, element]`.
    """
    where = next(network.parameters()).device
    turns = torch.from_numpy(group.linear("space")).float().to(where)
    found: list[tuple[np.ndarray, ...]] = []
    for cloud, label in zip(clouds.to(where), labels.tolist(), strict=True):
        parts = [network(cloud @ some.mT) for some in turns.split(batch)]
        probs = torch.cat(parts).softmax(1).cpu()
        confidence, predicted = probs.max(1)
        found.append((probs[:, label].numpy(), confidence.numpy(), predicted.numpy()))
    names = ("score", "confidence", "predicted")
    return {n: np.stack(parts) for n, parts in zip(names, zip(*found, strict=True), strict=True)}
