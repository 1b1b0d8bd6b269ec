"""What the detection study keeps of every scan: maps over shifts, and a few numbers an object.

A whole scan of 345 key objects at 1,089 shifts takes ten million bytes, its summary thirty
thousand, so that every training can be brought from one machine to another. Whole scans are
summarised by the same function.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from orbical.calibration import ece
from orbical.datasets.key_objects import KeyObjects
from orbical.errors import InputError
from orbical.groups import Group
from orbical.tasks.detection_matching import Detections, average_precision, pair

from .settings import RADIUS, TASK

Array = NDArray[Any]
Scan = Mapping[str, Array]
DARK = 0.2
"""How far a score lies below the median of its neighbours at a dark spot."""

FARTHEST_LAG = 16
"""Pixels of the farthest lag at which a plot is compared with itself."""


@dataclass(frozen=True)
class Summary:
    """What the tables need of one scan of n key objects at K shifts.

    Attributes:
        labels: class of each key object, `[n]`.
        score: mean IoU x confidence of the key objects at each shift, `[K]`.
        iou: mean IoU, `[K]`.
        ap: average precision of all detections of all views at each shift, `[K]`.
        ece: calibration error of the same, `[K]`; NaN where nothing was detected.
        at_centre: score of each object without a shift, `[n]`.
        over_orbit: its mean over all shifts, `[n]`.
        gap: root mean square of the invariance gaps.
        agreement: correlation of each object's plots against truth and consensus, `[n]`; NaN
            where one of them is constant.
        consensus_vs_truth: score of the consensus, `[n]`; NaN where there is none.
        consensus_iou: IoU of its first cluster with the key object, 0 for another class or none.
        consensus_label: class of its first cluster, -1 where there is none.
        dark: dark spots, objects with one, spots where the box is lost, where a wrong one is first.
        period: mean autocorrelation of single plots along dx and dy at each lag, `[lags, 2]`.
        period_objects: how many objects these are means of.
    """

    labels: Array
    score: Array
    iou: Array
    ap: Array
    ece: Array
    at_centre: Array
    over_orbit: Array
    gap: Array
    agreement: Array
    consensus_vs_truth: Array
    consensus_iou: Array
    consensus_label: Array
    dark: Array
    period: Array
    period_objects: Array

    def write(self, path: Path) -> Path:
        """Write it as one small file."""
        np.savez_compressed(path, **vars(self))
        return path

    @classmethod
    def read(cls, path: Path) -> Summary:
        """Read what `write` wrote."""
        with np.load(path, allow_pickle=False) as arrays:
            lacking = [field.name for field in fields(cls) if field.name not in arrays.files]
            if lacking:
                raise InputError(f"results: {path.name!r} lacks {', '.join(lacking)}")
            return cls(**{field.name: arrays[field.name] for field in fields(cls)})

    @property
    def side(self) -> int:
        """Shifts along one side of the heat map."""
        return round(len(self.score) ** 0.5)

    @property
    def step_px(self) -> int:
        """Pixels from one shift to the next."""
        return 2 * RADIUS // (self.side - 1)


def summarised(scan: Scan, data: KeyObjects, group: Group) -> Summary:
    """Put a whole scan into what the tables need.

    Args:
        scan: variables of `STORED` by name, `[n, K, ...]`.
        data: the key objects.
        group: the shifts.
    """
    scan = {name: values.astype(np.float32) for name, values in scan.items()}
    side = round(len(group) ** 0.5)
    score = scan["iou"] * scan["match_confidence"]
    period, repeated = _period(score, side)
    first = np.nan_to_num(scan["consensus"][:, 0], nan=-1.0)
    return Summary(
        labels=data["objects"][:, 0, 4].numpy().astype(np.int8),
        score=score.mean(0),
        iou=scan["iou"].mean(0),
        ap=ap_along(scan, seen_objects(data, group)),
        ece=ece_along(scan),
        at_centre=score[:, group.identity],
        over_orbit=score.mean(1),
        gap=np.sqrt((scan["invariance_gap"].astype(float) ** 2).mean()),
        agreement=agreement(scan).astype(np.float32),
        consensus_vs_truth=scan["consensus_vs_truth"],
        consensus_iou=_consensus_overlap(first, data),
        consensus_label=first[:, 5].astype(np.int8),
        dark=_dark_spots(scan, side),
        period=period,
        period_objects=np.array(repeated),
    )


def seen_objects(data: KeyObjects, group: Group) -> Array:
    """Count the objects that all views of a shift show, `[K]`."""
    moved = TASK.output.move(group, data["objects"][None])
    nothing = Detections(*(torch.zeros(1, 1, 1, *tail) for tail in ((4,), (), ())))
    counted = pair(nothing, moved, torch.tensor([0.0, 0, *TASK.size])).counted
    return counted.sum((1, 2)).numpy()


def ap_along(scan: Scan, objects: Array) -> Array:
    """Average precision over all samples at each shift, `[K]`.

    Args:
        scan: as for `summarised`.
        objects: how many there are to find at each shift, `[K]`.
    """
    ranked = np.where(np.isnan(scan["box_correct"]), np.nan, scan["box_score"])
    confidence, correct = (
        torch.from_numpy(part.transpose(1, 0, 2).reshape(len(objects), -1))
        for part in (ranked, np.nan_to_num(scan["box_correct"]))
    )
    return average_precision(confidence, correct > 0, torch.from_numpy(objects)).numpy()


def ece_along(scan: Scan) -> Array:
    """Calibration error of all detections at each shift, `[K]`; NaN where nothing was detected."""
    found = []
    for element in range(scan["box_correct"].shape[1]):
        correct = scan["box_correct"][:, element].ravel()
        judged = ~np.isnan(correct)
        sure = scan["box_score"][:, element].ravel()[judged]
        found.append(float(ece(sure, correct[judged] > 0)) if judged.any() else np.nan)
    return np.array(found, np.float32)


def agreement(scan: Scan) -> Array:
    """Correlation of the plots against truth and consensus of each object, `[n]`."""
    return correlation(
        (scan["iou"] * scan["match_confidence"]).astype(float),
        np.nan_to_num(scan["score_vs_consensus"]).astype(float),
    )


def correlation(first: Array, second: Array) -> Array:
    """Pearson's correlation of rows `[n, K]`, NaN where one of them is constant.

    >>> correlation(np.array([[1.0, 2, 3], [1, 1, 1]]), np.array([[2.0, 4, 6], [1, 2, 3]]))
    array([ 1., nan])
    """
    a, b = (part - part.mean(1, keepdims=True) for part in (first, second))
    size = np.sqrt((a**2).sum(1) * (b**2).sum(1))
    return np.divide((a * b).sum(1), size, out=np.full(len(a), np.nan), where=size > 1e-9)


def _consensus_overlap(first: Array, data: KeyObjects) -> Array:
    """IoU of the consensus' first cluster `[n, 6]` with the key object."""
    rows = torch.from_numpy(first[:, None])
    found = Detections(rows[..., :4].clamp_min(0), rows[..., 4], rows[..., 5])
    view = torch.tensor([0.0, 0, *TASK.size])
    return pair(found, data["objects"][:, :1], view).overlap[:, 0, 0].numpy()


