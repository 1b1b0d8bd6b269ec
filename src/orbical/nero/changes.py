"""Consistency: how often a model's answer changes along the orbit, with intervals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from ..calibration.means import share_interval_of_sums
from ..errors import InputError
from ..groups import Group
from ..store.blocks import sample_blocks
from ..store.scan_result import Scan
from ..tasks._same_answers import answer_variables, changes, of_codes
from .along_orbits import FINISHED, opened


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
        raise InputError("level", "a number in (0, 1)", repr(level))
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
    return bool(_variables(scan))


def _variables(scan: Scan | xr.Dataset) -> tuple[str, ...]:
    """Return the stored variables that hold answers; the size of boxes is known to a scan alone."""
    data: Any = getattr(scan, "data", scan)
    found = answer_variables({str(name): one.dims for name, one in data.data_vars.items()})
    return found if "box" not in found or isinstance(scan, Scan) else ()


def _changes(
    one: xr.Dataset, scan: Any, group: Group, tolerance: float | None
) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Yield rows of one model's samples, whether they change, and their disagreeing pairs."""
    names = _variables(scan)
    if not names and tolerance is None:
        raise InputError(
            "tolerance",
            "one, since answers of this task are numbers",
            "None",
            remedy="pass how far an answer may be from the consensus, in the unit of the score",
        )
    arrays = [
        one[name].transpose("sample", "element", ..., missing_dims="ignore")
        for name in names or [FINISHED]
    ]
    better = bool(one[FINISHED].attrs.get("higher_is_better", False))
    settings = scan.record.task.settings if isinstance(scan, Scan) else {}
    for rows, parts in sample_blocks(*arrays):
        values = [torch.from_numpy(part) for part in parts]
        if names:
            changed, pairs = changes(names, values, group, settings)
        else:
            assert tolerance is not None
            codes = _beyond(values[0], tolerance, better)
            changed, pairs = of_codes(codes, torch.as_tensor(group.weights))
        yield rows, changed.double().numpy(), pairs.numpy()


def _beyond(scores: Tensor, tolerance: float, higher_is_better: bool) -> Tensor:
    """Return codes of scores against the consensus: 0 within a tolerance, else one of its own."""
    beyond = scores < tolerance if higher_is_better else scores > tolerance
    return torch.where(beyond, 1 + torch.arange(scores.shape[1]), 0)


def _ends(values: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean over samples `[model]` and the ends of its interval, within [0, 1]."""
    filled = np.nan_to_num(values)
    count = (~np.isnan(values)).sum(1)
    return share_interval_of_sums(count, filled.sum(1), np.square(filled).sum(1), level)
