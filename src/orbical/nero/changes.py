"""Consistency: how often a model's answer changes along the orbit, with intervals."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from .._lazy import xr
from ..calibration import bounded_mean_interval
from ..errors import InputError, real_number
from ..store import FINISHED, Scan, ScanArrays, arrays_of, row_runs
from ..tasks import answer_changes, answer_code_changes, answer_variables
from .sums_and_means import ROWS, with_ends

Array = np.ndarray

SHARES = ("changed", "pairs")
"""The share of samples whose answer changes, and of pairs of elements that disagree."""


def consistency(
    scan: Scan | xr.Dataset, *, tolerance: float | None = None, level: float = 0.95
) -> xr.Dataset:
    """Compute how often the prediction of a model changes along the orbit.

        changed  share of samples whose prediction is not the same at all elements
        pairs    share of pairs of elements that disagree, by weight, mean over samples

    A mean curve hides it: a classifier can keep its accuracy at every position while the
    predictions for many samples change. Labels are not needed. When two predictions count as the
    same depends on the task: the same predicted class (and any task that stores `predicted`), the
    same set of labels or the same text (any task that stores `answer`, a number for each); for
    segmentation the same class of a pixel, as shares of pixels; for detection a top box of the
    same class whose un-transformed boxes overlap by an IoU of 0.5, or no box; for all others a
    `tolerance` states it, and two predictions agree if both are within it of the consensus.

    Args:
        scan: a scan, or its `data` (for detection the scan itself).
        tolerance: the score against the consensus up to which a prediction counts as the same,
            in the unit of the score, such as pixels of flow; not used where predictions are
            classes.
        level: nominal coverage of the intervals.

    Returns:
        A dataset of `changed` and `pairs` `[model]`, with `changed_low`, `changed_high`,
        `pairs_low` and `pairs_high`; `changed_per_sample` and `pairs_per_sample`
        `[model, sample]`, NaN where a sample is unfinished. Intervals are those of
        `orbical.calibration.bounded_mean_interval`, which hold at any number of samples: the upper
        end is above 0 even if nothing changed in the sample.

    Raises:
        InputError: if the task needs a tolerance and there is none.

    See Also:
        invariance_gap: How far outputs are from their mean.
        orbical.flips: Search between the elements for a change.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> def brightness(images):
        ...     return torch.stack([images.mean((1, 2, 3)), -images.mean((1, 2, 3))], 1)
        >>> scan = ob.scan(brightness, images[:20], group="cyclic:4", task="classification",
        ...                progress=False)
        >>> found = ob.nero.consistency(scan)
        >>> float(found["changed"][0]), round(float(found["changed_high"][0]), 3)
        (0.0, 0.168)
    """
    real_number("level", level, "in (0, 1)")
    arrays = arrays_of(scan)
    table: dict[str, object] = {}
    for name, values in sample_changes(arrays, tolerance).items():
        table[f"{name}_per_sample"] = (("model", "sample"), values)
        ends = changed_share(values, level, name == "changed" and changes_are_binary(arrays))
        table |= with_ends(name, (("model", part) for part in ends))
    result = xr.Dataset(table, coords={"model": arrays.models})
    result["changed"].attrs = {"meaning": "share of samples whose prediction changes on the orbit"}
    result["pairs"].attrs = {"meaning": "share of pairs of elements that disagree"}
    return result.assign_attrs(group=arrays.group.spec, level=level)


def answer_names(arrays: ScanArrays) -> tuple[str, ...]:
    """Return the arrays that hold answers; the size of boxes is known to a scan alone."""
    names = answer_variables(arrays.dims)
    return names if "box" not in names or "size" in arrays.settings else ()


def sample_changes(arrays: ScanArrays, tolerance: float | None = None) -> dict[str, Array]:
    """Return both shares of each sample, `[M, N]`; NaN if it is unfinished."""
    names = answer_names(arrays)
    if not names and tolerance is None:
        expected = "one, since predictions of this task are numbers"
        remedy = "pass how far a prediction may be from the consensus, in the unit of the score"
        raise InputError("tolerance", expected, "None", remedy=remedy)
    better = bool(arrays.attributes(FINISHED).get("higher_is_better", False))
    shape = (len(arrays.models), arrays.samples)
    shares = {name: np.full(shape, np.nan) for name in SHARES}
    for model in range(shape[0]):
        for rows, block in arrays.sample_blocks(FINISHED, *names, model=model):
            for some in row_runs(len(block[0]), ROWS):  # sorting takes many times their memory
                scores, *parts = (part[some] for part in block)
                if names:
                    answers = [torch.from_numpy(np.ascontiguousarray(part)) for part in parts]
                    both = answer_changes(names, answers, arrays.group, arrays.settings)
                else:
                    assert tolerance is not None
                    codes = _beyond(torch.from_numpy(scores), tolerance, better)
                    both = answer_code_changes(codes, torch.as_tensor(arrays.weights))
                done = np.isfinite(scores).any(1)
                for name, values in zip(SHARES, both, strict=True):
                    found = np.where(done, values.double().numpy(), np.nan)
                    shares[name][model, rows][some] = found
    return shares


def _beyond(scores: Tensor, tolerance: float, higher_is_better: bool) -> Tensor:
    """Return codes of scores against the consensus: 0 within a tolerance, else one of its own."""
    beyond = scores < tolerance if higher_is_better else scores > tolerance
    return torch.where(beyond, 1 + torch.arange(scores.shape[1]), 0)


def changes_are_binary(arrays: ScanArrays) -> bool:
    """Check whether a sample changes or does not; of maps, a share of the points changes."""
    return "changed_pixels" not in arrays


def changed_share(
    values: Array, level: float = 0.95, binary: bool = False
) -> tuple[Array, Array, Array]:
    """Return the mean share `[M]` of finished samples `[M, N]`, and the ends of its interval."""
    rows = (row[~np.isnan(row)] for row in values)
    means = [bounded_mean_interval(row.astype(bool) if binary else row, level) for row in rows]
    mean, low, high = np.array(means).T
    return mean, low, high