def neighbours_median(maps: Array, side: int) -> Array:
    """Median of the eight neighbours of each shift, `[n, K]`; missing at the rim are left out."""
    grid = np.pad(maps.reshape(-1, side, side), ((0, 0), (1, 1), (1, 1)), constant_values=np.nan)
    shifted = [
        grid[:, 1 + i : 1 + i + side, 1 + j : 1 + j + side]
        for i in (-1, 0, 1)
        for j in (-1, 0, 1)
        if (i, j) != (0, 0)
    ]
    ranked = np.sort(np.stack(shifted), 0)  # NaN last
    count = (~np.isnan(ranked)).sum(0)
    middle = [
        np.take_along_axis(ranked, place[None], 0)[0] for place in ((count - 1) // 2, count // 2)
    ]
    return ((middle[0] + middle[1]) / 2).reshape(maps.shape)


def _dark_spots(scan: Scan, side: int) -> Array:
    """Count dark spots, objects with one, and what is lost there; see `Summary.dark`.

    A dark spot is a shift whose score lies `DARK` below the median of its eight neighbours. The
    box is lost where its IoU falls below the threshold; a wrong box comes first where the match
    keeps its IoU, but the most confident detection is not right; only confidence is lost otherwise.
    """
    score = scan["iou"] * scan["match_confidence"]
    dark = neighbours_median(score, side) - score >= DARK
    lost = dark & (scan["iou"] < TASK.threshold)
    wrong_first = dark & ~lost & ~(scan["box_correct"][..., 0] > 0)
    return np.array([dark.sum(), dark.any(1).sum(), lost.sum(), wrong_first.sum()])


def _period(score: Array, side: int) -> tuple[Array, int]:
    """Mean autocorrelation of single plots `[lags, 2]` along dx and dy, and of how many.

    A network of stride 8 sees a shift by 8 pixels as the same image on the next cell. Taken are
    the objects with a mean score above `DARK`; what changes slowly is taken out.
    """
    maps = score.reshape(-1, side, side).astype(float)
    maps = maps[maps.mean((1, 2)) > DARK]
    maps = maps - neighbourhood_mean(maps)
    rows = []
    for lag in range(1, FARTHEST_LAG * (side - 1) // (2 * RADIUS) + 1):
        pairs = ((maps[:, :, lag:], maps[:, :, :-lag]), (maps[:, lag:], maps[:, :-lag]))
        found = [
            correlation(*(one.reshape(len(maps), side * (side - lag)) for one in two))
            for two in pairs
        ]
        rows.append([_known_mean(one) for one in found])
    return np.array(rows, np.float32), len(maps)


def _known_mean(values: Array) -> float:
    """Mean of what is known, NaN where nothing is."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else np.nan


def neighbourhood_mean(maps: Array, reach: int = 4) -> Array:
    """Smooth maps `[n, s, s]` over squares of `2 reach + 1` shifts: what varies slowly."""
    padded = np.pad(maps, ((0, 0), (reach, reach), (reach, reach)), mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(
        padded, (2 * reach + 1, 2 * reach + 1), axis=(1, 2)
    )
    return windows.mean((-1, -2))
