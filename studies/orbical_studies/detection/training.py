"""Train and scan the detectors of all levels and seeds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from orbical.actions import Window
from orbical.groups import Group, translations
from orbical.tasks import Detection
from orbical.zoo import detector

from ..framework import Results, TrainingSettings, option
from ..framework import training as framework
from ..zoo_training import detectors
from ..zoo_training.detectors import Crops
from .images import REACH, WINDOW, training_crops, unpack, views_to_test
from .measures import Array, summarize

JITTERS = (0, 25, 50, 75, 100)
WHOLE, SHOWN = 0, (50, 100)  # seed and levels whose weights and scans are kept, for single objects
TASK = Detection(Window(WINDOW), score="iou_confidence")
STORED = (
    *("iou", "match_confidence", "box_score", "box_correct", "score_vs_consensus"),
    *("consensus", "consensus_vs_truth", "invariance_gap"),
)
Loaded = tuple[Crops, Tensor, Tensor]
LARGE = partial(detector.Detector, channels=detector.LARGE)


@dataclass(frozen=True)
class Settings(TrainingSettings):
    """Settings of the detection study."""

    seeds: int = option(3, "trainings of each level", least=1)
    steps: int = option(2_000, "optimizer steps of each training", least=1)
    batch: int = option(detectors.BATCH, "views in one step", least=1)
    seconds: float = option(math.inf, "after which a training ends early", least=0)
    step_px: int = option(4, "pixels between shifts", least=1)
    images: int | None = option(None, "pack only the first images of each part", kind=int)
    objects: int | None = option(None, "test on the first objects only", kind=int)


@dataclass(frozen=True)
class Trial:
    """One training; its text is its name.

    Attributes:
        jitter: How far the key object is moved away from the center at most, percent of `RADIUS`.
        seed: Of weights, order, shifts and light.
    """

    jitter: int
    seed: int

    def __str__(self) -> str:
        return f"jitter-{self.jitter:03d}-seed-{self.seed}"


def every_trial(settings: Settings) -> list[Trial]:
    """List all levels, one seed after the other."""
    return [Trial(jitter, seed) for seed in range(settings.seeds) for jitter in JITTERS]


def scan_file(work: Path, jitter: int) -> Path:
    """Return where the whole scan of a level is stored; its weights are beside it."""
    return work / f"jitter-{jitter:03d}.npz"


def scan_shifts(net: nn.Module, images: Tensor, objects: Tensor, group: Group) -> dict[str, Array]:
    """Scan one detector over all shifts; return the variables `STORED`, in half precision.

    It computes what `orbical.scan` stores, without xarray and zarr.
    """
    device = framework.device()
    samples, elements = (64, 32) if device.type == "cuda" else (16, 4)
    net, weights = net.to(device), torch.as_tensor(group.weights, device=device)
    blocks = [
        group[rows] for rows in np.array_split(np.arange(len(group)), -(-len(group) // elements))
    ]
    parts: list[dict[str, Tensor]] = []
    with torch.inference_mode():
        for some, truth in zip(images.split(samples), objects.split(samples), strict=True):
            here, outputs = some.to(device), []
            for block in blocks:
                views = TASK.input.apply(block, here).flatten(0, 1)
                outputs.append(TASK.read(net(views)).unflatten(0, (len(block), len(some))))
            found = TASK.summarize(torch.cat(outputs), truth.to(device), group, weights)
            parts.append({name: found[name].cpu() for name in STORED})
    joined = {name: torch.cat([part[name] for part in parts]) for name in STORED}
    return {n: (v.half() if v.is_floating_point() else v).numpy() for n, v in joined.items()}


def load(settings: Settings, work: Path) -> Loaded:
    """Cut the packed images: training crops, and images and objects to test on."""
    parts = unpack(work)
    return training_crops(parts["train"]), *views_to_test(parts["test"], settings.objects)


def trained_from(
    network: Callable[[int], detector.Detector], settings: Settings, crops: Crops, trial: Trial
) -> tuple[detector.Detector, dict[str, Any]]:
    """Train the detector of a trial; return also a row of how."""
    row: dict[str, Any] = {"asked": settings.steps, "batch": settings.batch}
    how = (crops, trial.jitter / 100, network, settings.steps, trial.seed, str(framework.device()))
    limits: dict[str, Any] = {"batch": settings.batch, "seconds": settings.seconds}

    def follow(step: int, loss: Tensor) -> None:
        row.update(steps=step, loss=loss)

    net = detectors.train(*how, **limits, after_step=follow)
    return net, row | {"loss": float(row["loss"])}


def scanned(
    net: nn.Module, settings: Settings, images: Tensor, objects: Tensor
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Scan a detector over the shifts of the settings; return the scan, and its tables."""
    group = translations(REACH, settings.step_px)
    scan = scan_shifts(net, images, objects, group)
    return scan, summarize(scan, objects, group)


def run(settings: Settings, work: Path, loaded: Loaded, trial: Trial) -> framework.Trained:
    """Train and scan one detector; keep what the page shows of single objects."""
    begun = time.monotonic()
    crops, *tested = loaded
    net, row = trained_from(LARGE, settings, crops, trial)
    row["seconds_training"] = time.monotonic() - begun
    known = {"training set": f"{len(crops.pixels)} COCO crops", "steps": str(row["steps"])}
    known |= {name: str(value) for name, value in vars(trial).items()}
    weights = detectors.write(net, work / f"{trial}.safetensors", known)
    scan, tables = scanned(detector.read(weights), settings, *tested)  # in half precision
    row["seconds"] = time.monotonic() - begun
    if trial.seed == WHOLE and trial.jitter in SHOWN:
        path = scan_file(work, trial.jitter)
        weights.replace(path.with_suffix(".safetensors"))
        np.savez_compressed(path, **scan)  # type: ignore[arg-type]
    else:
        weights.unlink()
    return row, tables


def train(settings: Settings, results: Results) -> None:
    """Train and scan the detectors that are not there yet."""
    trials = every_trial(settings)
    setup, work = partial(load, settings, results.work), partial(run, settings, results.work)
    framework.train(trials, settings, results.work, setup, work)
