"""What is kept of every scan: maps over shifts, and a few numbers for each key object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from orbical.actions import Boxes
from orbical.calibration import ece
from orbical.groups import Group
from orbical.tasks import average_precision

from .images import CLASSES, WINDOW

Array = NDArray[Any]
Scan = Mapping[str, Array]
Columns = dict[str, Any]
HIT = 0.5  # IoU from which a consensus is the key object
ALIKE = 0.9  # correlation above which two plots are called alike
DARK = 0.2  # how far a score lies below the median of its neighbors at a dark spot
LEAST_SEEN = 0.25  # share of an object's area in view from which it counts, as in `Detection`
FARTHEST_LAG = 16  # pixels of the farthest lag at which a plot is compared with itself


def summarize(scan: Scan, objects: Tensor, group: Group) -> dict[str, Array]:
    """Reduce a whole scan of n key objects at K shifts to the rows of tables.

    Args:
        scan: Variables of `training.STORED` by name, `[n, K, ...]`.
        objects: `[n, T, 5]`, the key object first.
        group: The shifts.

    Returns:
        Name of a table to the columns that this scan adds to it, as `table/column`.
    """
    scan = {name: values.astype(np.float32) for name, values in scan.items()}
    tables = {
        "shifts": _shifts(scan, objects, group),
        "objects": _objects(scan, objects, group.identity),
        "dark-spots": _dark_spots(scan),
        "period": _period(score_of(scan), _step_of(group.coords["dx"])),
        "certainty": _certainty(scan, group.identity),
    }
    tables["consensus"] = _consensus(scan, tables["objects"])
    tables["levels"] = _level(tables["shifts"], group.identity)
    tables["levels"]["gap"] = np.sqrt((scan["invariance_gap"].astype(float) ** 2).mean())
    return {
        f"{table}/{column}": np.asarray(values)
        for table, columns in tables.items()
        for column, values in columns.items()
    }


def _shifts(scan: Scan, objects: Tensor, group: Group) -> Columns:
    """Average score and IoU of the key objects at each shift; AP and ECE of all detections."""
    return {
        "dx": group.coords["dx"].astype(int),
        "dy": group.coords["dy"].astype(int),
        "score": score_of(scan).mean(0),
        "iou": scan["iou"].mean(0),
        "ap": _average_precision(scan, seen_objects(objects, group)),
        "ece": _calibration_error(scan),
    }


def _objects(scan: Scan, objects: Tensor, center: int) -> Columns:
    """Measure each key object: its score, and how like its plots against truth and consensus are.

    `consensus_iou` is the IoU of the consensus' first cluster, 0 for another class or none.
    """
    score = score_of(scan)
    first = np.nan_to_num(scan["consensus"][:, 0], nan=-1.0)
    return {
        "object": np.arange(len(score)),
        "class": np.array(CLASSES)[objects[:, 0, 4].numpy().astype(int)],
        "centre": score[:, center],
        "orbit": score.mean(1),
        "correlation": agreement(scan),
        "consensus_iou": _overlap(torch.from_numpy(first), objects[:, 0]),
    }


def _level(shifts: Columns, center: int) -> Columns:
    """Measure a training at the center, over the orbit and at the corners."""
    score, side = shifts["score"], side_of(shifts["score"])
    row = {
        "centre": score[center],
        "orbit": score.mean(),
        "corner": score[[0, side - 1, -side, -1]].mean(),
        "width_px": peak_width(score, _step_of(shifts["dx"])),
    }
    for name in ("iou", "ap", "ece"):
        row |= {f"{name}_centre": shifts[name][center], f"{name}_orbit": known(shifts[name])}
    return row


def peak_width(score: Array, step: int) -> float:
    """Return the side in pixels of a square of as many shifts as score half of the best or more.

    >>> peak_width(np.array([0.1, 0.4, 0.8, 0.4, 0.1] * 5), 16).__round__(2)
    61.97
    """
    return float(np.sqrt((score >= score.max() / 2).sum()) * step)


def _consensus(scan: Scan, objects: Columns) -> Columns:
    """Compare the plots against truth and consensus over all key objects."""
    agree, hit = objects["correlation"], objects["consensus_iou"] >= HIT
    every, hits, misses = (some[~np.isnan(some)] for some in (agree, agree[hit], agree[~hit]))
    book = np.nan_to_num(scan["consensus"][:, 0, 5], nan=-1.0) == CLASSES.index("book")
    return {
        "objects": len(hit),
        "median": known(every, np.median),
        "alike": known(every > ALIKE),
        "hit": hit.mean(),
        "median_hit": known(hits, np.median),
        "alike_hit": known(hits > ALIKE),
        "median_miss": known(misses, np.median),
        "consensus_vs_truth": known(scan["consensus_vs_truth"]),
        "book": book.mean(),
    }


def _certainty(scan: Scan, center: int) -> Columns:
    """Measure how sure the detections are, and how often they are right."""
    row: Columns = {}
    for place, elements in (("centre", [center]), ("orbit", slice(None))):
        correct = scan["box_correct"][:, elements]
        judged = ~np.isnan(correct)
        row[f"detections_{place}"] = judged.sum()
        row[f"confidence_{place}"] = known(scan["box_score"][:, elements][judged])
        row[f"precision_{place}"] = known(correct[judged])
    return row


def score_of(scan: Scan) -> Array:
    """Return IoU x confidence of every key object at every shift, `[n, K]`."""
    return scan["iou"] * scan["match_confidence"]


def side_of(shifts: Array) -> int:
    """Return how many shifts `[..., K]` lie along one side of the heat map."""
    return round(shifts.shape[-1] ** 0.5)


def _step_of(dx: Array) -> int:
    """Return the pixels from one shift to the next.

    >>> _step_of(np.array([-4, 0, 4, -4, 0, 4]))
    4
    """
    return int(np.diff(np.unique(dx)).min())


def _area(boxes: Tensor) -> Tensor:
    return (boxes[..., 2:4] - boxes[..., :2]).clamp_min(0).prod(-1)


def seen_objects(objects: Tensor, group: Group) -> Array:
    """Count the objects that all views of a shift show, `[K]`."""
    boxes = Boxes(WINDOW, WINDOW).move(group, objects[None])[..., :4]
    counted = _area(boxes.clamp(0, WINDOW)) >= LEAST_SEEN * _area(boxes)  # false for NaN
    return counted.sum((1, 2)).numpy()


def _overlap(found: Tensor, key: Tensor) -> Array:
    """Compute the IoU of detections `[n, 6]` with key objects `[n, 5]`, 0 for another class."""
    first, second = (boxes[:, :4].clamp(0, WINDOW) for boxes in (found, key))
    corners = [torch.maximum(first, second)[:, :2], torch.minimum(first, second)[:, 2:]]
    both = _area(torch.cat(corners, 1))
    share = both / (_area(first) + _area(second) - both)
    return torch.where(found[:, 5] == key[:, 4], share, 0.0).numpy()


def _average_precision(scan: Scan, objects: Array) -> Array:
    """Compute the average precision over all samples at each shift, `[K]`."""
    ranked = np.where(np.isnan(scan["box_correct"]), np.nan, scan["box_score"])
    confidence, correct = (
        torch.from_numpy(part.transpose(1, 0, 2).reshape(len(objects), -1))
        for part in (ranked, np.nan_to_num(scan["box_correct"]))
    )
    return average_precision(confidence, correct > 0, torch.from_numpy(objects)).numpy()


def _calibration_error(scan: Scan) -> Array:
    """Compute the ECE of all detections at each shift, `[K]`; NaN if nothing was detected."""
    found = []
    for element in range(scan["box_correct"].shape[1]):
        correct = scan["box_correct"][:, element].ravel()
        judged = ~np.isnan(correct)
        sure = scan["box_score"][:, element].ravel()[judged]
        found.append(float(ece(sure, correct[judged] > 0)) if judged.any() else np.nan)
    return np.array(found, np.float32)


def agreement(scan: Scan) -> Array:
    """Correlate the plots against truth and consensus of each object, `[n]`."""
    against = np.nan_to_num(scan["score_vs_consensus"]).astype(float)
    return correlation(score_of(scan).astype(float), against)


def correlation(first: Array, second: Array) -> Array:
    """Compute Pearson's correlation of rows `[n, K]`, NaN where one of them is constant.

    >>> correlation(np.array([[1.0, 2, 3], [1, 1, 1]]), np.array([[2.0, 4, 6], [1, 2, 3]]))
    array([ 1., nan])
    """
    a, b = (part - part.mean(1, keepdims=True) for part in (first, second))
    size = np.sqrt((a**2).sum(1) * (b**2).sum(1))
    return np.divide((a * b).sum(1), size, out=np.full(len(a), np.nan), where=size > 1e-9)


def neighbors_median(maps: Array) -> Array:
    """Compute the median of the eight neighbors of each shift, `[n, K]`; fewer at the rim."""
    side = side_of(maps)
    grid = np.pad(maps.reshape(-1, side, side), ((0, 0), (1, 1), (1, 1)), constant_values=np.nan)
    places = [(i, j) for i in range(3) for j in range(3) if (i, j) != (1, 1)]
    around = np.stack([grid[:, i : i + side, j : j + side] for i, j in places])
    return np.nanmedian(around, 0).reshape(maps.shape)


def _dark_spots(scan: Scan) -> Columns:
    """Count dark spots, objects with one, and what is lost there.

    A dark spot is a shift whose score lies `DARK` below the median of its eight neighbors. The box
    is lost if its IoU falls below 0.5; a wrong box comes first if the match keeps its IoU, but the
    most confident detection is not right; otherwise only confidence is lost.
    """
    score = score_of(scan)
    dark = neighbors_median(score) - score >= DARK
    lost = dark & (scan["iou"] < 0.5)
    wrong_first = dark & ~lost & ~(scan["box_correct"][..., 0] > 0)
    several = max(1, dark.sum())
    return {
        "dark": dark.sum(),
        "share": dark.mean(),
        "objects": dark.any(1).sum(),
        "box_lost": lost.sum() / several,
        "wrong_first": wrong_first.sum() / several,
        "confidence_lost": (dark & ~lost & ~wrong_first).sum() / several,
    }


def _period(score: Array, step: int) -> Columns:
    """Compute the mean autocorrelation of single plots along dx and dy, at each lag.

    A network of stride 8 sees a shift by 8 pixels as the same image on the next cell. Objects with
    a mean score above `DARK` are taken, and slow changes are removed.
    """
    side = side_of(score)
    maps = score.reshape(-1, side, side).astype(float)
    maps = maps[maps.mean((1, 2)) > DARK]
    maps = maps - neighborhood_mean(maps)
    lags = np.arange(1, FARTHEST_LAG // step + 1)

    def repeated(plots: Array) -> list[float]:
        pairs = [(plots[:, :, lag:], plots[:, :, :-lag]) for lag in lags]
        flat = [[one.reshape(len(one), np.prod(one.shape[1:])) for one in two] for two in pairs]
        return [known(correlation(*two)) for two in flat]

    along = {"dx": repeated(maps), "dy": repeated(maps.swapaxes(1, 2))}
    return {"lag_px": lags * step, "objects": np.full(len(lags), len(maps)), **along}


def known(values: Array, measure: Callable[[Array], Any] = np.mean) -> float:
    """Measure the values that are not NaN, by default their mean; NaN if there is none."""
    found = values[~np.isnan(values)].astype(float)
    return float(measure(found)) if len(found) else np.nan


def neighborhood_mean(maps: Array, reach: int = 4) -> Array:
    """Smooth maps `[n, s, s]` over squares of `2 reach + 1` shifts."""
    padded = np.pad(maps, ((0, 0), (reach, reach), (reach, reach)), mode="edge")
    square = (2 * reach + 1, 2 * reach + 1)
    return np.lib.stride_tricks.sliding_window_view(padded, square, (1, 2)).mean((-1, -2))
