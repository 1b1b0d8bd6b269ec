"""Tiny ImageNet, 25 classes: the likelihood and three losses on 2,500 images of 64 x 64 pixels.

A small stand-in for ImageNet-100. Its test images are too few to rank losses, and its validation
images too few to choose a weight, so each loss has one weight. Training needs torch, NumPy and
Pillow only.
"""

from __future__ import annotations

import io
import math
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from orbical import losses

from ..framework import Results
from ..framework import training as framework
from ..framework.paths import existing_file
from ..framework.training_loop import cosine, fit_epochs
from ..networks.classifiers import CompactResNet
from .batches import Batches, Split, as_images, objective_of, partition
from .settings import BASELINE, Settings

FOLDER, PACK = "tiny", "tiny/tiny25.zip"
SIDE, BATCH, EPOCHS, RATE, DECAY = 64, 128, 30, 1e-3, 1e-2
WIDTHS = (16, 32, 64, 128, 256)
SEEDS = (0, 1, 2, 3, 4)
LOSSES: dict[str, tuple[Callable[[Tensor, Tensor], Tensor] | None, float]] = {
    BASELINE: (None, 0.0),
    "MMCE": (losses.mmce, 10.0),
    "SB-ECE": (losses.sb_ece, 1.0),
    "ESD": (losses.esd, 10.0),
}
"""The losses and their weights: the largest of the paper's grid for the two that are squares."""


@dataclass(frozen=True)
class Trial:
    """One training; its text is its name."""

    loss: str
    weight: float
    seed: int
    epochs: int

    def __str__(self) -> str:
        return f"{self.loss}/lambda={self.weight:g}/epochs={self.epochs}/seed={self.seed}"


def train_tiny(settings: Settings, results: Results) -> None:
    """Train every loss with every seed."""
    epochs = settings.epochs or EPOCHS
    trials = [Trial(n, weight, seed, epochs) for seed in SEEDS for n, (_, weight) in LOSSES.items()]
    setup = partial(unpack, results.work / PACK, framework.device(), settings.images)
    framework.train(trials, settings, results.work / FOLDER, setup, run)


def unpack(path: Path, device: torch.device, images: int | None = None) -> dict[str, Split]:
    """Read the parts of the training images, and the test images, onto a device.

    Args:
        path: A zip archive of JPEG files `train/CLASS/NAME` and `val/CLASS/NAME`.
        device: Where to put them.
        images: Of each split only so many, spread over all classes.

    Returns:
        The parts `fit`, `calibration`, `validation` and `test`.
    """
    with zipfile.ZipFile(existing_file(path, "work", "run the step 'pack-tiny' first")) as archive:
        names = sorted(name for name in archive.namelist() if name.lower().endswith(".jpeg"))
        classes = sorted({name.split("/")[1] for name in names})
        found = {}
        for split in ("train", "val"):
            own = [name for name in names if name.startswith(f"{split}/")]
            own = own[:: max(1, len(own) // (images or len(own)))]
            pixels = np.stack([_pixels(archive.read(name)) for name in own])
            labels = torch.tensor([classes.index(name.split("/")[1]) for name in own])
            found[split] = Split(torch.from_numpy(pixels).to(device), labels.to(device))
    return {**partition(found["train"]), "test": found["val"]}


def _pixels(content: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(content)) as image:
        return np.asarray(image.convert("RGB"))


def run(parts: dict[str, Split], trial: Trial) -> framework.Trained:
    """Train one network; keep its logits of validation and test images."""
    started = time.perf_counter()
    place = parts["test"].labels.device
    torch.manual_seed(trial.seed)
    generator = torch.Generator(place).manual_seed(trial.seed)
    mirrored = {name: _with_mirror_images(parts[name]) for name in ("fit", "calibration")}
    own, _ = LOSSES[trial.loss]
    objective, batches = objective_of(
        own, trial.weight, mirrored, lambda split: Batches(split, BATCH, generator, crop=True)
    )
    model = CompactResNet(classes=int(parts["test"].labels.max()) + 1, widths=WIDTHS)
    model = framework.placed(model, place)
    fit_epochs(
        model,
        batches,
        trial.epochs,
        RATE,
        objective,
        decay=DECAY,
        schedule=partial(_by_epoch, trial.epochs),
        autocast=torch.bfloat16 if place.type == "cuda" else None,
    )
    logits = {name: _logits(model, parts[name].pixels) for name in ("validation", "test")}
    right = logits["test"].argmax(1) == parts["test"].labels.cpu()
    row = {"accuracy": float(right.double().mean())}
    kept = {name: values.half().numpy() for name, values in logits.items()}
    kept |= {f"labels_{n}": parts[n].labels.cpu().numpy().astype(np.uint8) for n in logits}
    return row | {"seconds": round(time.perf_counter() - started, 3)}, kept


def _by_epoch(epochs: int, progress: float) -> float:
    """Return the factor of the learning rate: a half cosine that falls after each epoch."""
    return cosine(math.floor(epochs * progress + 1e-9) / epochs)


def _with_mirror_images(split: Split) -> Split:
    return split + Split(split.pixels.flip(2), split.labels)


@torch.no_grad()
def _logits(model: nn.Module, pixels: Tensor) -> Tensor:
    model.eval()
    return torch.cat([model(as_images(part)).float().cpu() for part in pixels.split(500)])
