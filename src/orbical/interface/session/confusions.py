"""Which classes are taken for which at a position, and the samples behind each confusion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...errors import InputError, check_name
from ...store import Json
from ..selection import Selection
from .element_columns import response_columns
from .sample_sets import Answer, mask_of
from .scan_view import ScanView

Array = np.ndarray

MOST_CLASSES = 12
"""The most classes of a matrix; of more, the most frequent confusions are listed."""
MOST_PAIRS = 24
PLACE = ("model", "sample", "element")


def available(view: ScanView) -> bool:
    """Check whether every answer is one class, and every sample has one."""
    return view.reader.dims.get("predicted") == PLACE and _known(view, "truth") is not None


def confusion(view: ScanView, selection: Selection, message: Json) -> Answer:
    """Answer `counts [M, C, C]` of (expected, predicted), and the most frequent confusions.

    Confusions are `pairs [M, P, 3]`: expected, predicted, count; -1 where there are fewer.
    """
    if not available(view):
        reason = "the answers are not one class for each sample, or the samples have no labels"
        return {"available": False, "reason": reason}, {}
    mask, element = mask_of(view, selection), view.element(selection)
    models, classes = view.shown(selection), len(view.classes)
    each = [_codes(view, selection, model, element, mask) for model in models]
    about = {
        "available": True,
        "element": element,
        "count": max((len(codes) for codes in each), default=0),
        "classes": classes,
        "models": [view.models[model] for model in models],
    }
    arrays = {"pairs": np.stack([confused(codes, classes) for codes in each])}
    if classes <= MOST_CLASSES:
        counts = [np.bincount(codes, minlength=classes**2) for codes in each]
        arrays["counts"] = np.stack(counts).reshape(-1, classes, classes).astype(np.int32)
    return about, arrays


def confused(codes: Array, classes: int) -> Array:
    """Return the most frequent confusions `[MOST_PAIRS, 3]` among codes `expected * C + predicted`.

    >>> confused(np.array([1, 1, 2, 0, 3]), 2)[:3].tolist()
    [[0, 1, 2], [1, 0, 1], [-1, -1, -1]]
    """
    found, count = np.unique(codes, return_counts=True)
    wrong = found // classes != found % classes
    found, count = found[wrong], count[wrong]
    order = np.lexsort((found, -count))[:MOST_PAIRS]
    pairs = np.full((MOST_PAIRS, 3), -1, np.int32)
    pairs[: len(order)] = np.stack([found // classes, found % classes, count], 1)[order]
    return pairs


def in_cell(view: ScanView, selection: Selection, given: Any) -> Array:
    """Return the mask `[N]` of the samples of one class that a model takes for another here.

    Args:
        view: The view of the scan.
        selection: The subset, reference and position.
        given: `model`, `expected` and `predicted`, the numbers of two classes.
    """
    if not available(view) or not isinstance(given, Mapping):
        raise InputError("cell", "a model and two classes of a scan with labels")
    check_name("cell model", given.get("model"), view.models)
    for name in ("expected", "predicted"):
        if given.get(name) not in range(len(view.classes)):
            last = len(view.classes) - 1
            raise InputError(f"cell {name}", f"0 to {last}", repr(given.get(name)))
    model, element = view.models.index(given["model"]), view.element(selection)
    expected, predicted = _answers(view, selection, model, element)
    inside: Array = (expected == given["expected"]) & (predicted == given["predicted"])
    mask = mask_of(view, selection)
    return inside if mask is None else inside & mask


def _codes(
    view: ScanView, selection: Selection, model: int, element: int, mask: Array | None
) -> Array:
    """Return `expected * C + predicted` of the subset's samples that have both."""
    expected, predicted = _answers(view, selection, model, element)
    judged = (expected >= 0) & np.isfinite(predicted)
    if mask is not None:
        judged &= mask
    return np.asarray(expected[judged] * len(view.classes) + predicted[judged].astype(np.int64))


def _answers(view: ScanView, selection: Selection, model: int, element: int) -> tuple[Array, Array]:
    known = _known(view, view.reference(selection))
    assert known is not None
    predicted = response_columns(view, "predicted").column(model, element)
    return known[model if len(known) > 1 else 0], predicted


def _known(view: ScanView, reference: str) -> Array | None:
    """Return the expected class of each sample `[1 or M, N]`, -1 if unknown; None without one."""
    if reference == "consensus":
        return view.cache.get_or_compute("consensus classes", lambda: _consensus(view))
    if "label" not in view.reader or view.reader.dims["label"] != ("sample",):
        return None
    return None if view.label is None else view.label[None]


def _consensus(view: ScanView) -> Array:
    found = np.full((len(view.models), view.samples), -1, np.int64)
    for rows in view.reader.blocks("consensus"):
        for model in range(len(found)):
            mean = view.reader.read("consensus", rows, model, keep=False)
            known = np.isfinite(mean).all(-1)
            found[model, rows] = np.where(known, mean.argmax(-1), -1)
    return found
