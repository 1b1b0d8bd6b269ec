"""Train point networks, and evaluate them along whole orbits; needs torch, NumPy and SciPy only."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from orbical.groups import Group, parse
from orbical.zoo import pointnet, pointnet_training

from ..data import modelnet10, sweethome3d
from ..framework import Results, TrainingSettings, option
from ..framework.packs import read_pack, write_pack
from ..framework.training import device
from ..framework.training import train as train_all

SOURCES = {"sweethome3d": sweethome3d, "modelnet10": modelnet10}
DATA_SETS, NETWORKS = tuple(SOURCES), ("plain", "augmented", "invariant")
TEST_SHARE, SPLIT_SEED = 0.3, 0


@dataclass(frozen=True)
class Settings(TrainingSettings):
    """What is trained and evaluated."""

    seeds: int = option(3, "trainings of each network on each data set", least=1)
    steps: int = option(3000, "steps of each training, 64 clouds each", least=1)
    points: int = option(1024, "largest number of points of a test cloud", least=1)
    most: int = option(64, "largest number of test clouds of a class", least=1)
    slices: str = option("slices3d:72:13", "rotations about axes in three planes")
    ball: str = option("rotations3d:2000", "rotations spread evenly over SO(3)")
    drawn: int = 512  # points drawn of a cloud at each training step
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


@dataclass(frozen=True, eq=False)
class Clouds:
    """Clouds `[n, points, 3]` (or `pos` and `mask` of padded ones), labels and class names."""

    points: Any
    labels: Tensor
    classes: list[str]


def trials(settings: Settings) -> Iterator[Trial]:
    """List all trainings."""
    for data in DATA_SETS:
        for network in NETWORKS:
            yield from (Trial(data, network, seed) for seed in range(settings.seeds))


def pack(settings: Settings, results: Results) -> None:
    """Write both data sets as small files."""
    for name, read in SOURCES.items():
        clouds = read()
        pos, mask = pointnet.fields_of(clouds.points)
        arrays = {"pos": pos.numpy().astype(np.float16), "labels": clouds.labels.numpy()}
        arrays |= {} if mask is None else {"mask": mask.numpy()}
        arrays["classes"] = np.array(clouds.classes)
        write_pack(results.work / f"{name}.npz", arrays)


def unpack(path: Path) -> Clouds:
    """Read a data set that `pack` wrote."""
    arrays = read_pack(path)
    points: Any = torch.from_numpy(arrays["pos"].astype(np.float32))
    if "mask" in arrays:
        points = {"pos": points, "mask": torch.from_numpy(arrays["mask"])}
    return Clouds(points, torch.from_numpy(arrays["labels"]), arrays["classes"].tolist())


def train(settings: Settings, results: Results) -> None:
    """Train every network, and evaluate it at every rotation."""
    setup = partial(_load, settings, results.work)
    train_all(trials(settings), settings, results.work, setup, run)


def _load(settings: Settings, work: Path) -> tuple[Settings, dict[str, Clouds]]:
    return settings, {name: unpack(work / f"{name}.npz") for name in DATA_SETS}


def run(
    loaded: tuple[Settings, dict[str, Clouds]], trial: Trial
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Train one network, and evaluate it along all orbits.

    Returns:
        Sizes and seconds, and arrays: the tested `rows`, their `labels`, the `classes`, and
        `GROUP/predicted`, `GROUP/confidence` and, for the first seed, `GROUP/score`.
    """
    settings, clouds = loaded[0], loaded[1][trial.data]
    chosen, tested = split(clouds.labels, settings.most)
    network = pointnet_training.make(
        trial.network, len(clouds.classes), trial.seed, settings.widths
    )
    started = time.perf_counter()
    pointnet_training.train(
        network.to(device()),
        take(clouds.points, chosen),
        clouds.labels[chosen],
        rotate=trial.network == "augmented",
        steps=settings.steps,
        points=settings.drawn,
        seed=trial.seed,
    )
    trained = time.perf_counter()
    inputs, labels = take(clouds.points, tested, settings.points), clouds.labels[tested]
    arrays = {"rows": tested.numpy(), "labels": labels.numpy(), "classes": np.array(clouds.classes)}
    groups = {"slices": settings.slices, "ball": settings.ball}
    for name, text in groups.items():
        found = evaluate(network, inputs, labels, parse(text), settings.batch)
        if trial.seed:
            del found["score"]
        arrays |= {f"{name}/{key}": values for key, values in found.items()}
    seconds = {
        "train_seconds": trained - started,
        "ask_seconds": time.perf_counter() - trained,
    }
    return {"train": len(chosen), "steps": settings.steps, **groups, **seconds}, arrays


def split(labels: Tensor, most: int | None = None) -> tuple[Tensor, Tensor]:
    """Split samples into training and test rows, three tenths of every class to test.

    Args:
        labels: Of all samples.
        most: Test rows of a class, at most; None for all.

    Example:
        >>> train_rows, test_rows = split(torch.arange(20) % 2)
        >>> len(train_rows), len(test_rows), (torch.arange(20) % 2)[test_rows].tolist()
        (14, 6, [0, 0, 0, 1, 1, 1])
    """
    generator = torch.Generator().manual_seed(SPLIT_SEED)
    training, test = [], []
    for label in labels.unique():
        rows = torch.nonzero(labels == label)[:, 0]
        rows = rows[torch.randperm(len(rows), generator=generator)]
        count = round(TEST_SHARE * len(rows))
        test.append(rows[:count][:most])
        training.append(rows[count:])
    return torch.cat(training), torch.cat(test)


def take(clouds: Any, rows: Tensor, points: int | None = None) -> Any:
    """Take some clouds, and at most `points` points of each."""
    if isinstance(clouds, dict):
        return {key: leaf[rows][:, :points] for key, leaf in clouds.items()}
    return clouds[rows][:, :points]


@torch.inference_mode()
def evaluate(
    network: nn.Module, clouds: Any, labels: Tensor, group: Group, batch: int
) -> dict[str, np.ndarray]:
    """Evaluate a network on every cloud at every rotation.

    Returns:
        `score` (the probability of the true class) and `confidence` in half precision, and
        `predicted`, each `[sample, element]`.
    """
    where = next(network.parameters()).device
    turns = torch.from_numpy(group.linear("space")).float().to(where)
    pos, mask = pointnet.fields_of(clouds)
    found: list[tuple[np.ndarray, ...]] = []
    for row, label in enumerate(labels.tolist()):
        parts = []
        for some in turns.split(batch):
            turned = pos[row].to(where) @ some.mT
            inputs: Any = turned
            if mask is not None:
                inputs = {"pos": turned, "mask": mask[row].to(where).expand(len(some), -1)}
            parts.append(network(inputs).softmax(1).cpu())
        probs = torch.cat(parts)
        confidence, predicted = probs.max(1)
        found.append((probs[:, label].numpy(), confidence.numpy(), predicted.numpy()))
    kinds = {"score": np.float16, "confidence": np.float16, "predicted": np.uint8}
    columns = zip(kinds.items(), zip(*found, strict=True), strict=True)
    return {name: np.stack(parts).astype(kind) for (name, kind), parts in columns}
