"""The detectors of all levels and seeds, and those of generated scenes: trained and put away."""

from __future__ import annotations

import argparse
import tarfile
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import torch

from orbical.datasets.generated_scenes import scenes
from orbical.datasets.key_objects import KeyObjects
from orbical.errors import InputError
from orbical.groups import Group, translations
from orbical.predictors import as_predictor
from orbical.scanning.sweep import Sweep
from orbical.zoo import detector
from orbical.zoo.detector_training import Crops, train

from ..pages import Row
from ..trials import Trials
from ..workers import run_jobs
from .material import first_objects, split, test_views, training_crops, unpack
from .settings import RADIUS, STORED, TASK, WHOLE, Trial, trials
from .summaries import Array, Summary, summarised


def scanned(net: torch.nn.Module, data: KeyObjects, group: Group, device: str) -> dict[str, Array]:
    """Scan one detector over all shifts; what `STORED` names, in half precision.

    As `orbical.scan` does, without the store, so that it runs where little but torch is.
    """
    where = torch.device(device)
    views, samples = (2048, 64) if where.type == "cuda" else (64, 16)
    predictor = as_predictor(net)
    parts: list[dict[str, torch.Tensor]] = []
    with predictor.ready(where):
        sweep = Sweep({"net": predictor}, group, TASK, where, views)
        for rows in torch.arange(len(data["images"])).split(samples):
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


def one_trial(material: Material, trial: Trial) -> tuple[Row, Summary]:
    """Train and scan one detector; of seed `WHOLE` put weights and scan away as they are."""
    given, (crops, data) = material.given, material.parts
    device, begun = chosen_device(given.device), time.monotonic()
    row: Row = {"name": str(trial), **vars(trial), "asked": given.steps, "batch": given.batch}

    def tell(step: int, loss: float) -> None:
        row.update(steps=step, loss=loss)
        if step % 1000 == 0:
            spent = time.monotonic() - begun
            print(f"{trial} step {step} loss {loss:.3f}, {spent:.0f} s", flush=True)

    net = train(
        crops,
        trial.jitter / 100,
        detector.LARGE,
        given.steps,
        seed=trial.seed,
        device=device,
        seconds=given.seconds,
        batch=given.batch,
        tell=tell,
    )
    row["seconds_training"] = time.monotonic() - begun
    facts = {"training set": f"{len(crops.pixels)} COCO crops"}
    facts |= {name: str(row[name]) for name in ("jitter", "seed", "steps")}
    group = translations(RADIUS, given.step_px)
    with tempfile.TemporaryDirectory() as work:
        weights = detector.write(net, Path(work) / f"{trial.level}.safetensors", facts)
        net = detector.read(weights)  # as stored, in half precision
        found = scanned(net, data, group, device)
        row["seconds"] = time.monotonic() - begun
        if trial.seed == WHOLE:
            scan = Path(work) / f"{trial.level}.npz"
            np.savez_compressed(scan, **found)  # type: ignore[arg-type]
            archived(given.out / trial.archive, [weights, scan])
    return row, summarised(found, data, group)


def train_all(given: argparse.Namespace) -> None:
    """Train and scan the detectors that are not there yet, several at a time in processes."""
    kept = Trials(given.out)
    jobs = kept.waiting(trials(given.seeds), given.only)
    print(f"{len(jobs)} detectors to train, {len(kept.done)} already there", flush=True)
    ended: list[Trial] = []

    def finished(trial: Trial, result: tuple[Row, Summary]) -> None:
        row, summary = result
        summary.write(given.out / trial.summary)
        kept.add(row)
        ended.append(trial)
        early = "" if row["steps"] == row["asked"] else f" of {row['asked']}, stopped by the time"
        print(
            f"{trial}: score {summary.score.mean():.3f} after {row['steps']} steps{early}, "
            f"{row['seconds']:.0f} s",
            flush=True,
        )

    run_jobs(jobs, partial(Material, given), one_trial, finished, workers=given.workers)
    lacking = [str(job) for job in jobs if job not in ended]
    if lacking:
        raise InputError(f"train: {', '.join(lacking)} did not end well; see above")


def scene_detectors(given: argparse.Namespace) -> Path:
    """Train the two detectors of generated scenes that ship with the package."""
    device = chosen_device(given.device)
    made = scenes(given.scenes, seed=1)
    pixels = (made["images"] * 255).round().byte().permute(0, 2, 3, 1).contiguous()
    crops = Crops(pixels, made["objects"], torch.ones(len(pixels), 5, dtype=torch.bool))
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        weights = []
        for name, jitter in (("centered", 0.0), ("jittered", 1.0)):
            net = train(
                crops,
                jitter,
                detector.SMALL,
                given.scene_steps,
                device=device,
                seconds=given.seconds,
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
        return archived(given.out / "scenes.tar", weights)


def archived(path: Path, files: Sequence[Path]) -> Path:
    """Put files into one archive."""
    with tarfile.open(path, "w") as archive:
        for file in files:
            archive.add(file, file.name)
    return path
