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


def near_to_far(group: Group) -> Array:
    """Return the elements from the identity outward; in their own order if they have no size."""
    reach = np.arange(len(group)) if group.reach is None else group.reach[0]
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
