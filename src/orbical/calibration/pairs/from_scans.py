"""Pairs `(confidence, correct)` of everything that a scan's model states about one sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...store import Scan

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["pairs_within"]

_STORED = {
    "detection": ("box_score", "box_correct", "a detection"),
    "point": ("point_confidence", "point_correct", "a point"),
    "class": ("region_confidence", "region_correct", "a region"),
}
"""Pairs that tasks store: the dimension that counts them, their two variables, and what each is."""


def pairs_within(scan: Scan | xr.Dataset) -> xr.Dataset:
    """Return each statement of a model about a sample as a sample of its own.

    | task | one pair for each | confidence | correct if |
    |---|---|---|---|
    | detection | detection | its score | it is matched to an object at the scan's IoU threshold |
    | segmentation | predicted region | mean probability of its class | its IoU is at least 0.5 |
    | point classification | point | its probability | its class is right |
    | key points | point | its confidence | it is within the task's `radius` of the truth |
    | multi-label | label | its probability | the label applies |
    | ordinal | threshold k | P(class <= k) | the true class is at most k |

    A calibrated detector's confidence is its precision. A model can be calibrated in its most
    probable class, and still expect samples too high or too low, which the thresholds show.
    Statements about one sample are not independent, which intervals ignore.

    Args:
        scan: A labeled scan of one of these tasks, or its `data`.

    Returns:
        A dataset of `confidence` and `correct` `[model, sample, element]`, in which `sample` runs
        over samples and their statements, NaN where there is none (or its truth is unknown).
        Labels have the coordinate `class_name` and thresholds the coordinate `threshold`, so that
        `along_orbit(pairs_within(scan), "ece", by="class_name")` has one curve for each label.
        `pair_at` and `reliability_at` take it too.

    Raises:
        InputError: If the scan is of another task, has no labels, or has no confidences.

    See Also:
        along_orbit: A measure of these pairs at each element.
        pair_at: The pairs of one model at one element.

    Example:
        >>> import orbical as ob, torch
        >>> def half(images):
        ...     return torch.zeros(len(images), 2)
        >>> scan = ob.scan(half, (torch.zeros(4, 1, 8, 8), [[1, 0], [0, 1], [1, 1], [0, 1]]),
        ...                group="cyclic:4", task="multilabel", progress=False)
        >>> dict(pairs_within(scan)["confidence"].sizes)
        {'model': 1, 'sample': 8, 'element': 4}
        >>> error = ob.calibration.along_orbit(pairs_within(scan), "ece", by="class_name")
        >>> error.values[0, :, 0].tolist()
        [0.0, 0.25]
    """
    data: Any = getattr(scan, "data", scan)
    names = {*getattr(data, "variables", ())}
    for dim, (confidence, correct, what) in _STORED.items():
        if {confidence, correct} <= names:
            pair = data[[confidence, correct]]
            return _stacked_pairs_of_scan(
                pair.rename({confidence: "confidence", correct: "correct"}), dim, what
            )
    if {"probabilities", "true_labels"} <= names:
        labels = data.get("class_name", np.arange(data.sizes["class"]))
        return _pairs_by_class_of_scan(
            data, data["probabilities"], data["true_labels"], "class_name", labels
        )
    if {"probabilities", "rank_error", "label"} <= names:
        reached = data["probabilities"].cumsum("class").isel({"class": slice(None, -1)}).clip(0, 1)
        ranks = np.arange(reached.sizes["class"])
        passed = data["label"] <= reached["class"].copy(data=ranks)
        return _pairs_by_class_of_scan(data, reached, passed.astype(np.float32), "threshold", ranks)
    raise InputError(
        "scan",
        "a labeled scan of detection, segmentation, labels, ordered classes, or points with "
        "confidences",
        _description(scan),
        remedy="measures take the confidences of a classification scan as they are",
    )


def _description(scan: object) -> str:
    data = getattr(scan, "data", scan)
    task = getattr(data, "attrs", {}).get("task", "")
    return f"one of {task} without these" if task else type(scan).__name__


def _pairs_by_class_of_scan(
    data: Any, chance: Any, truth: Any, name: str, values: Any
) -> xr.Dataset:
    """Return probabilities `[model, sample, element, class]` and truth `[sample, class]` as pairs.

    `values [class]` become a coordinate on the pairs.
    """
    finished = data["score_vs_consensus"].notnull()
    pair = data[["score_vs_consensus"]].drop_dims("class", errors="ignore")
    pair = pair.assign(
        confidence=chance.drop_vars("class_name", errors="ignore"),
        correct=truth.drop_vars("class_name", errors="ignore").where(finished),
    )
    stacked = _stacked_pairs_of_scan(pair[["confidence", "correct"]], "class", "a single statement")
    column = np.tile(np.asarray(values), data.sizes["sample"])
    return stacked.assign_coords({name: ("sample", column)})


def _stacked_pairs_of_scan(pair: Any, dim: str, what: str) -> xr.Dataset:
    """Return samples and a further dimension as samples."""
    stacked = pair.stack(each=("sample", dim)).drop_vars(["each", "sample", dim], errors="ignore")
    stacked = stacked.rename(each="sample").transpose("model", "sample", "element")
    stacked["confidence"] = stacked["confidence"].where(stacked["correct"].notnull())
    stacked["confidence"].attrs["meaning"] = f"confidence of {what}"
    stacked["correct"].attrs["meaning"] = f"whether {what} is correct"
    # Elsewhere this separates finished from unfinished samples; here, whether there is an answer.
    stacked = stacked.assign(score_vs_consensus=stacked["confidence"])
    stacked.attrs = pair.attrs
    result: xr.Dataset = stacked
    return result
