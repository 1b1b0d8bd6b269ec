"""Fronts of ECE against accuracy: every weight of three losses, on all images of CIFAR.

One weight a loss compares losses at unequal cost. Here every weight is trained once; at several
costs in accuracy the weight with the lowest ECE on validation images is chosen for each loss, and
trained again with new seeds, which alone decide between losses.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from orbical import calibration, losses
from orbical.errors import InputError
from orbical.training import select

from ..data import cifar10, cifar100
from ..framework import Results
from ..framework import training as framework
from ..networks.classifiers import ResNet9
from ..trials import FILE, read_lines
from .batches import Batches, Split, partition
from .settings import BASELINE, BATCH, Settings
from .timing import milliseconds
from .training import measured, objective_of

SETS: dict[str, Callable[..., Any]] = {"cifar10": cifar10, "cifar100": cifar100}
FOLDER, COST = "fronts", "cost.json"
WEIGHTS = {
    "MMCE": (0.6, 2.0, 6.0, 10.0, 20.0, 35.0, 50.0),
    "SB-ECE": (0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0),
    "ESD": (0.6, 2.0, 6.0, 10.0, 20.0, 35.0, 50.0),
}
"""MMCE and ESD are squares and hence small: theirs reach beyond the paper's grid, 0.2 to 10."""

INNER = {"MMCE": (0.4, 0.2, 0.6, 0.8), "SB-ECE": (0.01, 0.0001, 0.001, 0.1), "ESD": (0.0,)}
"""MMCE's kernel width, SB-ECE's temperature; the first is used, the others are tried at `TRIED`."""

TRIED = 2.0
COSTS = (0.005, 0.015, 0.03)
"""Losses of validation accuracy at which a weight is chosen; the paper has the second."""

FIRST, FRESH = 0, (1, 2, 3, 4, 5)
PAPERS = len(INNER) * len(FRESH)
"""The seed of all weights, and those of the chosen ones."""

EPOCHS, WIDTH, RATE, DECAY, RISE = 24, 64, 0.4, 5e-4, 0.2
REPEATS = 60


@dataclass(frozen=True)
class Trial:
    """One training; its text is its name."""

    data: str
    loss: str
    weight: float
    inner: float
    seed: int
    epochs: int
    batch: int = BATCH

    def __str__(self) -> str:
        head = f"{self.data}/{self.loss}/lambda={self.weight:g}/inner={self.inner:g}"
        return f"{head}/epochs={self.epochs}/seed={self.seed}"


def train_fronts(settings: Settings, results: Results) -> None:
    """Train every weight once, then the chosen ones with new seeds."""
    end, epochs = time.time() + 60 * settings.minutes, settings.epochs or EPOCHS
    for data in settings.fronts:
        work = results.work / FOLDER / data
        setup = partial(unpack, results.work, data, framework.device(), settings.images)
        framework.train(every_weight(data, epochs), settings, work, setup, run)
        rows = pd.DataFrame(read_lines(work / FILE))
        left = replace(settings, minutes=max(0.0, (end - time.time()) / 60))
        others = chosen_weights(rows, data, epochs)
        others[PAPERS:PAPERS] = inner_parameters(data, epochs)
        framework.train(dict.fromkeys(others), left, work, setup, run)


def every_weight(data: str, epochs: int = EPOCHS) -> list[Trial]:
    """List the baseline with all seeds, and every weight of every loss.

    >>> len(every_weight("cifar10"))
    27
    """
    found = [Trial(data, BASELINE, 0.0, 0.0, seed, epochs) for seed in (FIRST, *FRESH)]
    for weights in zip(*WEIGHTS.values(), strict=True):
        for loss, weight in zip(WEIGHTS, weights, strict=True):
            found.append(Trial(data, loss, weight, INNER[loss][0], FIRST, epochs))
    return found


def inner_parameters(data: str, epochs: int = EPOCHS) -> list[Trial]:
    """List the other inner parameters at one weight (the paper's Fig. 2)."""
    return [
        Trial(data, loss, TRIED, value, FIRST, epochs)
        for loss, (_, *others) in INNER.items()
        for value in others
    ]


