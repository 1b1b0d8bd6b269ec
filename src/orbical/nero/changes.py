"""Consistency: how often a model's answer changes along the orbit, with intervals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from ..actions import Boxes
from ..calibration.means import share_interval_of_sums
from ..errors import InputError
from ..groups import Group
from ..store.blocks import sample_blocks
from ..store.scan_result import Scan
from ..tasks._boxes import iou
from .along_orbits import FINISHED, opened

_IOU = 0.5
"""Overlap from which two un-transformed boxes are the same answer."""


def consistency(
    scan: Scan | xr.Dataset, *, tolerance: float | None = None, level: float = 0.95
) -> xr.Dataset:
    """Compute how often the answer of a model changes along the orbit.

        changed  share of samples whose prediction is not the same at all elements
        pairs    share of pairs of elements that disagree, by weight, mean over samples

    A mean curve hides it: a classifier can keep its accuracy at every position while the answers
    to many samples change. Labels are not needed. What the same answer is depends on the task:
    the same predicted class (and any task that stores `predicted`), the same set of labels or the
    same text (any task that stores `answer`, a number for each); for segmentation the same
    class of a pixel, as shares of pixels; for detection a top box of the same class whose
    un-transformed boxes overlap by an IoU of 0.5, or no box; for all others a `tolerance` states
    it, and two answers agree if both are within the tolerance of the consensus.

    Args:
        scan: a scan, or its `data` (for detection the scan itself).
        tolerance: the score against the consensus up to which an answer counts as the same, in
            the unit of the score, such as pixels of flow; not used where answers are classes.
        level: nominal coverage of the intervals.

    Returns:
        A dataset of `changed` and `pairs` `[model]`, with `changed_low`, `changed_high`,
        `pairs_low` and `pairs_high`; `changed_per_sample` and `pairs_per_sample`
        `[model, sample]`, NaN where a sample is unfinished. Intervals are Wilson's, of which the
        upper end is above 0 even if nothing changed in the sample.

    Raises:
        InputError: if the task needs a tolerance and there is none.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> def brightness(images):
        ...     return torch.stack([images.mean((1, 2, 3)), -images.mean((1, 2, 3))], 1)
        >>> scan = ob.scan(brightness, images[:20], group="cyclic:4", task="classification",
        ...                progress=False)
        >>> found = ob.nero.consistency(scan)
        >>> float(found["changed"][0]), round(float(found["changed_high"][0]), 3)
        (0.0, 0.161)
    """
    data, group = opened(scan)
    if not 0 < level < 1:
        raise InputError(f"level: expected a number in (0, 1), got {level!r}")
    shape = (data.sizes["model"], data.sizes["sample"])
    found = {name: np.full(shape, np.nan) for name in ("changed", "pairs")}
    for model in range(shape[0]):
        one = data.isel(model=model)
        done = one[FINISHED].notnull().any("element").values
        for rows, changed, pairs in _changes(one, scan, group, tolerance):
            for name, values in (("changed", changed), ("pairs", pairs)):
                found[name][model, rows] = np.where(done[rows], values, np.nan)
    table: dict[str, Any] = {
        f"{name}_per_sample": (("model", "sample"), part) for name, part in found.items()
    }
    for name, part in found.items():
        for end, values in zip(("", "_low", "_high"), _ends(part, level), strict=True):
            table[f"{name}{end}"] = (("model",), values)
    result = xr.Dataset(table, coords={"model": data["model"]})
    result["changed"].attrs = {"meaning": "share of samples whose answer changes on the orbit"}
    result["pairs"].attrs = {"meaning": "share of pairs of elements that disagree"}
    return result.assign_attrs(group=group.spec, level=level)


def has_answers(scan: Scan | xr.Dataset) -> bool:
    """Check whether a scan says without a tolerance which answers are the same."""
    data: Any = getattr(scan, "data", scan)
    return _kind(data.isel(model=0), scan) != FINISHED


def _kind(one: xr.Dataset, scan: Any) -> str:
    """Return the stored variable that holds the answers of one model."""
    if "changed_pixels" in one:
        return "changed_pixels"
    for name in ("predicted", "answer"):
        if name in one and one[name].ndim == 2:
            return name
    if {"box", "box_label"} <= {*one.data_vars} and isinstance(scan, Scan):
        return "box"
    return FINISHED


def _changes(
    one: xr.Dataset, scan: Any, group: Group, tolerance: float | None
) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Yield rows of one model's samples, whether they change, and their disagreeing pairs."""
    weights = torch.as_tensor(group.weights)
    kind = _kind(one, scan)
    if kind == "changed_pixels":
        yield slice(None), one["changed_pixels"].values, one["changed_pairs"].values
        return
    if kind == FINISHED and tolerance is None:
        raise InputError(
            "tolerance: expected one, since answers of this task are numbers, got None; pass how"
            " far an answer may be from the consensus, in the unit of the score"
        )
    names = ["box", "box_label"] if kind == "box" else [kind]
    arrays = [one[name].transpose("sample", "element", ...) for name in names]
    better = bool(one[FINISHED].attrs.get("higher_is_better", False))
    for rows, parts in sample_blocks(*arrays):
        values = [torch.from_numpy(part) for part in parts]
        if kind == "box":
            action = Boxes(*scan.record.task.settings["size"])
            changed, pairs = _of_boxes(values[0], values[1], group, action, weights)
        else:
            codes = (
                values[0]
                if tolerance is None or kind != FINISHED
                else _beyond(values[0], tolerance, better)
            )
            changed, pairs = of_codes(codes, weights)
        yield rows, changed.double().numpy(), pairs.numpy()


