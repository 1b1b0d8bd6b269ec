"""What is measured of the scans of a detector: tables and maps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

import orbical as ob

from .audit import Rows
from .statistics import holm, interval, share

__all__ = [
    "found", "maps_of", "mean_precision", "of_check", "of_map", "of_objects", "of_rings",
    "of_tests", "subsets",
]  # fmt: skip

RADIUS, CELL = 32, 16
SURE, OVERLAP = 0.5, 0.5
RINGS = ("middle", "up to 16 px", "16 to 32 px")
DRAWS = 1000
UNKNOWN = {"value": 0.0, "low": 0.0, "high": 1.0, "n": 0}
"""A share of nothing: it may be anything."""


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
        "found confidently and lost": share(~hit[sure].all(1)) if sure.any() else UNKNOWN,
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
    options: Any = {"resamples": DRAWS, "seed": seed}
    rows = []
    for place, name in enumerate(RINGS):
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
                "confidence minus accuracy": interval(every, too_sure, **options),
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
            label = f"{name}, {RINGS[ring]}" if name == "shifts" else name
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


def of_check(scan: ob.Scan, kinds: np.ndarray) -> Rows:
    """Return the mean average precision of whole photographs, upright and mirrored."""
    score, correct, label = (values(scan, f"box_{end}") for end in ("score", "correct", "label"))

    def precision(place: int) -> float:
        return mean_precision(score[:, place], correct[:, place], label[:, place], kinds)

    return [
        {
            "photographs": seen,
            "number": len(kinds),
            "objects": int((~np.isnan(kinds)).sum()),
            "classes": len(np.unique(kinds[~np.isnan(kinds)])),
            "mAP at IoU 0.5": precision(place),
        }
        for place, seen in enumerate(("upright", "mirrored"))
    ]


def of_map(scan: ob.Scan, working: float) -> Rows:
    """Return a row for each shift by whole cells."""
    chosen = subsets("shifts", scan)["shifts"]
    right, up = (scan.data[name].values.astype(int) for name in ("dx", "dy"))
    maps = maps_of(scan, working)
    return [
        {"right": int(right[place]), "up": int(up[place])}
        | {name: float(column[place]) for name, column in maps.items()}
        for place in np.flatnonzero(chosen)
    ]


def maps_of(scan: ob.Scan, working: float) -> dict[str, np.ndarray]:
    """Return what the maps over the shifts show, `[element]` each."""
    pairs = [
        np.concatenate(detections(scan, np.array([element]), working))
        for element in range(scan.data.sizes["element"])
    ]
    return {
        "found": found(scan, working).mean(0),
        "confidence": values(scan, "match_confidence").mean(0),
        "AP": values(scan, "ap").mean(0),
        "confidence minus accuracy": np.array([np.subtract(*rows.mean(0)) for rows in pairs]),
    }