def choices(rows: pd.DataFrame, data: str) -> dict[str, dict[float, float]]:
    """Choose the weight of each loss at each cost, from validation images of the first seed.

    Args:
        rows: One row a training.
        data: The data set.

    Returns:
        Loss, then cost to weight; costs that no weight meets are left out.
    """
    rows = rows[rows["data"] == data]
    base = rows[rows["loss"] == BASELINE]["validation.accuracy"].mean()
    found: dict[str, dict[float, float]] = {}
    first = rows[rows["seed"] == FIRST]
    for loss, (usual, *_) in INNER.items():
        own = first[(first["loss"] == loss) & (first["inner"] == usual)]
        scores = own.set_index("weight")[["validation.accuracy", "validation.ece"]]
        each = {weight: (row.iloc[0], row.iloc[1]) for weight, row in scores.iterrows()}
        picked = {c: select(each, baseline_accuracy=base, tolerance=c) for c in COSTS if each}
        found[loss] = {cost: one.choice for cost, one in picked.items() if one.admissible}
    return found


def chosen_weights(rows: pd.DataFrame, data: str, epochs: int = EPOCHS) -> list[Trial]:
    """List the chosen weights with the seeds that decide, the paper's cost first."""
    found = choices(rows, data)
    if not any(found.values()):
        raise InputError(f"work: expected finished trainings of {data}, got none; run it again")
    costs = sorted(COSTS, key=lambda cost: abs(cost - COSTS[1]))
    listed = [
        Trial(data, loss, weights[cost], INNER[loss][0], seed, epochs)
        for cost in costs
        for seed in FRESH
        for loss, weights in found.items()
        if cost in weights
    ]
    return list(dict.fromkeys(listed))


def unpack(
    work: Path, data: str, device: torch.device, images: int | None = None
) -> dict[str, Split]:
    """Read all training and test images of a data set onto a device."""
    folder = work / data
    if not folder.is_dir():
        raise InputError(f"work: there is no folder {str(folder)!r}; run the step 'pack' first")
    parts = {"train": ["train", *(["more"] if data == "cifar10" else [])], "test": ["test"]}
    found = {}
    for name, splits in parts.items():
        read = [SETS[data](folder, split) for split in splits]
        pixels, labels = (torch.cat([torch.as_tensor(r[i]) for r in read]) for i in (0, 1))
        if images is not None:
            pixels, labels = pixels[:images], labels[:images]
        found[name] = Split(pixels.to(device), labels.long().to(device))
    return found


class Flipped(Batches):
    """Batches of which half the images, drawn each time, are mirrored after the crop."""

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for images, labels in super().__iter__():
            mirrored = torch.rand(len(images), 1, 1, 1, **self.random) < 0.5
            yield torch.where(mirrored, images.flip(-1), images), labels


def loss_of(trial: Trial) -> Callable[[Tensor, Tensor], Tensor] | None:
    """Return the calibration loss with its inner parameter; None for the likelihood alone."""
    if trial.loss == "MMCE":
        return partial(losses.mmce, phi=trial.inner)
    if trial.loss == "SB-ECE":
        return partial(losses.sb_ece, temperature=trial.inner)
    return losses.esd if trial.loss == "ESD" else None


def network(data: str, place: torch.device) -> nn.Module:
    """Return a new ResNet-9."""
    model = ResNet9(classes=100 if data == "cifar100" else 10, width=WIDTH)
    return model.to(place).to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def optimizer_of(model: nn.Module) -> torch.optim.Optimizer:
    """Return SGD with Nesterov momentum, the optimizer of short trainings."""
    return torch.optim.SGD(
        model.parameters(), RATE, momentum=0.9, nesterov=True, weight_decay=DECAY
    )


def fit(model: nn.Module, trial: Trial, parts: dict[str, Split]) -> int:
    """Train with one cycle of the rate; return the number of steps."""
    place = parts["fit"].labels.device
    generator = torch.Generator(place).manual_seed(trial.seed)
    objective, batches = objective_of(
        loss_of(trial), trial.weight, parts, partial(_batches, trial.batch, generator)
    )
    optimizer = optimizer_of(model)
    steps = trial.epochs * len(batches)
    cycle = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, RATE, steps, pct_start=RISE, anneal_strategy="linear", cycle_momentum=False
    )
    torch.backends.cudnn.benchmark = True  # all batches have one shape
    model.train()
    for _ in range(trial.epochs):
        for batch in batches:
            _step(model, objective, optimizer, batch)
            cycle.step()
    return steps


