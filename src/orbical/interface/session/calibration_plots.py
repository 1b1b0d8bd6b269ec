"""Calibration of the subset: reliability diagrams, cumulative curves and errors."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from ...calibration import (
    Interval,
    Reliability,
    cumulative_curve,
    error_verdict,
    pooled_reliability,
    reliability,
)
from ...store import Json
from ..selection import Selection
from .element_columns import ConfidenceColumns, alike, columns_of
from .sample_sets import Answer, mask_of, subset_key
from .scan_view import ScanView
from .subset_curves import ENDS, LEAST, WITH_INTERVAL, measure_rows, measures_over

Array = np.ndarray

BINS = 15
CURVE_POINTS = 101
MOST_PAIRS = 2_000_000
"""Pairs that are sorted at once. Of more in whole orbits, every n-th sample is used."""


def calibration(view: ScanView, selection: Selection, message: Json) -> Answer:
    """Answer the reliability diagram, the cumulative curves and errors of each model shown."""
    if not {"confidence", "correct"} <= view.metrics.keys():
        return {"available": False, "reason": "the scan stores no confidence and correctness"}, {}
    mask, reference = mask_of(view, selection), view.reference(selection)
    pairs = columns_of(view, reference)
    place = "orbit" if selection.scope == "orbit" else view.element(selection)
    key = ("calibration", place, reference, *subset_key(view, selection))
    plots = [
        view.cache.get_or_compute((*key, model), partial(_of, view, pairs, model, place, mask))
        for model in view.shown(selection)
    ]
    return _answer(view, selection, plots)


def calibration_along(view: ScanView, selection: Selection) -> list[Answer]:
    """Answer as `calibration` does at each element, and last over whole orbits, in one pass."""
    mask, reference = mask_of(view, selection), view.reference(selection)
    pairs, size = columns_of(view, reference), len(view.group)
    errors = measures_over(view, WITH_INTERVAL, reference, mask, subset_key(view, selection))
    count = view.samples if mask is None else int(mask.sum())
    step = max(1, MOST_PAIRS // max(1, count))
    each = []
    for model in view.shown(selection):
        ends = np.stack([errors[part][model] for part in ENDS], -1)
        plots: list[Json] = []
        for start in range(0, size, step):
            some = [_all_at(pairs, model, one, mask) for one in range(size)[start : start + step]]
            sure, right = (np.stack([pair[part] for pair in some]) for part in (0, 1))
            plots += _plots(sure, right, ends[start : start + step])
        each.append(plots)
    answers = [
        _answer(view, replace(selection, element=element, scope="element"), [*plots])
        for element, plots in enumerate(zip(*each, strict=True))
    ]
    return [*answers, calibration(view, replace(selection, scope="orbit"), {})]


def _answer(view: ScanView, selection: Selection, plots: list[Json]) -> Answer:
    """Return the answer that holds the plots of each model shown."""
    models = [view.models[model] for model in view.shown(selection)]
    about = {
        "available": True,
        "scope": selection.scope,
        "element": view.element(selection),
        "models": models,
        "count": max((plot["count"] for plot in plots), default=0),
        "measures": [
            {"model": model, **entry}
            for model, plot in zip(models, plots, strict=True)
            for entry in plot["measures"]
        ],
    }
    arrays = {
        "edges": np.linspace(0, 1, BINS + 1),
        "cumulative_x": np.linspace(0, 1, CURVE_POINTS),
    }
    for name, own in _NAMES.items():
        arrays[name] = np.stack([plot[own] for plot in plots])
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
    if place != "orbit":
        sure, right = (part[None] for part in _all_at(pairs, model, int(place), mask))
        return _plots(sure, right)[0]
    count = len(_at(pairs, model, view.group.identity, mask)[0])
    if count < LEAST:
        return _too_few(count)
    diagram, error = pooled(view, pairs, model, mask)
    curves = _curves(*_along(view, pairs, model, mask))
    ends = (error.value, error.low, error.high, error.calibrated)
    return _plot(diagram, curves, [float(end) for end in ends])


def _plots(sure: Array, right: Array, ends: Array | None = None) -> list[Json]:
    """Return the plots of each row of pairs `[K, N]`, NaN if a sample has no output.

    Args:
        sure: Confidences.
        right: Whether they were justified.
        ends: `[K, 4]`, the errors with the ends of their intervals, if they are known.
    """
    plots = [_too_few(0)] * len(sure)
    for places, *given in alike(sure, right):
        count = given[0].shape[1]
        if count < LEAST:
            for place in places:
                plots[place] = _too_few(count)
            continue
        pair = [torch.from_numpy(part) for part in given]
        diagrams, curves = reliability(*pair, bins=BINS), _curves(pair[0], pair[1], None)
        mine = (
            torch.stack([*measure_rows(WITH_INTERVAL, pair).values()], -1).numpy()
            if ends is None
            else ends[places]
        )
        for row, place in enumerate(places):
            diagram = Reliability(**{name: part[row] for name, part in vars(diagrams).items()})
            plots[place] = _plot(diagram, (curves[0][row], curves[1][row]), mine[row].tolist())
    return plots


def _plot(diagram: Reliability, curves: tuple[Array, Array], ends: list[float]) -> Json:
    """Return what is drawn of a diagram, cumulative curves, and an error with its interval."""
    return {
        "count": int(diagram.count.sum()),
        "bins": diagram.count.numpy().astype(np.int32),
        "confidence": diagram.confidence.numpy(),
        "accuracy": diagram.accuracy.numpy(),
        "curve_confidence": curves[0],
        "curve_accuracy": curves[1],
        "measures": [_described(diagram, *ends)],
    }


def _too_few(count: int) -> Json:
    """Return what is drawn of samples that are too few for an error, and for curves."""
    return {
        "count": count,
        "measures": [],
        "bins": np.zeros(BINS, np.int32),
        **dict.fromkeys(("confidence", "accuracy"), np.full(BINS, np.nan)),
        **dict.fromkeys(("curve_confidence", "curve_accuracy"), np.full(CURVE_POINTS, np.nan)),
    }


def pooled(
    view: ScanView, pairs: ConfidenceColumns, model: int, mask: Array | None
) -> tuple[Reliability, Interval]:
    """Return the reliability diagram and the ECE of the subset over whole orbits."""
    every = (_all_at(pairs, model, element, mask) for element in range(len(view.group)))
    return pooled_reliability(every, view.group.weights, bins=BINS)


def _curves(sure: Tensor, right: Tensor, weights: Tensor | None) -> tuple[Array, Array]:
    """Return cumulative confidence and accuracy at equal steps of the fraction of samples."""
    curve = cumulative_curve(sure, right, weights=weights)
    steps = torch.linspace(0, 1, CURVE_POINTS, dtype=torch.float64) + 1e-12
    steps = steps.expand(*sure.shape[:-1], -1).contiguous()
    ends = torch.searchsorted(curve.quantile, steps, right=True)
    first, second = (
        torch.nn.functional.pad(part, (1, 0)).gather(-1, ends).numpy()
        for part in (curve.confidence, curve.accuracy)
    )
    return first, second


def _described(
    diagram: Reliability, value: float, low: float, high: float, expected: float
) -> Json:
    """Return the ECE with its interval, mean confidence and accuracy, and the verdict on them."""
    means = [
        float((diagram.share * part.nan_to_num()).sum())
        for part in (diagram.confidence, diagram.accuracy)
    ]
    return {
        "name": WITH_INTERVAL,
        "value": value,
        "low": low,
        "high": high,
        "expected": expected,
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
