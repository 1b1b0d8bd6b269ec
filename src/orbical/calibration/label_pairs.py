"""Calibration of labels and of ordered classes: every probability as a pair of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ._orbit_arrays import stacked_pairs

if TYPE_CHECKING:
    import xarray as xr

    from ..store.scan_result import Scan


def labels(scan: Scan | xr.Dataset) -> xr.Dataset:
    """Return each label of a multi-label scan as a sample of its own, for measures of calibration.

    The confidence is the probability of the label, and it is correct if the label applies. Labels
    of one sample are not independent, which intervals ignore.

    Args:
        scan: a labeled multi-label scan, or its `data`.

    Returns:
        A dataset of `confidence` and `correct` `[model, sample, element]`, in which `sample` runs
        over samples and their labels, NaN where a label is unknown, with the coordinate
        `class_name`: `along_orbit(labels(scan), "ece", by="class_name")` has one curve for each
        label. `pair_at` and `reliability_at` take it too.

    Raises:
        InputError: if the scan is of another task, or without labels.

    Example:
        >>> import orbical as ob, torch
        >>> def half(images):
        ...     return torch.zeros(len(images), 2)
        >>> scan = ob.scan(half, (torch.zeros(4, 1, 8, 8), [[1, 0], [0, 1], [1, 1], [0, 1]]),
        ...                group="cyclic:4", task="multilabel", progress=False)
        >>> error = ob.calibration.along_orbit(labels(scan), "ece", by="class_name")
        >>> error.values[0, :, 0].tolist()
        [0.0, 0.25]
    """
    data = _data_of(scan, "multilabel", "true_labels", "label_accuracy")
    truth = data["true_labels"]
    return _pairs(data, data["probabilities"], truth, "class", _names_of(data))


def thresholds(scan: Scan | xr.Dataset) -> xr.Dataset:
    """Return each cumulative probability of an ordinal scan as a sample, to measure calibration.

    For k below the highest class the confidence is `P(class <= k)`, and it is correct if the true
    class is at most k. A model can be calibrated in its most probable class, and still expect
    samples too high or too low.

    Args:
        scan: a labeled ordinal scan, or its `data`.

    Returns:
        A dataset as that of `labels`, in which `sample` runs over samples and thresholds, with the
        coordinate `threshold`, the highest class below each.

    Raises:
        InputError: if the scan is of another task, or without labels.

    Example:
        >>> import orbical as ob, torch
        >>> def even(images):
        ...     return torch.zeros(len(images), 4)
        >>> scan = ob.scan(even, (torch.zeros(4, 1, 8, 8), [0, 1, 2, 3]), group="cyclic:4",
        ...                task="ordinal", progress=False)
        >>> error = ob.calibration.along_orbit(thresholds(scan), "ece", by="threshold")
        >>> error.values[0, :, 0].tolist()
        [0.0, 0.0, 0.0]
    """
    data = _data_of(scan, "ordinal", "label", "rank_error")
    reached = data["probabilities"].cumsum("class").isel({"class": slice(None, -1)})
    ranks = np.arange(reached.sizes["class"])
    passed = data["label"] <= _along("class", ranks)
    found = _pairs(data, reached.clip(0, 1), passed.astype(np.float32), "class", ranks)
    return found.rename(class_name="threshold")


def _data_of(scan: Any, kind: str, truth: str, score: str) -> xr.Dataset:
    """Return the data of a scan that has probabilities, a truth and its score, or raise."""
    data: xr.Dataset = getattr(scan, "data", scan)
    stored = getattr(data, "variables", ())
    for name in (truth, "probabilities", score):
        if name not in stored:
            given = getattr(data, "attrs", {}).get("task", type(scan).__name__)
            raise InputError(
                "scan", f"a labeled scan of {kind}", f"one of {given} without {name!r}"
            )
    return data


def _names_of(data: xr.Dataset) -> np.ndarray:
    if "class_name" in data.coords:
        return data["class_name"].values
    return np.arange(data.sizes["class"])


def _along(dim: str, values: np.ndarray) -> xr.DataArray:
    import xarray as xr

    return xr.DataArray(values, dims=dim)


def _pairs(
    data: xr.Dataset, chance: xr.DataArray, truth: xr.DataArray, dim: str, names: np.ndarray
) -> xr.Dataset:
    """Return probabilities `[model, sample, element, dim]` and truth `[sample, dim]` as pairs."""
    finished = data["score_vs_consensus"].notnull()
    pair = data[["score_vs_consensus"]].drop_dims(dim, errors="ignore")
    pair = pair.assign(
        chance=chance.drop_vars("class_name", errors="ignore"),
        truth=truth.drop_vars("class_name", errors="ignore").where(finished),
    )
    meanings = {
        "confidence": "probability of a single statement",
        "correct": "whether that statement is true",
    }
    found = stacked_pairs(pair, {"chance": "confidence", "truth": "correct"}, dim, meanings)
    return found.assign_coords(class_name=("sample", np.tile(names, data.sizes["sample"])))