def _step(model: nn.Module, objective: Any, optimizer: torch.optim.Optimizer, batch: Any) -> None:
    place = next(model.parameters()).device.type
    with torch.autocast(place, torch.bfloat16, enabled=place == "cuda"):
        loss = objective(model, batch)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()


def _batches(size: int, generator: torch.Generator, split: Split) -> Batches:
    return Flipped(split, size, generator, crop=True)


def run(splits: dict[str, Split], trial: Trial) -> framework.Trained:
    """Train and measure one network; keep confidence and correctness of the test images."""
    started = time.perf_counter()
    parts, test = partition(splits["train"]), splits["test"]
    torch.manual_seed(trial.seed)
    model = network(trial.data, test.labels.device)
    steps = fit(model, trial, parts)
    row, _, logits = measured(model, parts["validation"], test, shifted=False)
    truth = test.labels.cpu()
    scaled = logits / (row["temperature"] or 1.0)
    pairs = {"": logits, "_ts": scaled}
    kept = {}
    for name, values in pairs.items():
        confidence, correct = calibration.top_label(labels=truth, logits=values)
        kept[f"confidence{name}"] = confidence.numpy().astype(np.float32)
        kept["correct"] = correct.numpy()
    return {**row, "steps": steps, "seconds": round(time.perf_counter() - started, 3)}, kept


def time_fronts(settings: Settings, results: Results) -> None:
    """Time an epoch of each loss on this machine."""
    for data in settings.fronts:
        splits = unpack(results.work, data, framework.device(), settings.images)
        work = results.work / FOLDER / data
        (work / COST).write_text(json.dumps([*costs_of_an_epoch(splits, data)]))


def costs_of_an_epoch(splits: dict[str, Split], data: str) -> Iterator[Mapping[str, Any]]:
    """Time a step of each loss alone on the device, and give that of an epoch."""
    parts, place = partition(splits["train"]), splits["test"].labels.device
    for loss, inner in ((BASELINE, (0.0,)), *INNER.items()):
        trial = Trial(data, loss, 1.0, inner[0], 0, 1)
        model = network(data, place)
        optimizer = optimizer_of(model)
        generator = torch.Generator(place).manual_seed(0)
        objective, batches = objective_of(
            loss_of(trial), trial.weight, parts, partial(_batches, trial.batch, generator)
        )
        batch = next(iter(batches))

        taken = milliseconds(partial(_step, model, objective, optimizer, batch), place, REPEATS)
        yield {
            **{"data": data, "loss": loss, "step_ms": taken, "steps": len(batches)},
            "epoch_s": taken * len(batches) / 1000,
        }


def collect_fronts(settings: Settings, results: Results) -> None:
    """Write the fronts' trainings, their intervals over test images, and the cost of an epoch."""
    rows, spans, costs = [], [], []
    for data in settings.fronts:
        work = results.work / FOLDER / data
        costs += json.loads((work / COST).read_text())
        for line in read_lines(work / FILE):
            rows.append({"key": line.pop("name"), **line})
            spans += [{"key": rows[-1]["key"], **span} for span in _spans(work, rows[-1])]
    results.write("fronts", rows)
    results.write("fronts-intervals", spans)
    results.write("fronts-cost", costs)


def _spans(work: Path, row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Compute 95 % intervals of the ECE over test images, before and after the temperature."""
    with np.load(framework.arrays_file(work, row["key"])) as kept:
        for name in ("", "_ts"):
            found = calibration.interval(
                "ece", kept[f"confidence{name}"], kept["correct"], bins=20, resamples=300
            )
            low, high, floor = (float(v) for v in (found.low, found.high, found.calibrated))
            head = {"scaled": name == "_ts", "ece": float(found.value)}
            yield head | {"low": low, "high": high, "calibrated": floor}
