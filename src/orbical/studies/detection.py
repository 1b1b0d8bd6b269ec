"""Detectors under shifts: how far the key object strayed in training decides where it is found.

    orbical study detection                     # train, scan, write tables and figures
    orbical study detection report RESULTS      # the page again, from stored results

On a machine with an accelerator that has neither the data nor more than torch and numpy:

    python -m orbical.studies.detection pack FOLDER             # where the data are
    python -m orbical.studies.detection train FOLDER --out OUT  # there
    orbical study detection report OUT                          # back home

Five detectors of one architecture, material, seed and budget differ in one thing: by how much of
32 pixels the key object was moved away from the centre of the view in training (0 to 100 %). Each
is scanned over 33 x 33 shifts of the view on objects that none has seen.

Paper: Zhao et al., Evaluating Machine Learning Models with NERO, sections 3.1 and 3.4.
"""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
import tarfile
import time
from collections.abc import Sequence
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

from .detection_material import RADIUS, WINDOW, pack, split, test_views, training_crops, unpack

PAGE = Path("docs/studies/detection.md")
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
    """Name the device; asked only in a forked process, which cannot use what its parent began."""
    if name != "auto":
        return name
    return "cuda" if torch.cuda.is_available() else "cpu"


def one_level(jitter: int, crops: Crops, data: KeyObjects, given: argparse.Namespace) -> None:
    """Train and scan one detector; write `jitter-NNN.tar` with its weights and its scan."""
    begun = time.monotonic()
    name, device = f"jitter-{jitter:03d}", chosen_device(given.device)

    def tell(step: int, loss: float) -> None:
        if step % 1000 == 0:
            print(
                f"{name} {time.monotonic() - begun:5.0f} s step {step} loss {loss:.3f}", flush=True
            )

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
    weights = detector.write(net, given.out / "work" / f"{name}.safetensors", facts)
    net = detector.read(weights)  # as stored, in half precision
    found = scanned(net, data, translations(RADIUS, given.step), device)
    scan = given.out / "work" / f"{name}.npz"
    np.savez_compressed(scan, **found)
    with tarfile.open(given.out / f"{name}.tar", "w") as archive:
        for path in (weights, scan):
            archive.add(path, path.name)
    score = (found["iou"].astype(float) * found["match_confidence"]).mean()
    print(f"{name} done in {time.monotonic() - begun:.0f} s, score {score:.3f}", flush=True)


def scene_detectors(given: argparse.Namespace) -> None:
    """Train the two detectors of generated scenes that ship with the package."""
    begun = time.monotonic()
    device = chosen_device(given.device)
    made = scenes(given.scenes, seed=1)
    pixels = (made["images"] * 255).round().byte().permute(0, 2, 3, 1).contiguous()
    crops = Crops(pixels, made["objects"], torch.ones(len(pixels), 5, dtype=torch.bool))
    with tarfile.open(given.out / "scenes.tar", "w") as archive:
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
            path = given.out / "work" / f"scenes-{name}.safetensors"
            archive.add(detector.write(net, path, facts), path.name)
            print(f"scenes {name} {time.monotonic() - begun:.0f} s", flush=True)


def train_all(given: argparse.Namespace) -> None:
    """Train and scan all detectors at once, each in a process of its own."""
    begun = time.monotonic()
    torch.set_num_threads(1)  # a pool of threads would not survive the fork below
    parts = split() if given.data is None else unpack(given.data)
    parts = {name: images[: given.images] for name, images in parts.items()}
    crops, data = training_crops(parts["train"]), test_views(parts["test"])
    if given.objects is not None:
        data = KeyObjects(
            images=data["images"][: given.objects],
            objects=data["objects"][: given.objects],
            classes=data["classes"],
            names=data["names"][: given.objects],
        )
    print(
        f"{len(crops.pixels)} training crops, {len(data['images'])} key objects to test on, "
        f"{time.monotonic() - begun:.0f} s",
        flush=True,
    )
    (given.out / "work").mkdir(parents=True, exist_ok=True)
    # Forked before any of them uses an accelerator: they share the crops without a copy.
    fork = multiprocessing.get_context("fork")
    jobs = [fork.Process(target=one_level, args=(level, crops, data, given)) for level in JITTERS]
    jobs.append(fork.Process(target=scene_detectors, args=(given,)))
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    shutil.rmtree(given.out / "work")
    broken = [job.exitcode for job in jobs if job.exitcode]
    if broken:
        raise InputError(f"train: {len(broken)} of {len(jobs)} processes failed; see above")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study, or one of its parts; see the module."""
    parser = argparse.ArgumentParser(
        prog="orbical study detection",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command")
    packing = commands.add_parser("pack", help="write the images into one small file")
    packing.add_argument("folder", type=Path)
    training = commands.add_parser("train", help="train and scan the detectors")
    _add_training(training)
    reporting = commands.add_parser("report", help="write the page from stored results")
    reporting.add_argument("results", type=Path)
    reporting.add_argument("--page", type=Path, default=PAGE)
    given = parser.parse_args(arguments)
    if given.command == "pack":
        print(pack(given.folder))
    elif given.command == "train":
        train_all(given)
    else:
        if given.command is None:
            given = training.parse_args(["--out", "results/detection"])
            given.results, given.page = given.out, PAGE
            train_all(given)
        from .detection_page import report

        for path in report(given.results, given.page):
            print(path)


def _add_training(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", type=Path, nargs="?", help="folder of `pack`; none: the data set")
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--scenes", type=int, default=SCENES)
    parser.add_argument("--scene-steps", type=int, default=SCENE_STEPS)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of each training")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--step", type=int, default=STEP, help="pixels between shifts")
    parser.add_argument("--images", type=int, help="only the first images of each part")
    parser.add_argument("--objects", type=int, help="only the first objects to test on")


if __name__ == "__main__":
    main()
