"""The detectors of all levels, and those of generated scenes: trained, scanned and put away."""

from __future__ import annotations

import argparse
import tarfile
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from orbical.datasets.coco_folder import KeyObjects
from orbical.datasets.generated_scenes import scenes
from orbical.errors import InputError
from orbical.groups import Group, translations
from orbical.predictors import as_predictor
from orbical.sweep import Sweep
from orbical.zoo import detector
from orbical.zoo.detector_training import Crops, train

from ..workers import run_jobs
from .material import first_objects, split, test_views, training_crops, unpack
from .settings import JITTERS, RADIUS, SCENES_JOB, STORED, TASK


def scanned(net: torch.nn.Module, data: KeyObjects, group: Group, device: str) -> dict[str, Any]:
    """Scan one detector over all shifts; what `STORED` names, in half precision.

    As `orbical.scan` does, without the store, so that it runs where only torch and numpy are.
    """
    where = torch.device(device)
    predictor = as_predictor(net)
    parts: list[dict[str, torch.Tensor]] = []
    with predictor.ready(where):
        size = 2048 if where.type == "cuda" else 64
        sweep = Sweep({"net": predictor}, group, TASK, where, size)
        for rows in torch.arange(len(data["images"])).split(16):
            unit = sweep.run(data["images"][rows], data["objects"][rows], ["net"])
            unit.wait(group, int(rows[0]))
            parts.append({name: unit.summaries["net"][name] for name in STORED})
    joined = {name: torch.cat([part[name] for part in parts]) for name in STORED}
    return {
        name: (value.half() if value.is_floating_point() else value).numpy()
        for name, value in joined.items()
    }


def chosen_device(name: str) -> str:
    """Name the device."""
    if name != "auto":
        return name
    return "cuda" if torch.cuda.is_available() else "cpu"


@dataclass(frozen=True)
class Material:
    """What every training is given: its options, and on demand the crops and the key objects."""

    given: argparse.Namespace

    @cached_property
    def parts(self) -> tuple[Crops, KeyObjects]:
        """Training crops, and key objects to test on, from the packed or the public images."""
        parts = split() if self.given.data is None else unpack(self.given.data)
        parts = {name: images[: self.given.images] for name, images in parts.items()}
        crops, data = (
            training_crops(parts["train"]),
            first_objects(test_views(parts["test"]), self.given.objects),
        )
        print(f"{len(crops.pixels)} training crops, {len(data['images'])} key objects", flush=True)
        return crops, data


def one_job(material: Material, job: str) -> str:
    """Train and scan the detector of one level, or train both of generated scenes."""
    begun = time.monotonic()
    said = (
        scene_detectors(material.given)
        if job == SCENES_JOB
        else one_level(int(job.removeprefix("jitter-")), *material.parts, material.given)
    )
    return f"{said}, {time.monotonic() - begun:.0f} s"


def one_level(jitter: int, crops: Crops, data: KeyObjects, given: argparse.Namespace) -> str:
    """Train and scan one detector; write `jitter-NNN.tar` with its weights and its scan."""
    name, device = f"jitter-{jitter:03d}", chosen_device(given.device)

    def tell(step: int, loss: float) -> None:
        if step % 1000 == 0:
            print(f"{name} step {step} loss {loss:.3f}", flush=True)

    net = train(
        crops,
        jitter / 100,
        detector.LARGE,
        given.steps,
        device=device,
        seconds=given.seconds,
        batch=given.batch,
        tell=tell,
    )
    facts = {"training set": f"{len(crops.pixels)} COCO crops", "jitter": str(jitter)}
    with tempfile.TemporaryDirectory() as work:
        weights = detector.write(net, Path(work) / f"{name}.safetensors", facts)
        net = detector.read(weights)  # as stored, in half precision
        found = scanned(net, data, translations(RADIUS, given.step_px), device)
        scan = Path(work) / f"{name}.npz"
        np.savez_compressed(scan, **found)
        archived(given.out / f"{name}.tar", [weights, scan])
    score = (found["iou"].astype(float) * found["match_confidence"]).mean()
    return f"score {score:.3f}"


def scene_detectors(given: argparse.Namespace) -> str:
    """Train the two detectors of generated scenes that ship with the package."""
    device = chosen_device(given.device)
    made = scenes(given.scenes, seed=1)
    pixels = (made["images"] * 255).round().byte().permute(0, 2, 3, 1).contiguous()
    crops = Crops(pixels, made["objects"], torch.ones(len(pixels), 5, dtype=torch.bool))
    with tempfile.TemporaryDirectory() as work:
        weights = []
        for name, jitter in (("centred", 0.0), ("jittered", 1.0)):
            net = train(
                crops,
                jitter,
                detector.SMALL,
                given.scene_steps,
                device=device,
                seconds=given.seconds / 2,
                batch=given.batch,
            )
            facts = {
                "training set": f"orbical.datasets.scenes({given.scenes}, seed=1)",
                "jitter": str(jitter),
                "steps": str(given.scene_steps),
                "torch": torch.__version__,
            }
            path = Path(work) / f"scenes-{name}.safetensors"
            weights.append(detector.write(net, path, facts))
        archived(given.out / "scenes.tar", weights)
    return "both detectors of scenes"


def archived(path: Path, files: Sequence[Path]) -> None:
    """Put files into one archive."""
    with tarfile.open(path, "w") as archive:
        for file in files:
            archive.add(file, file.name)


def train_all(given: argparse.Namespace) -> None:
    """Train and scan all detectors, several at a time in processes of their own."""
    given.out.mkdir(parents=True, exist_ok=True)
    jobs = [*(f"jitter-{level}" for level in JITTERS), SCENES_JOB]
    done: list[str] = []

    def finished(job: str, said: str) -> None:
        done.append(job)
        print(f"{job}: {said}", flush=True)

    run_jobs(jobs, partial(Material, given), one_job, finished, workers=given.workers)
    lacking = [job for job in jobs if job not in done]
    if lacking:
        raise InputError(f"train: {', '.join(lacking)} did not end well; see above")
