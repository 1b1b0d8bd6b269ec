"""The detection study's numbers: from stored scans to the rows of its tables."""

from __future__ import annotations

import math
import tarfile
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from orbical.calibration import ece
from orbical.datasets.coco_folder import KeyObjects
from orbical.errors import InputError
from orbical.groups import Group, translations
from orbical.tasks.detection_matching import Detections, average_precision, pair

from ..pages import Row
from .material import first_objects, split, test_views
from .settings import JITTERS, RADIUS, TASK

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[Any]
DARK = 0.2
"""How far a score lies below the median of its neighbours at a dark spot."""


@dataclass(frozen=True)
class Results:
    """Scans of all levels, and what was scanned.

    Attributes:
        scans: jitter in percent to variables by name.
        data: the key objects.
        group: the shifts.
        folder: where the results lie.
    """

    scans: dict[int, dict[str, Array]]
    data: KeyObjects
    group: Group
    folder: Path

    @classmethod
    def read(cls, folder: Path, data: KeyObjects | None = None) -> Results:
        """Read what `train` wrote; the key objects from the data set where they are not given."""
        scans = {}
        for jitter in JITTERS:
            content = member(folder, jitter, "npz")
            with np.load(BytesIO(content), allow_pickle=False) as arrays:
                scans[jitter] = {name: arrays[name].astype(np.float32) for name in arrays.files}
        data = test_views(split()["test"]) if data is None else data
        shapes = {scan["iou"].shape for scan in scans.values()}
        objects, shifts = shapes.pop()
        side = math.isqrt(shifts)
        if shapes or objects > len(data["images"]) or side < 2 or side**2 != shifts:
            raise InputError(
                f"results: scans of {objects} key objects at {shifts} shifts given, at most "
                f"{len(data['images'])} at a square of shifts expected, as many at every level"
            )
        group = translations(RADIUS, 2 * RADIUS // (side - 1))
        return cls(scans, first_objects(data, objects), group, folder)

    def score(self, jitter: int) -> Array:
        """IoU x confidence of every key object at every shift, `[n, K]`."""
        scan = self.scans[jitter]
        return scan["iou"] * scan["match_confidence"]

    @cached_property
    def labels(self) -> Array:
        """The class of each key object."""
        return self.data["objects"][:, 0, 4].numpy().astype(int)

    @cached_property
    def in_view(self) -> Array:
        """How many objects each view shows, `[n, K]`."""
        moved = TASK.output.move(self.group, self.data["objects"][None])
        nothing = Detections(*(torch.zeros(1, 1, 1, *tail) for tail in ((4,), (), ())))
        counted = pair(nothing, moved, torch.tensor([0.0, 0, *TASK.size])).counted
        return counted.sum(-1).T.numpy()

    @property
    def side(self) -> int:
        """Shifts along one side of the heat map."""
        return round(len(self.group) ** 0.5)

    @property
    def step_px(self) -> int:
        """Pixels from one shift to the next."""
        return 2 * RADIUS // (self.side - 1)

    def as_dataset(self, jitters: tuple[int, ...] = JITTERS) -> xr.Dataset:
        """Give scores and scores against the consensus as a scan's data, for `orbical.nero`."""
        import xarray as xr

        dims = ("model", "sample", "element")
        arrays = {
            "score": np.stack([self.score(jitter) for jitter in jitters]),
            "score_vs_consensus": np.stack(
                [np.nan_to_num(self.scans[jitter]["score_vs_consensus"]) for jitter in jitters]
            ),
        }
        coords: dict[str, Any] = {"model": [f"{jitter} %" for jitter in jitters]}
        coords |= {name: ("element", values) for name, values in self.group.coords.items()}
        coords |= {"weight": ("element", self.group.weights), "label": ("sample", self.labels)}
        return xr.Dataset(
            {name: (dims, values) for name, values in arrays.items()},
            coords,
            {
                "group": self.group.spec,
                "layout": self.group.layout.kind,
                "task": TASK.name,
                "score": "IoU x confidence",
                "higher_is_better": True,
            },
        ).chunk()


def member(folder: Path, jitter: int, suffix: str) -> bytes:
    """Read one file of a level's archive."""
    path = folder / f"jitter-{jitter:03d}.tar"
    if not path.is_file():
        raise InputError(
            f"results: there is no file {path.name!r} in {str(folder)!r}; make it with "
            "`orbical study detection train`"
        )
    with tarfile.open(path) as archive:
        stream = archive.extractfile(f"jitter-{jitter:03d}.{suffix}")
        if stream is None:
            raise InputError(f"results: {path.name!r} holds no .{suffix}")
        return stream.read()


def peak_width(mean: Array, step: float) -> float:
    """Side in pixels of the square of shifts whose mean score is at least half of the largest.

    >>> peak_width(np.array([0.1, 0.4, 0.8, 0.4, 0.1] * 5), 2.0).__round__(2)
    7.75
    """
    return float(np.sqrt((mean >= mean.max() / 2).sum()) * step)


def ap_along(results: Results, jitter: int) -> Array:
    """Average precision over all samples at each shift, `[K]`."""
    scan = results.scans[jitter]
    ranked = np.where(np.isnan(scan["box_correct"]), np.nan, scan["box_score"])
    confidence, correct = (
        torch.from_numpy(part.transpose(1, 0, 2).reshape(len(results.group), -1))
        for part in (ranked, np.nan_to_num(scan["box_correct"]))
    )
    return average_precision(
        confidence, correct > 0, torch.from_numpy(results.in_view.sum(0))
    ).numpy()


def ece_along(results: Results, jitter: int) -> Array:
    """Calibration error of all detections at each shift, `[K]`; NaN where nothing was detected."""
    scan = results.scans[jitter]
    found = []
    for element in range(len(results.group)):
        correct = scan["box_correct"][:, element].ravel()
        judged = ~np.isnan(correct)
        sure = scan["box_score"][:, element].ravel()[judged]
        found.append(float(ece(sure, correct[judged] > 0)) if judged.any() else np.nan)
    return np.array(found)


def level_rows(results: Results) -> list[Row]:
    """One row a level: how good it is at the centre, over the orbit and at the worst shift."""
    rows = []
    centre = results.group.identity
    for jitter in JITTERS:
        scan, mean = results.scans[jitter], results.score(jitter).mean(0)
        ap, error = ap_along(results, jitter), ece_along(results, jitter)
        corners = [0, results.side - 1, -results.side, -1]
        rows.append(
            {
                "jitter": jitter,
                "centre": float(mean[centre]),
                "orbit": float(mean.mean()),
                "corner": float(mean[corners].mean()),
                "width_px": peak_width(mean, results.step_px),
                "iou_centre": float(scan["iou"][:, centre].mean()),
                "iou_orbit": float(scan["iou"].mean()),
                "ap_centre": float(ap[centre]),
                "ap_orbit": float(ap.mean()),
                "ece_centre": float(error[centre]),
                "ece_orbit": float(np.nanmean(error)),
                "gap": float(np.sqrt((scan["invariance_gap"].astype(float) ** 2).mean())),
                "consensus_vs_truth": float(np.nanmean(scan["consensus_vs_truth"])),
            }
        )
    return rows


def class_rows(results: Results) -> list[Row]:
    """One row a level and class: the mean score at the centre and over the orbit."""
    return [
        {
            "jitter": jitter,
            "class": name,
            "objects": int((results.labels == label).sum()),
            "centre": float(
                results.score(jitter)[results.labels == label, results.group.identity].mean()
            ),
            "orbit": float(results.score(jitter)[results.labels == label].mean()),
        }
        for jitter in JITTERS
        for label, name in enumerate(results.data["classes"])
        if (results.labels == label).any()
    ]


def map_rows(results: Results) -> list[Row]:
    """One row a shift: the mean score, average precision and calibration error of each level."""
    columns: dict[str, Array] = {}
    for jitter in JITTERS:
        columns[f"score_{jitter}"] = results.score(jitter).mean(0)
        columns[f"ap_{jitter}"] = ap_along(results, jitter)
        columns[f"ece_{jitter}"] = ece_along(results, jitter)
    coords = results.group.coords
    return [
        {"dx": int(coords["dx"][k]), "dy": int(coords["dy"][k])}
        | {name: round(float(values[k]), 5) for name, values in columns.items()}
        for k in range(len(results.group))
    ]


def correlation(first: Array, second: Array) -> Array:
    """Pearson's correlation of rows `[n, K]`, NaN where one of them is constant.

    >>> correlation(np.array([[1.0, 2, 3], [1, 1, 1]]), np.array([[2.0, 4, 6], [1, 2, 3]]))
    array([ 1., nan])
    """
    a, b = (part - part.mean(1, keepdims=True) for part in (first, second))
    size = np.sqrt((a**2).sum(1) * (b**2).sum(1))
    return np.divide((a * b).sum(1), size, out=np.full(len(a), np.nan), where=size > 1e-9)


def consensus_rows(results: Results) -> list[Row]:
    """One row a level and key object: do truth and consensus draw the same plot?"""
    rows = []
    for jitter in JITTERS:
        scan = results.scans[jitter]
        against = np.nan_to_num(scan["consensus_vs_truth"])
        agree = correlation(
            results.score(jitter).astype(float),
            np.nan_to_num(scan["score_vs_consensus"]).astype(float),
        )
        overlap = _consensus_overlap(results, jitter)
        for sample, label in enumerate(results.labels):
            rows.append(
                {
                    "jitter": jitter,
                    "object": sample,
                    "class": results.data["classes"][label],
                    "correlation": float(agree[sample]),
                    "consensus_vs_truth": float(against[sample]),
                    "consensus_iou": float(overlap[sample]),
                    "score": float(results.score(jitter)[sample].mean()),
                }
            )
    return rows


def _consensus_overlap(results: Results, jitter: int) -> Array:
    """IoU of the consensus' first cluster with the key object, 0 for another class or none."""
    first = torch.from_numpy(np.nan_to_num(results.scans[jitter]["consensus"][:, :1], nan=-1.0))
    found = Detections(first[..., :4].clamp_min(0), first[..., 4], first[..., 5])
    key = results.data["objects"][:, :1]
    return pair(found, key, torch.tensor([0.0, 0, *TASK.size])).overlap[:, 0, 0].numpy()


def neighbours_median(maps: Array, side: int) -> Array:
    """Median of the eight neighbours of each shift, `[n, K]`; missing at the rim are left out."""
    grid = np.pad(maps.reshape(-1, side, side), ((0, 0), (1, 1), (1, 1)), constant_values=np.nan)
    shifted = [
        grid[:, 1 + i : 1 + i + side, 1 + j : 1 + j + side]
        for i in (-1, 0, 1)
        for j in (-1, 0, 1)
        if (i, j) != (0, 0)
    ]
    return np.nanmedian(np.stack(shifted), 0).reshape(maps.shape)


def dark_rows(results: Results) -> list[Row]:
    """One row a level: how many dark spots there are, and what is lost there.

    A dark spot is a shift whose score lies `DARK` below the median of its eight neighbours. The
    box is lost where its IoU falls below the threshold, the order changes where the match keeps its
    IoU but is no longer right by being first, and only confidence is lost otherwise.
    """
    rows = []
    for jitter in JITTERS:
        scan, score = results.scans[jitter], results.score(jitter)
        dark = neighbours_median(score, results.side) - score >= DARK
        lost = dark & (scan["iou"] < TASK.threshold)
        first = scan["box_correct"][..., 0] > 0
        order = dark & ~lost & ~first
        rows.append(
            {
                "jitter": jitter,
                "dark": int(dark.sum()),
                "share": float(dark.mean()),
                "objects": int(dark.any(1).sum()),
                "box_lost": float(lost.sum() / max(1, dark.sum())),
                "order_changed": float(order.sum() / max(1, dark.sum())),
                "confidence_lost": float((dark & ~lost & ~order).sum() / max(1, dark.sum())),
            }
        )
    return rows


def period_rows(results: Results, most_px: int = 16) -> list[Row]:
    """One row a level and lag: the mean autocorrelation of single plots along dx and dy.

    A network of stride 8 sees a shift by 8 pixels as the same image on the next cell.
    """
    rows = []
    for jitter in JITTERS:
        maps = results.score(jitter).reshape(-1, results.side, results.side).astype(float)
        maps = maps[maps.mean((1, 2)) > DARK]
        maps = maps - neighbourhood_mean(maps)
        for lag in range(1, most_px // results.step_px + 1):
            size = results.side * (results.side - lag)
            pairs = (
                (maps[:, :, lag:], maps[:, :, :-lag]),
                (maps[:, lag:], maps[:, :-lag]),
            )
            found = [correlation(*(one.reshape(len(maps), size) for one in two)) for two in pairs]
            rows.append(
                {
                    "jitter": jitter,
                    "lag_px": lag * results.step_px,
                    "objects": len(maps),
                    "dx": float(np.nanmean(found[0])),
                    "dy": float(np.nanmean(found[1])),
                }
            )
    return rows


def neighbourhood_mean(maps: Array, reach: int = 4) -> Array:
    """Smooth maps `[n, s, s]` over squares of `2 reach + 1` shifts: what varies slowly."""
    padded = np.pad(maps, ((0, 0), (reach, reach), (reach, reach)), mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(
        padded, (2 * reach + 1, 2 * reach + 1), axis=(1, 2)
    )
    return windows.mean((-1, -2))
