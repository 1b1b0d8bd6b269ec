"""One training: fit, scale, and measure on clean and on shifted images."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any

import pandas as pd
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor, nn
from torch.nn import functional

from orbical import calibration, training
from orbical.errors import InputError
from orbical.recalibrate import Temperature, VectorScaling

from ..framework import Results
from ..framework import training as framework
from ..networks.classifiers import CompactResNet, LeNet5
from ..trials import FILE, read_lines
from .batches import Batches, Split, Splits, as_images, partition
from .packing import unpack
from .settings import BASELINE, BATCH, LOSSES, Settings, Trial, grid, smaller_batches
from .shifts import SHIFTS, STRENGTHS

RATE, DECAY, BINS, CHUNK = 1e-3, 1e-2, 20, 2_500
CURVE_POINTS, CURVE_IMAGES = 15, 10_000


def train(settings: Settings, results: Results) -> None:
    """Train all losses with all weights."""
    _run(grid(settings), settings, results)


def ablation(settings: Settings, results: Results) -> None:
    """Train ESD and ECE with smaller batches, at the lambda chosen from finished trainings."""
    runs = pd.DataFrame(read_lines(results.work / FILE))
    _run(smaller_batches(settings, runs), settings, results)


def _run(trials: Iterable[Trial], settings: Settings, results: Results) -> None:
    setup = partial(unpack, settings, results, framework.device())
    framework.train(trials, settings, results.work, setup, run)


def collect(settings: Settings, results: Results) -> None:
    """Write the finished trainings, of each data set those with most epochs, as three tables."""
    rows = read_lines(results.work / FILE)
    most = dict(sorted((row["data"], row["epochs"]) for row in rows))
    rows = [{"key": row.pop("name"), **row} for row in rows if row["epochs"] == most[row["data"]]]
    for name, column in (("curves", "curve"), ("shifts", "shifts")):
        points = [{"key": row["key"], **point} for row in rows for point in row.pop(column)]
        results.write(name, points)
    results.write("results", rows)


def network(data: str, place: torch.device) -> nn.Module:
    """Return a new network: LeNet-5 for digits, the compact ResNet for photographs."""
    model = LeNet5() if data == "mnist" else CompactResNet()
    return model.to(place).to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def precision(data: str, place: torch.device) -> torch.dtype | None:
    """Return mixed precision where it pays: for the ResNet on a GPU."""
    return torch.bfloat16 if place.type == "cuda" and data == "cifar10" else None


def optimizer_of(model: nn.Module) -> torch.optim.AdamW:
    """Return the paper's optimizer."""
    fused = next(model.parameters()).device.type == "cuda"
    return torch.optim.AdamW(model.parameters(), RATE, weight_decay=DECAY, fused=fused)


@torch.no_grad()
def logits_of(model: nn.Module, pixels: Tensor, shift: str = "", strength: float = 0.0) -> Tensor:
    """Return logits `[n, classes]`, float32, in evaluation mode, of clean or of shifted images."""
    model.eval()
    parts = []
    for part in pixels.split(CHUNK):
        images = as_images(part)
        if shift:
            images = SHIFTS[shift](images, strength).contiguous(memory_format=torch.channels_last)
        parts.append(model(images).float())
    return torch.cat(parts)


def scores(labels: Tensor, **outputs: Any) -> dict[str, float]:
    """Measure accuracy, ECE with the paper's 20 bins, and ESD of `logits=` or `probs=`."""
    confidence, correct = calibration.top_label(labels=labels, **outputs)
    return {
        "accuracy": float(correct.double().mean()),
        "ece": float(calibration.ece(confidence, correct, bins=BINS)),
        "esd": float(calibration.esd(confidence, correct)),
    }


def objective_and_batches(
    trial: Trial, parts: dict[str, Split], generator: torch.Generator
) -> tuple[Any, Any]:
    """Return what `fit` minimizes, and on which batches.

    The baseline's likelihood also has the images that the other losses hold out for calibration.
    """
    own = None if trial.loss == BASELINE else LOSSES[trial.loss]

    def cropped(split: Split) -> Batches:
        return Batches(split, trial.batch, generator, trial.data == "cifar10")

    return objective_of(own, trial.weight, parts, cropped)


