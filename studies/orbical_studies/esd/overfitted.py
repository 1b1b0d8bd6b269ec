"""The paper's Table 1 for CIFAR with networks that overfit as the paper's do.

A residual network, batches of 512, AdamW with a constant rate of 1e-3 and a decay of 1e-2, crops
with or without mirror images, scored every five epochs.

The rule, written before the run:

* *Regime.* The likelihood alone is trained with the first seed, with and without mirror images.
  Of both and of all scored epochs, the one is taken whose test accuracy and ECE are nearest to the
  paper's (`regimes.distance`: the larger of the difference in accuracy over 1.5 points and of the
  difference in ECE over a quarter of the paper's). No loss is trained before it is fixed. A verdict
  is about the paper if the mean over all seeds at that epoch is within a distance of 1; else open.
* *Weights.* Each loss has few weights (`WEIGHTS`), trained with the first seed to that epoch. The
  one with the lowest validation ECE within 1.5 points of the validation accuracy of the likelihood
  alone (mean over its seeds) is trained with the new seeds, which alone decide: as many of the
  seeds 1 to 5 as the device time allows for every loss, three or more.
* *Claims* as for MNIST (`mnist_grid`): every loss lowers the ECE, ESD has the lowest, ESD stays
  ahead after scaling, one temperature does better than every loss (ours).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import nn

from orbical.training import Selection, select

from ..framework import Results
from ..framework import training as framework
from ..networks.classifiers import ResNet9
from ..trials import FILE, read_lines
from . import training
from .batches import Batches, Split, partition
from .quick_training import Flipped, Recipe, fit, unpack
from .regimes import TABLE_1, Table1, distance
from .scaling import Scaled, interval_row, scores
from .settings import BASELINE, BATCH, Settings

FOLDER, WIDTH, EVERY = "overfitted", 64, 5
LONGEST = {"cifar10": 60, "cifar100": 40}
WEIGHTS = {"MMCE": (10.0, 2.0), "SB-ECE": (0.4, 0.2), "ESD": (10.0, 2.0)}
INNER = {"MMCE": 0.4, "SB-ECE": 0.01, "ESD": 0.0}
FIRST, FRESH, LEAST = 0, (1, 2, 3, 4, 5), 3
"""The seed that chooses, those that decide, and how many must."""


@dataclass(frozen=True)
class Trial:
    """One training; its text is its name. Its length is that of a regime."""

    data: str
    mirrors: bool
    loss: str
    weight: float
    inner: float
    seed: int
    epochs: int
    batch: int = BATCH
    decay: float = training.DECAY

    def __str__(self) -> str:
        kind = "mirrors" if self.mirrors else "crops"
        head = f"{self.data}/{kind}/{self.loss}/lambda={self.weight:g}"
        return f"{head}/epochs={self.epochs}/seed={self.seed}"


def train_overfitted(settings: Settings, results: Results) -> None:
    """Find the regime of each data set by the likelihood alone, then train the losses in it."""
    end = time.time() + 60 * settings.minutes
    for data in settings.fronts:
        work = results.work / FOLDER / data
        setup = partial(unpack, results.work, data, framework.device(), settings.images)
        train = partial(_train, settings, end, work, setup)
        longest = settings.epochs or LONGEST[data]
        both = [Trial(data, way, BASELINE, 0.0, 0.0, FIRST, longest) for way in (True, False)]
        mirrors, epochs = regime(train(both))
        trial = partial(Trial, data, mirrors, epochs=epochs)
        plain = [trial(BASELINE, 0.0, 0.0, seed) for seed in FRESH]
        rows = train([*plain, *(trial(*one, FIRST) for one in _settings())])
        chosen = choices(rows, mirrors, epochs)
        train(trial(n, one.choice, INNER[n], seed) for seed in FRESH for n, one in chosen.items())


def _settings() -> list[tuple[str, float, float]]:
    return [(loss, weight, INNER[loss]) for loss, each in WEIGHTS.items() for weight in each]


def _train(
    settings: Settings, end: float, work: Path, setup: Callable[[], Any], trials: Iterable[Trial]
) -> pd.DataFrame:
    left = replace(settings, minutes=max(0.0, (end - time.time()) / 60))
    framework.train(trials, left, work, setup, run)
    return pd.DataFrame(read_lines(work / FILE))


def regime(rows: pd.DataFrame) -> tuple[bool, int]:
    """Return whether to mirror, and the epochs, where the likelihood alone is nearest the paper."""
    first = rows[(rows["loss"] == BASELINE) & (rows["seed"] == FIRST)]
    longest = first[first["epochs"] == first["epochs"].max()]
    _, mirrors, epochs = min(
        (distance(TABLE_1[row["data"]], point), row["mirrors"], point["epoch"])
        for row in longest.to_dict("records")
        for point in row["curve"]
    )
    return bool(mirrors), int(epochs)


def choices(rows: pd.DataFrame, mirrors: bool, epochs: int) -> dict[str, Selection[float]]:
    """Choose the weight of each loss by validation images, after the epochs of the regime."""
    rows = rows[(rows["mirrors"] == mirrors) & (rows["epochs"] == epochs)]
    plain = rows[rows["loss"] == BASELINE]["validation.accuracy"].mean()
    found = {}
    for loss in WEIGHTS:
        own = rows[(rows["loss"] == loss) & (rows["seed"] == FIRST)].set_index("weight")
        each = own[["validation.accuracy", "validation.ece"]].T.to_dict("list")
        found[loss] = select(each, baseline_accuracy=plain)
    return found


def trained(rows: pd.DataFrame, data: str) -> dict[str, pd.DataFrame]:
    """Return, by loss, the trainings in the regime, at the chosen weights."""
    rows = rows[rows["data"] == data]
    last = rows[rows["loss"] != BASELINE].iloc[-1]
    mirrors, epochs = bool(last["mirrors"]), int(last["epochs"])
    rows = rows[(rows["mirrors"] == mirrors) & (rows["epochs"] == epochs)]
    chosen = {loss: one.choice for loss, one in choices(rows, mirrors, epochs).items()}
    weight = {BASELINE: 0.0, **chosen}
    return {n: rows[(rows["loss"] == n) & (rows["weight"] == at)] for n, at in weight.items()}


def table_1(rows: pd.DataFrame, data: str) -> Table1:
    """Return what the new seeds decide."""
    own = trained(rows, data)
    return Table1({n: each[each["seed"].isin(FRESH)] for n, each in own.items()}, data, LEAST)


def run(splits: Mapping[str, Split], trial: Trial) -> framework.Trained:
    """Train a network, score it every few epochs, and keep the logits of its test images."""
    started = time.perf_counter()
    parts, test = partition(splits["train"]), splits["test"]
    points: list[dict[str, Any]] = []

    def watch(model: nn.Module, epoch: int) -> None:
        if epoch % EVERY and epoch != trial.epochs:
            return
        point: dict[str, Any] = {"epoch": epoch}
        for name, split in (("validation", parts["validation"]), ("test", test)):
            found = scores(split.labels, logits=training.logits_of(model, split.pixels))
            point |= {f"{name}.{k}": found[k] for k in ("accuracy", "ece")}
        points.append(point)

    model, _ = fit(trial, parts, recipe_of(trial), watch)
    held, shown = (
        training.logits_of(model, split.pixels).cpu().double()
        for split in (parts["validation"], test)
    )
    truth = test.labels.cpu()
    row = Scaled(held, parts["validation"].labels.cpu()).row(shown, truth)
    row |= interval_row(shown, truth, row["temperature"])
    return {**row, "seconds": round(time.perf_counter() - started, 3), "curve": points}, {}


def recipe_of(trial: Trial) -> Recipe:
    """Return the paper's recipe with a residual network."""
    on_gpu = torch.cuda.is_available()
    return Recipe(
        lambda images, classes: ResNet9(classes, WIDTH),
        partial(torch.optim.AdamW, fused=True, capturable=on_gpu),
        training.RATE,
        lambda share: 1.0,
        Flipped if trial.mirrors else Batches,
    )


def collect_overfitted(settings: Settings, results: Results) -> None:
    """Write the trainings, and their scores over epochs, of the data sets that were trained."""
    files = [results.work / FOLDER / data / FILE for data in settings.fronts]
    rows = [line for file in files if file.is_file() for line in read_lines(file)]
    points = [{"key": row["name"]} | point for row in rows for point in row.pop("curve")]
    results.write("overfitted", [{"key": row.pop("name"), **row} for row in rows])
    results.write("overfitted-epochs", points)
