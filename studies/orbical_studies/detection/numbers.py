"""The detection study's numbers: from summaries of scans to the rows of its tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..data.coco_images import FIVE_CLASSES
from ..pages import Row
from .scans import Results, WholeScans
from .settings import JITTERS, Trial
from .summaries import Array, Summary

HIT = 0.5
"""IoU from which a consensus is the key object."""

ALIKE = 0.9
"""Correlation from which two plots are called alike."""


def peak_width(mean: Array, step: float) -> float:
    """Side in pixels of the square of shifts whose mean score is at least half of the largest.

    >>> peak_width(np.array([0.1, 0.4, 0.8, 0.4, 0.1] * 5), 2.0).__round__(2)
    7.75
    """
    return float(np.sqrt((mean >= mean.max() / 2).sum()) * step)


def level_rows(results: Results) -> list[Row]:
    """One row a training: how good it is at the centre, over the orbit and at the corners."""
    return [_level_row(trial, found, results) for trial, found in results.summaries.items()]


def _level_row(trial: Trial, found: Summary, results: Results) -> Row:
    centre = results.group.identity
    corners = [0, found.side - 1, -found.side, -1]
    return {
        "jitter": trial.jitter,
        "seed": trial.seed,
        "centre": float(found.score[centre]),
        "orbit": float(found.score.mean()),
        "corner": float(found.score[corners].mean()),
        "width_px": peak_width(found.score, found.step_px),
        "iou_centre": float(found.iou[centre]),
        "iou_orbit": float(found.iou.mean()),
        "ap_centre": float(found.ap[centre]),
        "ap_orbit": float(found.ap.mean()),
        "ece_centre": float(found.ece[centre]),
        "ece_orbit": _known(found.ece, np.mean),
        "gap": float(found.gap),
    }


def class_rows(results: Results) -> list[Row]:
    """One row a training and class: the mean score at the centre and over the orbit."""
    return [
        {
            "jitter": trial.jitter,
            "seed": trial.seed,
            "class": name,
            "objects": int(mine.sum()),
            "centre": float(found.at_centre[mine].mean()),
            "orbit": float(found.over_orbit[mine].mean()),
        }
        for trial, found in results.summaries.items()
        for label, name in enumerate(FIVE_CLASSES)
        if (mine := found.labels == label).any()
    ]


def map_rows(results: Results) -> list[Row]:
    """One row a shift: mean score, average precision and calibration error of each level.

    Means over the seeds.
    """
    columns = {
        f"{name}_{jitter}": mean_map(results.of(jitter), name)
        for jitter in JITTERS
        for name in ("score", "ap", "ece")
    }
    coords = results.group.coords
    return [
        {"dx": int(coords["dx"][k]), "dy": int(coords["dy"][k])}
        | {name: round(float(values[k]), 5) for name, values in columns.items()}
        for k in range(len(results.group))
    ]


def section_rows(results: Results) -> list[Row]:
    """One row a training and shift along dx at dy = 0: the mean score."""
    coords = results.group.coords
    return [
        {
            "jitter": trial.jitter,
            "seed": trial.seed,
            "dx": int(coords["dx"][k]),
            "score": round(float(found.score[k]), 5),
        }
        for trial, found in results.summaries.items()
        for k in np.flatnonzero(coords["dy"] == 0)
    ]


def mean_map(summaries: Sequence[Summary], name: str) -> Array:
    """Mean over seeds of one of the maps over shifts, `[K]`; NaN where no seed has a value."""
    stacked = np.stack([getattr(one, name) for one in summaries]).astype(float)
    known = ~np.isnan(stacked)
    total = np.where(known, stacked, 0.0).sum(0)
    return np.divide(total, known.sum(0), out=np.full(len(total), np.nan), where=known.any(0))


def consensus_rows(results: Results) -> list[Row]:
    """One row a training: do truth and consensus draw the same plot, over all key objects?"""
    rows = []
    for trial, found in results.summaries.items():
        hit = found.consensus_iou >= HIT
        book = FIVE_CLASSES.index("book")
        rows.append(
            {
                "jitter": trial.jitter,
                "seed": trial.seed,
                "objects": len(hit),
                "median": _known(found.agreement, np.median),
                "alike": _known(found.agreement, _share_alike),
                "hit": float(hit.mean()),
                "median_hit": _known(found.agreement[hit], np.median),
                "alike_hit": _known(found.agreement[hit], _share_alike),
                "median_miss": _known(found.agreement[~hit], np.median),
                "consensus_vs_truth": _known(found.consensus_vs_truth, np.mean),
                "book": float((found.consensus_label == book).mean()),
            }
        )
    return rows


def _share_alike(values: Array) -> float:
    return float((values > ALIKE).mean())


def _known(values: Array, measure: Callable[[Array], float]) -> float:
    """Measure what is known, NaN where nothing is."""
    known = values[~np.isnan(values)].astype(float)
    return float(measure(known)) if len(known) else float("nan")


def object_rows(results: Results) -> list[Row]:
    """One row a level and key object, means over the seeds."""
    rows = []
    for jitter in JITTERS:
        found = results.of(jitter)
        columns = {
            "centre": mean_map(found, "at_centre"),
            "orbit": mean_map(found, "over_orbit"),
            "correlation": mean_map(found, "agreement"),
            "consensus_iou": mean_map(found, "consensus_iou"),
        }
        for place, label in enumerate(found[0].labels):
            kind = {"jitter": jitter, "object": place, "class": FIVE_CLASSES[label]}
            numbers = {name: round(float(values[place]), 4) for name, values in columns.items()}
            rows.append(kind | numbers)
    return rows


def dark_rows(results: Results) -> list[Row]:
    """One row a training: how many dark spots there are, and what is lost there."""
    rows = []
    for trial, found in results.summaries.items():
        dark, objects, lost, wrong_first = (int(count) for count in found.dark)
        rows.append(
            {
                "jitter": trial.jitter,
                "seed": trial.seed,
                "dark": dark,
                "share": dark / (len(found.labels) * len(found.score)),
                "objects": objects,
                "box_lost": lost / max(1, dark),
                "wrong_first": wrong_first / max(1, dark),
                "confidence_lost": (dark - lost - wrong_first) / max(1, dark),
            }
        )
    return rows


def period_rows(results: Results) -> list[Row]:
    """One row a training and lag: the mean autocorrelation of single plots along dx and dy."""
    return [
        {
            "jitter": trial.jitter,
            "seed": trial.seed,
            "lag_px": (place + 1) * found.step_px,
            "objects": int(found.period_objects),
            "dx": float(along[0]),
            "dy": float(along[1]),
        }
        for trial, found in results.summaries.items()
        for place, along in enumerate(found.period)
    ]


def certainty_rows(whole: WholeScans) -> list[Row]:
    """One row a level of one seed: how sure its detections are, and how often they are right."""
    rows = []
    for jitter, scan in whole.scans.items():
        row: Row = {"jitter": jitter}
        every = slice(None)
        for place, elements in (("centre", [whole.group.identity]), ("orbit", every)):
            correct = scan["box_correct"][:, elements]
            judged = ~np.isnan(correct)
            row[f"detections_{place}"] = int(judged.sum())
            sure = scan["box_score"][:, elements][judged]
            row[f"confidence_{place}"] = _known(sure, np.mean)
            row[f"precision_{place}"] = _known(correct[judged], np.mean)
        rows.append(row)
    return rows