def objective_of(
    own: Callable[[Tensor, Tensor], Tensor] | None,
    weight: float,
    parts: dict[str, Split],
    batches: Callable[[Split], Batches],
) -> tuple[Any, Any]:
    """Return the likelihood on all images, or interleaved with a loss on those held out."""
    if own is None:
        return training.likelihood, batches(parts["fit"] + parts["calibration"])
    pairs = (batches(parts[name]) for name in ("fit", "calibration"))
    return training.interleaved(own, weight), training.interleave(*pairs)


def run(splits: Splits, trial: Trial) -> framework.Trained:
    """Train and measure one network; keep the logits of the first seed."""
    started = time.perf_counter()
    parts, test = partition(splits[trial.data]["train"]), splits[trial.data]["test"]
    place = test.labels.device
    torch.manual_seed(trial.seed)
    model = network(trial.data, place)
    generator = torch.Generator(place).manual_seed(trial.seed)
    objective, batches = objective_and_batches(trial, parts, generator)
    every = max(1, trial.epochs // CURVE_POINTS)
    seen = Split(parts["fit"].pixels[:CURVE_IMAGES], parts["fit"].labels[:CURVE_IMAGES])

    def curve(model: nn.Module, epoch: int) -> dict[str, float]:
        if epoch % every and epoch != trial.epochs:
            return {}
        found = {
            name: scores(split.labels, logits=logits_of(model, split.pixels))
            for name, split in (("train", seen), ("test", test))
        }
        return {f"{name}_{k}": found[name][k] for name in found for k in ("accuracy", "ece")}

    history = training.fit(
        model,
        batches,
        optimizer=optimizer_of(model),
        epochs=trial.epochs,
        objective=objective,
        validate=curve,
        autocast=precision(trial.data, place),
    )
    trained = time.perf_counter() - started
    row, shifted, logits = measured(model, parts["validation"], test, trial.batch == BATCH)
    images = trial.epochs * len(batches) * trial.batch * (1 if trial.loss == BASELINE else 2)
    points = [
        {"epoch": point.pop("epoch"), "training_loss": point.pop("loss"), **point}
        for point in map(dict, history.rows)
        if "test_ece" in point
    ]
    kept = {"logits": logits.half().numpy()} if (trial.seed, trial.batch) == (0, BATCH) else {}
    return {
        **{name: row.pop(name) for name in ("temperature", "nll")},
        "images": images,
        "seconds_training": round(trained, 3),
        "seconds": round(time.perf_counter() - started, 3),
        **row,
        **{"curve": points, "shifts": shifted},
    }, kept


def measured(
    model: nn.Module, validation: Split, test: Split, shifted: bool
) -> tuple[dict[str, Any], list[dict[str, Any]], Tensor]:
    """Measure a network before and after scaling fitted on validation images.

    Returns:
        The scores; those on shifted test images, if wanted; and the logits of the test images. If
        a scaling cannot be fitted, because the network has learned nothing, the scores after it
        are those before.
    """
    held, labels = logits_of(model, validation.pixels).cpu().double(), validation.labels.cpu()
    logits, truth = logits_of(model, test.pixels).cpu().double(), test.labels.cpu()
    temperature, vector = (_fitted(kind(), held, labels) for kind in (Temperature, VectorScaling))
    found = {
        "validation": scores(labels, logits=held),
        "test": scores(truth, logits=logits),
        "test_ts": _after(temperature, logits, truth),
        "test_vs": _after(vector, logits, truth),
    }
    row = {
        "temperature": None if temperature is None else float(temperature.temperature_),
        "nll": float(functional.cross_entropy(logits, truth)),
        **{f"{part}.{name}": value for part, each in found.items() for name, value in each.items()},
    }
    points = []
    for shift, strength in ((s, at) for s in STRENGTHS for at in STRENGTHS[s] if shifted):
        moved = logits_of(model, test.pixels, shift, strength).cpu().double()
        scaled = _after(temperature, moved, truth)
        head = {"shift": shift, "strength": strength, **scores(truth, logits=moved)}
        points.append(head | {"ece_ts": scaled["ece"], "esd_ts": scaled["esd"]})
    return row, points, logits


def _fitted(scaling: Any, logits: Tensor, labels: Tensor) -> Any:
    with warnings.catch_warnings(), suppress(InputError, ConvergenceWarning):
        warnings.simplefilter("error", ConvergenceWarning)
        return scaling.fit(logits, labels)
    return None  # a network that has learned nothing has no best scaling


def _after(scaling: Any, logits: Tensor, labels: Tensor) -> dict[str, float]:
    if scaling is None:
        return scores(labels, logits=logits)
    return scores(labels, probs=scaling.predict_proba(logits))
