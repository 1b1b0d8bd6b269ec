"""The audit of a detector: where in its view it sees, and whether its confidence knows.

The views are enlarged twice, so that shifts of 16 pixels are 32 pixels of the network's input, its
coarsest stride: a network without borders would give the same answers there. What changes at these
shifts comes from the border of the view and from what enters it. Shifts of a single pixel keep the
content, and change where the network samples.
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
from .audit import Outcome, Picture, Rows, Table, Tables, Verdict
from .photographs import (
    Views,
    key_views,
    training_photographs,
    validation_photographs,
    whole_views,
)
from .statistics import holm, interval, share

__all__ = [
    "FULL",
    "GROUP",
    "INPUTS",
    "QUICK",
    "RULE",
    "audited",
    "decide",
    "mean_precision",
    "shifted",
]

WINDOW, RADIUS, CELL, ENLARGE, WHOLE = 160, 32, 16, 2, 416
SURE, TOLERATED, STEADY, OVERLAP = 0.5, 0.10, 0.05, 0.5
QUICK = {"step": 16, "fine": 1, "scales": 5, "photographs": 240, "known": 100}
FULL = {"step": 2, "fine": 4, "scales": 17, "photographs": 240, "known": 350}
DRAWS = 1000
OTHERS = "shifts, training photographs"
UNKNOWN = {"value": 0.0, "low": 0.0, "high": 1.0, "n": 0}
"""A share of nothing: it may be anything."""
GROUP = (
    "shifts of the view by up to 32 pixels in steps of 16, and by one pixel; scales from 0.75 to "
    "1.33; the mirror image"
)
INPUTS = (
    "photographs of COCO val2017 (long side 400 pixels), which the detector was not trained on. "
    "For shifts and scales, one key object of each photograph that has one: the largest that a "
    "view of 160 x 160 pixels sees whole at all shifts, the view enlarged twice; for the mirror image, all "
    "240 photographs, whole"
)

RULE = (
    "A key object is found where the detection that fits it best has its class, an IoU of at least "
    "0.5 and the detector's working confidence. **Exact** if no key object is found at one shift "
    "and lost at another, and no confidence changes by more than 1e-4. **Equivariant to "
    "precision** if less than 5 % of the key objects are found at one shift and lost at another "
    "(upper limit). Otherwise look at the objects that are found in the middle of the view with a "
    "confidence of at least 0.5, and at the share of them that is lost at some shift: **broken and "
    "sure** if it exceeds 10 % (lower limit), **knows when it fails** if it is below 10 % (upper "
    "limit), else **broken**. Shifts are those of up to 32 pixels in steps of 16, and every key "
    "object is wholly in view at all of them."
)


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
        batch_size=10,
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
    options: Any = {"batch_size": 2, "progress": False}
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
    known = key_views(training_photographs()[: size["known"]], WINDOW, RADIUS)
    groups = {
        "shifts": f"translations:{RADIUS}:{size['step']}",
        "one pixel": f"translations:{size['fine']}:1",
        "scales": f"scales:0.75:1.3333:{size['scales']}",
    }
    scans = {
        name: shifted(cropped, views, group, working, folder / f"{group.replace(':', '-')}.zarr")
        for name, group in groups.items()
    }
    whole_cells = f"translations:{RADIUS}:{CELL}"
    again = shifted(cropped, known, whole_cells, working, folder / "training.zarr")
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
                for name, scan in {**scans, OTHERS: again}.items()
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
            of_check(flips, objects),
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


def values(scan: ob.Scan, name: str) -> np.ndarray:
    """Return a variable of the only model, `[sample, element, ...]`."""
    return np.asarray(scan.data[name].isel(model=0).values)


def found(scan: ob.Scan, working: float) -> np.ndarray:
    """Return whether each key object is found, `[sample, element]`."""
    return (values(scan, "iou") >= OVERLAP) & (values(scan, "match_confidence") >= working)


def middle(scan: ob.Scan) -> int:
    """Return the place of the identity among the elements."""
    coords = scan.data.coords
    moved = np.zeros(scan.data.sizes["element"])
    for name, identity in (("dx", 0), ("dy", 0), ("scale", 1), ("mirror", 0)):
        moved += np.abs(coords[name].values - identity) if name in coords else 0
    return int(moved.argmin())


def subsets(name: str, scan: ob.Scan) -> dict[str, np.ndarray]:
    """Return the elements of a row: of finer shifts, first those of whole cells."""
    every = np.ones(scan.data.sizes["element"], bool)
    if name != "shifts":
        return {name: every}
    whole = (scan.data["dx"].values % CELL == 0) & (scan.data["dy"].values % CELL == 0)
    return {name: whole} if whole.all() else {name: whole, "finer shifts": every}


def of_objects(
    name: str, scan: ob.Scan, working: float, seed: int, chosen: np.ndarray
) -> dict[str, Any]:
    """Return a row: how many key objects are found, and for how many that changes."""
    hit, confidence = found(scan, working)[:, chosen], values(scan, "match_confidence")[:, chosen]
    start = int(chosen[: middle(scan)].sum())
    sure = hit[:, start] & (confidence[:, start] >= SURE)
    spread = np.ptp(np.nan_to_num(confidence), axis=1)
    return {
        "transformation": name,
        "key objects": len(hit),
        "found untransformed": share(hit[:, start]),
        "on average": interval(hit.mean(1), resamples=DRAWS, seed=seed),
        "at the worst": at_worst(hit, seed),
        "found and lost": share(hit.any(1) & ~hit.all(1)),
        "found surely and lost": share(~hit[sure].all(1)) if sure.any() else UNKNOWN,
        "confidence varies by": interval(spread, resamples=DRAWS, seed=seed),
    }


def at_worst(hit: np.ndarray, seed: int) -> dict[str, float]:
    """Return the share found at the worst element, chosen on one half and measured on the other."""
    order = np.random.default_rng(seed).permutation(len(hit))
    halves = np.array_split(order, 2)
    measured = [hit[there, hit[here].mean(0).argmin()] for here, there in (halves, halves[::-1])]
    return share(np.concatenate(measured))


def ring_of(scan: ob.Scan) -> np.ndarray:
    """Return the ring of each shift: 0 in the middle, 1 up to half of the radius, 2 beyond."""
    far = np.maximum(abs(scan.data["dx"].values), abs(scan.data["dy"].values))
    return np.ceil(far / (RADIUS / 2)).astype(int)


def detections(scan: ob.Scan, elements: np.ndarray, working: float) -> list[np.ndarray]:
    """Return for each sample the confidence and correctness `[n, 2]` of its judged detections."""
    pairs = np.stack([values(scan, "box_score"), values(scan, "box_correct")], -1)[:, elements]
    flat = pairs.reshape(len(pairs), -1, 2)
    return [rows[(rows[:, 0] >= working) & ~np.isnan(rows[:, 1])] for rows in flat]


def of_rings(scan: ob.Scan, working: float, seed: int) -> Rows:
    """Return a row for each ring around the middle of the view."""
    hit, rings = found(scan, working), ring_of(scan)
    names = ("middle", f"up to {RADIUS // 2} px", f"{RADIUS // 2} to {RADIUS} px")
    options: Any = {"resamples": DRAWS, "seed": seed}
    rows = []
    for place, name in enumerate(names):
        chosen = np.flatnonzero(rings == place)
        pairs = detections(scan, chosen, working)
        every = np.arange(len(pairs))

        def too_sure(drawn: np.ndarray, pairs: list[np.ndarray] = pairs) -> float:
            return float(np.subtract(*np.concatenate([pairs[i] for i in drawn]).mean(0)))

        def ece(drawn: np.ndarray, pairs: list[np.ndarray] = pairs) -> float:
            both = torch.from_numpy(np.concatenate([pairs[i] for i in drawn]))
            return float(ob.calibration.ece(both[:, 0], both[:, 1] > 0, bins=10))

        confidence = values(scan, "match_confidence")[:, chosen].mean(1)
        precision = values(scan, "ap")[:, chosen].mean(1)
        rows.append(
            {
                "distance": name,
                "shifts": len(chosen),
                "found": interval(hit[:, chosen].mean(1), **options),
                "confidence": interval(confidence, **options),
                "average precision": interval(precision, **options),
                "detections": sum(map(len, pairs)),
                "too sure by": interval(every, too_sure, **options),
                "ECE": interval(every, ece, resamples=300, seed=seed),
            }
        )
    return rows


def of_tests(scans: Mapping[str, ob.Scan], working: float, seed: int) -> Rows:
    """Return a row for each difference from the middle, with its corrected p value."""
    differences = {}
    for name, scan in scans.items():
        hit, sure = found(scan, working).astype(float), values(scan, "match_confidence")
        start = middle(scan)
        rings = (
            ring_of(scan) if name == "shifts" else (np.arange(hit.shape[1]) != start).astype(int)
        )
        for ring in range(1, rings.max() + 1):
            away = rings == ring
            label = f"{name}, ring {ring}" if rings.max() > 1 else name
            for what, array in (("found", hit), ("confidence", sure), ("AP", values(scan, "ap"))):
                change = array[:, away].mean(1) - array[:, start]
                differences[f"{label}: {what}"] = change[~np.isnan(change)]
    adjusted = holm({name: sign_flip(change, seed) for name, change in differences.items()})
    return [
        {
            "difference": name,
            "change": interval(change, resamples=DRAWS, seed=seed),
            "p": f"{adjusted[name]:.3f}",
        }
        for name, change in differences.items()
    ]


def sign_flip(change: np.ndarray, seed: int, draws: int = 9999) -> float:
    """Return the p value of a mean of 0, if each change had either sign with equal chance."""
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(draws, len(change)))
    extreme = np.abs(signs @ change) >= abs(change.sum()) - 1e-12
    return float((1 + extreme.sum()) / (1 + draws))


def mean_precision(
    scores: np.ndarray, correct: np.ndarray, labels: np.ndarray, truth: np.ndarray
) -> float:
    """Return the mean over classes of the average precision of all detections of a class.

    Args:
        scores: confidences of detections, in any shape; NaN where there is none.
        correct: 1, 0, or NaN where a detection is not judged.
        labels: their classes.
        truth: the classes of the objects.
    """
    precisions = []
    for kind in np.unique(truth[~np.isnan(truth)]):
        mine = (labels == kind) & ~np.isnan(correct) & ~np.isnan(scores)
        count = torch.tensor(float((truth == kind).sum()))
        ranked = torch.from_numpy(scores[mine].astype(np.float64))
        right = torch.from_numpy(correct[mine] > 0)
        precisions.append(float(ob.tasks.average_precision(ranked, right, count)))
    return float(np.mean(precisions))


def of_check(scan: ob.Scan, views: Views) -> Rows:
    """Return the mean average precision of whole photographs, upright and mirrored."""
    kinds = views[1][..., 4].numpy()
    columns = ("box_score", "box_correct", "box_label")
    arrays = [values(scan, name) for name in columns]
    start = middle(scan)
    rows: Rows = []
    for name, element in (("upright", start), ("mirrored", 1 - start)):
        chosen = [array[:, element] for array in arrays]
        result = mean_precision(chosen[0], chosen[1], chosen[2], kinds)
        rows.append(
            {
                "photographs": name,
                "number": len(kinds),
                "objects": int((~np.isnan(kinds)).sum()),
                "classes": len(np.unique(kinds[~np.isnan(kinds)])),
                "mAP at IoU 0.5": result,
            }
        )
    return rows


def decide(name: str, tables: Tables) -> dict[str, Verdict]:
    """Apply the rule."""
    row = next(row for row in tables["objects"] if row["transformation"] == "shifts")
    changes, surely = row["found and lost"], row["found surely and lost"]
    if changes["value"] == 0 and row["confidence varies by"]["high"] < 1e-4:
        return {name: Verdict.EXACT}
    if changes["high"] < STEADY:
        return {name: Verdict.PRECISE}
    if surely["low"] > TOLERATED:
        return {name: Verdict.SURE}
    return {name: Verdict.KNOWS if surely["high"] < TOLERATED else Verdict.BROKEN}


def maps_of(scan: ob.Scan, working: float) -> dict[str, np.ndarray]:
    """Return what the maps over the shifts show, `[element]` each."""
    pairs = [
        np.concatenate(detections(scan, np.array([element]), working))
        for element in range(scan.data.sizes["element"])
    ]
    return {
        "key objects found": found(scan, working).mean(0),
        "confidence": values(scan, "match_confidence").mean(0),
        "average precision": values(scan, "ap").mean(0),
        "confidence − precision": np.array([np.subtract(*rows.mean(0)) for rows in pairs]),
    }
