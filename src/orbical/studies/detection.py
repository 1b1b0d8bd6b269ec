"""Detectors under shifts: how far the key object strayed in training decides where it is found.

    orbical study detection             # train, scan, write tables and figures
    orbical study detection report      # the page again, from stored results

On a machine with an accelerator that has neither the data nor more than torch and numpy: `pack`
the images into `--data` here, `train` there, `report` here.

Five detectors of one architecture, material, seed and budget differ in one thing: by how much of
32 pixels the key object was moved away from the centre of the view in training (0 to 100 %). Each
is scanned over 33 x 33 shifts of the view on objects that none has seen.

Paper: Zhao et al., Evaluating Machine Learning Models with NERO, sections 3.1 and 3.4.
"""

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

from orbical.actions import Window
from orbical.datasets.coco_folder import KeyObjects
from orbical.datasets.generated_scenes import scenes
from orbical.errors import InputError
from orbical.groups import Group, translations
from orbical.predictors import as_predictor
from orbical.sweep import Sweep
from orbical.tasks import Detection
from orbical.zoo import detector
from orbical.zoo.detector_training import Crops, train

from .command_line import one_line_errors, say_written, study_parser
from .detection_material import (
    RADIUS,
    WINDOW,
    first_objects,
    pack,
    split,
    test_views,
    training_crops,
    unpack,
)
from .workers import run_jobs

PAGE = Path("docs/studies/detection.md")
RESULTS = Path("results/detection")
SCENES_JOB = "scenes"
JITTERS = (0, 25, 50, 75, 100)
STEPS = 8_000
SCENES = 4_000
SCENE_STEPS = 8_000
STEP = 2
STORED = (
    "iou",
    "match_confidence",
    "precision",
    "recall",
    "f1",
    "ap",
    "box_label",
    "box_score",
    "box_correct",
    "count",
    "score_vs_consensus",
    "consensus",
    "consensus_vs_truth",
    "invariance_gap",
)
TASK = Detection(Window(WINDOW), score="iou_confidence")


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


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study, or one of its steps; see the module."""
    parser = study_parser("detection", __doc__, PAGE, ("all", "pack", "train", "report"))
    parser.add_argument("--data", type=Path, help="packed images; default: the data set")
    parser.add_argument("--out", type=Path, default=RESULTS, help=f"results; default {RESULTS}")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--workers", type=int, default=6, help="processes; 0 trains in this one")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--scenes", type=int, default=SCENES)
    parser.add_argument("--scene-steps", type=int, default=SCENE_STEPS)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of each training")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--step-px", type=int, default=STEP, help="pixels between shifts")
    parser.add_argument("--images", type=int, help="only the first images of each part")
    parser.add_argument("--objects", type=int, help="only the first objects to test on")
    given = parser.parse_args(arguments)
    with one_line_errors(parser):
        if given.step == "pack":
            say_written([pack(given.data or Path("carry"))])
        if given.step in ("all", "train"):
            train_all(given)
        if given.step in ("all", "report"):
            from .detection_page import report

            packed = None if given.data is None else test_views(unpack(given.data)["test"])
            say_written(report(given.out, given.page, packed))


if __name__ == "__main__":
    main()
