"""Calibration of the subset: reliability diagrams, cumulative curves and errors."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from torch import Tensor

from ...calibration import (
    Interval,
    cumulative_curve,
    error_verdict,
    interval,
    pooled_reliability,
    reliability,
)
from ...calibration.measures.binned import Reliability
from ...store.record import Json
from ..selection import Selection
from .element_columns import ConfidenceColumns, columns_of
from .sample_sets import Answer, mask_of, subset_key
from .scan_view import ScanView
from .subset_curves import LEAST

Array = np.ndarray

BINS = 15
CURVE_POINTS = 101
RESAMPLES = 200
MOST_PAIRS = 2_000_000
"""Pairs in the cumulative curves of whole orbits; of more, every n-th sample is used."""


def calibration(view: ScanView, selection: Selection, message: Json) -> Answer:
    """Answer the reliability diagram, the cumulative curves and errors of each model shown."""
    if not {"confidence", "correct"} <= view.metrics.keys():
        return {"available": False, "reason": "the scan stores no confidence and correctness"}, {}
    element = view.element(selection)
    mask = mask_of(view, selection)
    reference = view.reference(selection)
    models = view.shown(selection)
    pairs = columns_of(view, reference)
    whole = selection.scope == "orbit"
    place = "orbit" if whole else element
    key = ("calibration", place, reference, *subset_key(view, selection))
    found = [
        view.cache.get_or_compute((*key, model), partial(_of, view, pairs, model, place, mask))
        for model in models
    ]
    about = {
        "available": True,
        "scope": selection.scope,
        "element": element,
        "models": [view.models[model] for model in models],
        "count": max((part["count"] for part in found), default=0),
        "measures": [
            {"model": view.models[model], **entry}
            for model, part in zip(models, found, strict=True)
            for entry in part["measures"]
        ],
    }
    arrays = {
        "edges": np.linspace(0, 1, BINS + 1),
        "cumulative_x": np.linspace(0, 1, CURVE_POINTS),
    }
    for name, own in _NAMES.items():
        arrays[name] = np.stack([part[own] for part in found])
    return about, arrays


_NAMES = {
    "count": "bins",
    "confidence": "confidence",
    "accuracy": "accuracy",
    "cumulative_confidence": "curve_confidence",
    "cumulative_accuracy": "curve_accuracy",
}


def _of(
    view: ScanView, pairs: ConfidenceColumns, model: int, place: int | str, mask: Array | None
) -> Json:
    whole = place == "orbit"
    first = view.group.identity if whole else int(place)
    sure, right = _at(pairs, model, first, mask)
    if len(sure) < LEAST:  # too few for an error, and for curves
        return {
            "count": len(sure),
            "measures": [],
            "bins": np.zeros(BINS, np.int32),
            **dict.fromkeys(("confidence", "accuracy"), np.full(BINS, np.nan)),
            **dict.fromkeys(("curve_confidence", "curve_accuracy"), np.full(CURVE_POINTS, np.nan)),
        }
    if whole:
        diagram, error = pooled(view, pairs, model, mask)
        curves = _curves(*_along(view, pairs, model, mask))
    else:
        pair = torch.from_numpy(sure), torch.from_numpy(right)
        diagram, error = reliability(*pair, bins=BINS), interval("ece", *pair, resamples=RESAMPLES)
        curves = _curves(*pair, None)
    return {
        "count": int(diagram.count.sum()),
        **_drawn(diagram, curves),
        "measures": [_described(diagram, error)],
    }


def pooled(
    view: ScanView, pairs: ConfidenceColumns, model: int, mask: Array | None
) -> tuple[Reliability, Interval]:
    """Return the reliability diagram and the ECE of the subset over whole orbits."""
    every = (_all_at(pairs, model, element, mask) for element in range(len(view.group)))
    return pooled_reliability(every, view.group.weights, bins=BINS)


def _drawn(diagram: Reliability, curves: tuple[Array, Array]) -> dict[str, Array]:
    return {
        "bins": diagram.count.numpy().astype(np.int32),
        "confidence": diagram.confidence.numpy(),
        "accuracy": diagram.accuracy.numpy(),
        "curve_confidence": curves[0],
        "curve_accuracy": curves[1],
    }


def _curves(sure: Tensor, right: Tensor, weights: Tensor | None) -> tuple[Array, Array]:
    """Return cumulative confidence and accuracy at equal steps of the fraction of samples."""
    steps = np.linspace(0, 1, CURVE_POINTS)
    curve = cumulative_curve(sure, right, weights=weights)
    ends = np.searchsorted(curve.quantile.numpy(), steps + 1e-12, side="right")
    first, second = (
        np.concatenate([[0.0], part.numpy()])[ends] for part in (curve.confidence, curve.accuracy)
    )
    return first, second


def _described(diagram: Reliability, error: Interval) -> Json:
    """Return the ECE with its interval, mean confidence and accuracy, and the verdict on them."""
    means = [
        float((diagram.share * part.nan_to_num()).sum())
        for part in (diagram.confidence, diagram.accuracy)
    ]
    value, low, high = (float(part) for part in (error.value, error.low, error.high))
    return {
        "name": "ece",
        "value": value,
        "low": low,
        "high": high,
        "expected": float(error.calibrated),
        "confidence": means[0],
        "accuracy": means[1],
        "verdict": error_verdict(value, low, high, gap=means[0] - means[1]),
    }


def _at(
    pairs: ConfidenceColumns, model: int, element: int, mask: Array | None
) -> tuple[Array, Array]:
    """Return the outputs of the subset at an element."""
    sure, right = _all_at(pairs, model, element, mask)
    kept = ~np.isnan(sure)
    return sure[kept], right[kept]


def _all_at(
    pairs: ConfidenceColumns, model: int, element: int, mask: Array | None
) -> tuple[Array, Array]:
    """Return a pair for each sample of the subset at an element, NaN if it has no output."""
    sure, right = pairs.pair(model, element)
    return (sure, right) if mask is None else (sure[mask], right[mask])


def _along(
    view: ScanView, pairs: ConfidenceColumns, model: int, mask: Array | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Concatenate the pairs of all elements, each with the weight of its element."""
    size = len(view.group)
    count = view.samples if mask is None else int(mask.sum())
    stride = max(1, -(-count * size // MOST_PAIRS))
    some = [[part[::stride] for part in _at(pairs, model, one, mask)] for one in range(size)]
    pair = [torch.from_numpy(np.concatenate(column)) for column in zip(*some, strict=True)]
    weights = np.repeat(view.group.weights, [len(sure) for sure, _ in some])
    uniform = bool(np.ptp(view.group.weights) < 1e-12)
    return pair[0], pair[1], None if uniform else torch.from_numpy(weights)
