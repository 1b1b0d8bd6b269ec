"""How far along the orbit a prediction first fails, and what the models predict upright."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...groups import Group
from .scan_view import ScanView

Array = np.ndarray


@dataclass(frozen=True)
class Upright:
    """What each model predicts for the untransformed sample, `[M, N]` each, None if not stored.

    Attributes:
        predicted: The class; -1 if unfinished.
        correct: 1 or 0; NaN if unfinished.
        confidence: The confidence; NaN if unfinished.
        failure: The place of the first failure among the elements from near to far; the number of
            elements if there is none, NaN if unfinished.
    """

    predicted: Array | None
    correct: Array | None
    confidence: Array | None
    failure: Array | None


def reach_of(group: Group) -> tuple[Array, str] | None:
    """Return how far each element is from the identity, and its unit; None if it has no size.

    >>> from orbical.groups import rotations
    >>> reach_of(rotations(8))[0].tolist()
    [0.0, 45.0, 90.0, 135.0, 180.0, 135.0, 90.0, 45.0]
    """
    coords = {name: np.asarray(values) for name, values in group.coords.items()}
    names = {*coords}
    if names in ({"angle"}, {"hue"}, {"angle", "plane", "azimuth"}):
        angle = coords["hue" if "hue" in names else "angle"] % 360
        return np.minimum(angle, 360 - angle), "°"
    if names in ({"dx", "dy"}, {"rx", "ry", "rz"}):
        parts = np.stack([coords[name] for name in sorted(names)])
        return np.sqrt(np.square(parts).sum(0)), "px" if "dx" in names else "°"
    if names in ({"scale"}, {"brightness"}):
        factor = next(iter(coords.values()))
        return np.maximum(factor, 1 / factor), "×"
    return None


def near_to_far(group: Group) -> Array:
    """Return the elements from the identity outward; in their own order if they have no size."""
    found = reach_of(group)
    reach = np.arange(len(group)) if found is None else found[0]
    return np.lexsort((np.arange(len(group)), reach, np.arange(len(group)) != group.identity))


def upright_of(view: ScanView) -> Upright:
    """Return what the models predict upright and where they first fail, computed once in blocks."""
    return view.cache.get_or_compute("upright", lambda: _make(view))


def _make(view: ScanView) -> Upright:
    shape = (len(view.models), view.samples)
    variable = ""
    if "correct" in view.metrics:
        variable = view.variable(
            view.metrics["correct"], "truth" if view.scan.labeled else "consensus"
        )
    by_class = "predicted" in view.reader and view.reader.dims["predicted"] == _PLACE
    predicted = np.full(shape, -1, np.int32) if by_class else None
    correct, failure = (np.full(shape, np.nan, np.float32) if variable else None for _ in range(2))
    sure = "confidence" in view.metrics
    confidence = np.full(shape, np.nan, np.float32) if sure else None
    order, home = near_to_far(view.group), view.group.identity
    for rows in view.blocks("score_vs_consensus"):
        for model in range(shape[0]):
            with view.passes.turn(patient=True):  # requests for what is visible come first
                if predicted is not None:
                    answers = view.responses("predicted", rows, model, keep=False)[:, home]
                    predicted[model, rows] = np.where(np.isnan(answers), -1, answers)
                if confidence is not None:
                    found = view.responses("confidence", rows, model, keep=False)
                    confidence[model, rows] = found[:, home]
                if correct is not None and failure is not None:
                    right = view.responses(variable, rows, model, keep=False)
                    correct[model, rows] = right[:, home]
                    failure[model, rows] = _first_failure(right[:, order])
    return Upright(predicted, correct, confidence, failure)


_PLACE = ("model", "sample", "element")


def _first_failure(right: Array) -> Array:
    """Return the first column of `right [rows, K]` that is 0; K if none is, NaN without any."""
    wrong = right == 0
    first = np.where(wrong.any(1), wrong.argmax(1), right.shape[1]).astype(np.float32)
    return np.where(np.isnan(right).all(1), np.float32(np.nan), first)
