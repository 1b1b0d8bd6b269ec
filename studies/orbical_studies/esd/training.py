"""One training: fit, scale, and measure on clean and on rotated, blurred or noisy images."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from functools import partial
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional

from orbical.zoo.layout import images_in_layout

from ..framework import Results
from ..framework import training as framework
from ..framework.training_loop import fit_epochs
from ..networks.classifiers import CompactResNet, LeNet5
from ..zoo_training.digits import turn
from .batches import Batches, Split, Splits, as_images, objective_of, partition
from .packing import unpack
from .scaling import Scaled, after, scores
from .settings import BASELINE, BATCH, LOSSES, Settings, Trial, grid, smaller_batches

STRENGTHS: dict[str, tuple[float, ...]] = {
    "rotation": (15.0, 30.0, 45.0, 60.0, 90.0),  # degrees
    "blur": (0.5, 1.0, 1.5, 2.0, 3.0),  # standard deviation in pixels
    "noise": (0.05, 0.1, 0.2, 0.3, 0.5),  # standard deviation, images spanning 0..1
}


def rotated(images: Tensor, degrees: float) -> Tensor:
    """Rotate images `[n, c, h, w]` in -1..1 counterclockwise, black beyond the border."""
    angles = torch.full((len(images),), math.radians(degrees), device=images.device)
    return turn(images + 1, angles) - 1


def blurred(images: Tensor, sigma: float) -> Tensor:
    """Convolve images `[n, c, h, w]` with a Gaussian of `sigma` pixels, the border repeated.

    >>> blurred(torch.ones(1, 1, 4, 4), 1.0).allclose(torch.ones(1, 1, 4, 4))
    True
    """
    radius = math.ceil(3 * sigma)
    places = torch.arange(-radius, radius + 1, device=images.device, dtype=images.dtype)
    kernel = torch.exp(-(places**2) / (2 * sigma**2))
    kernel = (kernel / kernel.sum()).expand(images.shape[1], 1, -1)
    framed = functional.pad(images, (radius,) * 4, mode="replicate")
    across = functional.conv2d(framed, kernel[:, :, None, :], groups=images.shape[1])
    return functional.conv2d(across, kernel[:, :, :, None], groups=images.shape[1])


def noisy(images: Tensor, sigma: float) -> Tensor:
    """Add the same Gaussian noise each time, `sigma` for images that span 0..1, and clip."""
    generator = torch.Generator(images.device).manual_seed(0)
    noise = torch.randn(images.shape, generator=generator, device=images.device)
    return (images + 2 * sigma * noise).clamp(-1, 1)


SHIFTS = {"rotation": rotated, "blur": blurred, "noise": noisy}


RATE, DECAY, CHUNK = 1e-3, 1e-2, 2_500
CURVE_POINTS, CURVE_IMAGES = 15, 10_000


def train(settings: Settings, results: Results) -> None:
    """Train all losses with all weights."""
    _run(grid(settings), settings, results)


def ablation(settings: Settings, results: Results) -> None:
    """Train ESD and ECE with smaller batches, at the lambda chosen from finished trainings."""
    runs = pd.DataFrame(framework.read_rows(results.work))
    _run(smaller_batches(settings, runs), settings, results)


def _run(trials: Iterable[Trial], settings: Settings, results: Results) -> None:
    setup = partial(unpack, settings, results, framework.device())
    framework.train(trials, settings, results.work, setup, run)


def collect(settings: Settings, results: Results) -> None:
    """Write the finished trainings, of each data set those with most epochs, as three tables."""
    rows = framework.read_rows(results.work)
    most = dict(sorted((row["data"], row["epochs"]) for row in rows))
    rows = [{"key": row.pop("name"), **row} for row in rows if row["epochs"] == most[row["data"]]]
    for name, column in (("curves", "curve"), ("shifts", "shifts")):
        points = [{"key": row["key"], **point} for row in rows for point in row.pop(column)]
        results.write(name, points)
    results.write("results", rows)


def network(data: str, place: torch.device) -> nn.Module:
    """Return a new network: LeNet-5 for digits, the compact ResNet for photographs."""
    model = LeNet5() if data == "mnist" else CompactResNet()
    return framework.placed(model, place)


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
            images = images_in_layout(SHIFTS[shift](images, strength))
        parts.append(model(images).float())
    return torch.cat(parts)


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
    points: list[dict[str, float]] = []
    seen = Split(parts["fit"].pixels[:CURVE_IMAGES], parts["fit"].labels[:CURVE_IMAGES])

    def watch(epoch: int, loss: float) -> None:
        if epoch % every and epoch != trial.epochs:
            return
        point = {"epoch": epoch, "training_loss": loss}
        for name, split in (("train", seen), ("test", test)):
            found = scores(split.labels, logits=logits_of(model, split.pixels))
            point |= {f"{name}_{k}": found[k] for k in ("accuracy", "ece")}
        points.append(point)

    fit_epochs(
        model,
        batches,
        trial.epochs,
        RATE,
        objective,
        decay=DECAY,
        autocast=precision(trial.data, place),
        after_epoch=watch,
    )
    trained = time.perf_counter() - started
    row, shifted, logits = measured(model, parts["validation"], test, trial.batch == BATCH)
    images = trial.epochs * len(batches) * trial.batch * (1 if trial.loss == BASELINE else 2)
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
        The scores; those on shifted test images, if wanted; and the logits of the test images.
    """
    held, labels = logits_of(model, validation.pixels).cpu().double(), validation.labels.cpu()
    logits, truth = logits_of(model, test.pixels).cpu().double(), test.labels.cpu()
    scaled = Scaled(held, labels)
    points = []
    for shift, strength in ((s, at) for s in STRENGTHS for at in STRENGTHS[s] if shifted):
        moved = logits_of(model, test.pixels, shift, strength).cpu().double()
        warmed = after(scaled.temperature, moved, truth)
        head = {"shift": shift, "strength": strength, **scores(truth, logits=moved)}
        points.append(head | {"ece_ts": warmed["ece"], "esd_ts": warmed["esd"]})
    return scaled.row(logits, truth), points, logits