def _beyond(scores: Tensor, tolerance: float, higher_is_better: bool) -> Tensor:
    """Return codes of scores against the consensus: 0 within a tolerance, else one of its own."""
    beyond = scores < tolerance if higher_is_better else scores > tolerance
    return torch.where(beyond, 1 + torch.arange(scores.shape[1]), 0)


def of_codes(codes: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Return whether codes `[n, K]` differ, and the share of pairs of elements that do, by weight.

        pairs = (1 - sum_c (sum of w_g with code c)^2) / (1 - sum_g w_g^2)

    >>> changed, pairs = of_codes(torch.tensor([[7, 7, 7], [7, 7, 3]]), torch.ones(3) / 3)
    >>> changed.tolist(), [round(share, 3) for share in pairs.tolist()]
    ([False, True], [0.0, 0.667])
    """
    ordered, order = codes.sort(dim=1)
    starts = torch.zeros_like(ordered)
    starts[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    run = starts.cumsum(1)
    mass = torch.zeros(codes.shape, dtype=torch.float64)
    mass.scatter_add_(1, run, weights.double()[order])
    alike = weights.double().square().sum()
    if alike >= 1 - 1e-12:  # a single element has no pairs
        return run[:, -1] > 0, torch.zeros(len(codes), dtype=torch.float64)
    return run[:, -1] > 0, ((1 - mass.square().sum(1)) / (1 - alike)).clamp(0, 1)


def _of_boxes(
    box: Tensor, label: Tensor, group: Group, action: Boxes, weights: Tensor
) -> tuple[Tensor, Tensor]:
    """Compare the un-transformed top boxes `[n, K, M, 4]` of all pairs of elements."""
    top = box[:, :, :1].transpose(0, 1)
    home = action.move(group.inverse(), top.nan_to_num(0.0))[:, :, 0].transpose(0, 1)
    kind = label[:, :, 0]
    overlap = torch.stack([iou(home, home[:, [k]]) for k in range(home.shape[1])], 2)
    both = kind[:, :, None] == kind[:, None]
    none = kind < 0
    agree = both & ((overlap >= _IOU) | (none[:, :, None] & none[:, None]))
    agree |= torch.eye(home.shape[1], dtype=torch.bool)
    pairs = torch.einsum("g,h,ngh->n", weights, weights, (~agree).double())
    return (~agree).flatten(1).any(1), pairs / (1 - weights.square().sum()).clamp(min=1e-12)


def _ends(values: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean over samples `[model]` and the ends of its interval, within [0, 1]."""
    filled = np.nan_to_num(values)
    count = (~np.isnan(values)).sum(1)
    return share_interval_of_sums(count, filled.sum(1), np.square(filled).sum(1), level)
