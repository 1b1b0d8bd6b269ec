"""The audit of a detector: where in its view it sees, and whether its confidence knows.

The views are enlarged twice, so that shifts of 16 pixels are 32 pixels of the network's input, its
coarsest stride: a network without borders would give the same predictions there. What changes
at these
shifts comes from the border of the view and from what enters it. Shifts of a single pixel keep the
content, and change where the network samples.

The full size makes about 100,000 passes of 320 x 320 pixels, hours on two cores. A GPU is used if
torch finds one; a machine without a network needs `.audits/NAME` and the photographs carried over.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import orbical as ob

from . import detection_figures
from .audit import Outcome, Picture, Table, Tables
from .detection_tables import (
    CELL,
    RADIUS,
    SURE,
    found,
    maps_of,
    of_check,
    of_map,
    of_objects,
    of_rings,
    of_tests,
    subsets,
)
from .photographs import (
    Views,
    key_views,
    training_photographs,
    validation_photographs,
    whole_views,
)
from .verdicts import Verdict, stays_confident, verdict_of

__all__ = [
    "FULL", "GROUP", "INPUTS", "QUICK", "ROWS", "RULE", "audited", "decide", "shifted",
]  # fmt: skip

WINDOW, ENLARGE, WHOLE = 160, 2, 416
TOLERATED, STEADY = 0.10, 0.05
BATCH = 100 if torch.cuda.is_available() else 10
QUICK = {"step": 16, "fine": 1, "scales": 5, "photographs": 240, "known": 60, "pixel": 350}
FULL = {"step": 2, "fine": 4, "scales": 17, "photographs": 240, "known": 350, "pixel": 350}
OTHERS, OTHERS_PIXEL = "shifts, training photographs", "one pixel, training photographs"
GROUP = (
    "shifts of the view by up to 32 pixels in steps of 16, and by one pixel; scales from 0.75 to "
    "1.33; the mirror image"
)
INPUTS = (
    "photographs of COCO val2017 (long side 400 pixels), which the detector was not trained on. "
    "For shifts and scales, one key object of each photograph that has one: the largest that a "
    "view of 160 x 160 pixels sees whole at all shifts, the view enlarged twice; for the mirror "
    "image, all 240 photographs, whole"
)

RULE = (
    "A key object is found where the detection that fits it best has its class, an IoU of at "
    "least 0.5 and the detector's working confidence. **Invariant** if no key object is found "
    "at one shift and lost at another, and no confidence changes by more than 1e-4. **Within "
    "tolerance** if less than 5 % of the key objects are found at one shift and lost at "
    "another (upper limit). Otherwise look at the objects that are found in the middle of the "
    "view with a confidence of at least 0.5, and at the share of them that is lost at some "
    "shift: **not invariant and confident** if it exceeds 10 % (lower limit), **not invariant, "
    "low confidence there** if it is below 10 % (upper limit), else **not invariant**. Shifts "
    "are those of up to 32 pixels in steps of 16, and every key object is wholly in view at "
    "all of them. What shifts of one pixel do counts as confirmed if, on other photographs, "
    "more than 5 % of the key objects are found at one of them and lost at another (lower "
    "limit)."
)

ROWS = "".join(
    f"{{%- set {name} = objects | selectattr('transformation', 'equalto', '{row}') | first -%}}"
    for name, row in (
        ("shifts", "shifts"),
        ("pixel", "one pixel"),
        ("scales", "scales"),
        ("mirror", "mirror"),
        ("training", OTHERS),
        ("training_pixel", OTHERS_PIXEL),
    )
)
"""Names for the rows of the first table, for the texts of a page."""


def shifted(detector: nn.Module, views: Views, group: str, working: float, store: Path) -> ob.Scan:
    """Scan a detector in a view of 160 pixels that moves inside photographs."""
    return ob.scan(
        {"detector": detector},
        views,
        group=group,
        task=ob.tasks.Detection(
            ob.actions.Window(WINDOW), score="recall", confident=working, most=20
        ),
        out=store,
        batch_size=BATCH,
        progress=False,
    )


def mirrored(detector: nn.Module, views: Views, working: float, store: Path) -> ob.Scan:
    """Scan a detector on whole photographs and their mirror images."""
    task = ob.tasks.Detection(
        ob.actions.Images(), score="ap", confident=working, most=60, size=(WHOLE, WHOLE)
    )
    mirror = ob.groups.from_matrices(
        plane=[np.eye(2), np.diag([-1.0, 1])], coords={"mirror": [0, 1]}
    )
    model = {"detector": detector}
    options: Any = {"batch_size": BATCH // 5, "progress": False}
    return ob.scan(model, views, group=mirror, task=task, out=store, **options)


def audited(
    cropped: nn.Module,
    whole: nn.Module,
    working: float,
    size: Mapping[str, Any],
    seed: int,
    folder: Path,
) -> Outcome:
    """Run all scans of a detector, and measure.

    Args:
        cropped: the detector for enlarged views.
        whole: the same for whole photographs.
        working: the confidence from which its users take a detection.
        size: `QUICK` or `FULL`.
        seed: of the intervals.
        folder: keeps the scans.
    """
    photographs = validation_photographs()[: size["photographs"]]
    views = key_views(photographs, WINDOW, RADIUS)
    training = training_photographs()
    groups = {
        "shifts": f"translations:{RADIUS}:{size['step']}",
        "one pixel": f"translations:{size['fine']}:1",
        "scales": f"scales:0.75:1.3333:{size['scales']}",
    }
    scans = {
        name: shifted(cropped, views, group, working, folder / f"{group.replace(':', '-')}.zarr")
        for name, group in groups.items()
    }
    again = {
        name: shifted(
            cropped,
            key_views(training[: size[count]], WINDOW, RADIUS),
            group,
            working,
            folder / f"training-{count}.zarr",
        )
        for name, count, group in (
            (OTHERS, "known", f"translations:{RADIUS}:{CELL}"),
            (OTHERS_PIXEL, "pixel", groups["one pixel"]),
        )
    }
    objects = whole_views(photographs, WHOLE)
    flips = mirrored(whole, objects, working, folder / "flips.zarr")
    shifts = scans["shifts"]
    scans["mirror"] = flips
    tables = {
        "objects": Table(
            "Key objects found untransformed (in the middle of the view), on average over the "
            "transformations and at the worst one (chosen on the other half of the photographs); "
            "the share that is found at one transformation and lost at another; and of those found "
            f"untransformed with a confidence of at least {SURE:g}, the share lost elsewhere.",
            [
                of_objects(name, scan, working, seed, chosen)
                for name, scan in {**scans, **again}.items()
                for name, chosen in subsets(name, scan).items()
            ],
        ),
        "rings": Table(
            "By distance from the middle of the view: the share of key objects found, the "
            "confidence of their detections (0 where missed), the average precision of all "
            "detections in view, and confidence minus precision of all detections above the "
            "working confidence, with their calibration error (ECE, 10 bins).",
            of_rings(shifts, working, seed),
        ),
        "tests": Table(
            "Differences from the middle of the view, or from the upright photograph, paired by "
            "photograph (sign-flip tests, p values corrected by Holm's method).",
            of_tests(scans, working, seed),
        ),
        "check": Table(
            "Is the model read correctly? Mean average precision at IoU 0.5 over the classes of "
            "whole photographs, upright and mirrored.",
            of_check(flips, objects[1][..., 4].numpy()),
        ),
        "map": Table(
            "The maps in numbers: shifts of the view's content to the right and up, in pixels.",
            of_map(shifts, working),
        ),
    }
    pictures = {
        "positions": Picture(
            detection_figures.positions(maps_of(shifts, working), RADIUS),
            "Maps over the shifts of the view: key objects found, mean confidence, average "
            "precision, and confidence minus precision",
        ),
        "steadiness": Picture(
            detection_figures.steadiness(
                {name: found(scan, working) for name, scan in scans.items()}
            ),
            "Share of key objects that are always found, sometimes and never, for shifts, shifts "
            "of one pixel, scales and the mirror image",
        ),
    }
    return Outcome(tables, pictures)


def decide(name: str, tables: Tables) -> dict[str, Verdict]:
    """Apply the rule."""
    row = next(row for row in tables["objects"] if row["transformation"] == "shifts")
    changes = row["found and lost"]
    exact = changes["value"] == 0 and row["confidence varies by"]["high"] < 1e-4
    confident = stays_confident(row["found confidently and lost"], high=TOLERATED, low=TOLERATED)
    return {name: verdict_of(changes, STEADY, exact=exact, confident=confident)}
