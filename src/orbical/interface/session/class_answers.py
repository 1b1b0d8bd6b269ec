"""Answers that are classes: which are taken for which, and sets of them with a chosen coverage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...calibration import bounded_mean_interval, unbounded_mean_interval
from ...errors import InputError, check_name
from ...store import Json
from .element_columns import response_columns
from .scan_view import PLACE, ScanView
from .subset_request import Answer, SubsetRequest, unavailable_request

Array = np.ndarray

MOST_CLASSES = 12
"""The most classes of a matrix; of more, the most frequent confusions are listed."""
MOST_PAIRS = 24
MOST_SAMPLES = 20_000
MOST_CELLS = 1 << 25
PARTS = ("coverage", "size")


def has_class_answers(view: ScanView) -> bool:
    """Check whether every answer is one class, and every sample has one."""
    by_sample = view.reader.dims.get("label") == ("sample",)
    return view.reader.dims.get("predicted") == PLACE and by_sample


def has_class_sets(view: ScanView) -> bool:
    """Check whether sets of classes can be made: of stored probabilities and labels."""
    stored = view.reader.dims.get("probabilities", ())[:3] == PLACE
    return stored and view.label is not None


def confusion(request: SubsetRequest) -> Answer:
    """Answer `counts [M, C, C]` of (expected, predicted), and the most frequent confusions.

    Confusions are `pairs [M, P, 3]`: expected, predicted, count; -1 where there are fewer.
    """
    view = request.view
    if not has_class_answers(view):
        return unavailable_request(
            "the predictions are not one class for each sample, or the samples have no labels"
        )
    classes = len(view.classes)
    each = [_codes(request, model) for model in request.models]
    about = {
        "available": True,
        "element": request.element,
        "count": max((len(codes) for codes in each), default=0),
        "classes": classes,
        "models": request.names,
    }
    arrays = {"pairs": np.stack([confused_class_answers(codes, classes) for codes in each])}
    if classes <= MOST_CLASSES:
        counts = [np.bincount(codes, minlength=classes**2) for codes in each]
        arrays["counts"] = np.stack(counts).reshape(-1, classes, classes).astype(np.int32)
    return about, arrays


def confused_class_answers(codes: Array, classes: int) -> Array:
    """Return the most frequent confusions `[MOST_PAIRS, 3]` among codes `expected * C + predicted`.

    >>> confused_class_answers(np.array([1, 1, 2, 0, 3]), 2)[:3].tolist()
    [[0, 1, 2], [1, 0, 1], [-1, -1, -1]]
    """
    seen, count = np.unique(codes, return_counts=True)
    wrong = seen // classes != seen % classes
    seen, count = seen[wrong], count[wrong]
    order = np.lexsort((seen, -count))[:MOST_PAIRS]
    pairs = np.full((MOST_PAIRS, 3), -1, np.int32)
    pairs[: len(order)] = np.stack([seen // classes, seen % classes, count], 1)[order]
    return pairs


def in_confusion_cell(request: SubsetRequest, given: object) -> Array:
    """Return the mask `[N]` of the samples of one class that a model takes for another here.

    Args:
        request: The subset, reference and position.
        given: `model`, `expected` and `predicted`, the numbers of two classes.
    """
    view = request.view
    if not has_class_answers(view) or not isinstance(given, Mapping):
        raise InputError("cell", "a model and two classes of a scan with labels")
    check_name("cell model", given.get("model"), view.models)
    last = len(view.classes) - 1
    for name in ("expected", "predicted"):
        if given.get(name) not in range(last + 1):
            raise InputError(f"cell {name}", f"0 to {last}", repr(given.get(name)))
    expected, predicted = _answers(request, view.models.index(given["model"]))
    inside: Array = (expected == given["expected"]) & (predicted == given["predicted"])
    return np.asarray(inside & request.subset.members)


def _codes(request: SubsetRequest, model: int) -> Array:
    """Return `expected * C + predicted` of the subset's samples that have both."""
    expected, predicted = _answers(request, model)
    judged = (expected >= 0) & np.isfinite(predicted) & request.subset.members
    classes = len(request.view.classes)
    return np.asarray(expected[judged] * classes + predicted[judged].astype(np.int64))


def _answers(request: SubsetRequest, model: int) -> tuple[Array, Array]:
    """Return the expected class of each sample `[N]`, -1 if unknown, and the predicted one."""
    view = request.view
    truth = consensus_classes(view)[model] if request.reference == "consensus" else view.label
    assert truth is not None
    return truth, response_columns(view, "predicted").column(model, request.element)


def consensus_classes(view: ScanView) -> Array:
    """Return the class of each consensus `[M, N]`, -1 where it is unfinished; computed once."""

    def compute() -> Array:
        classes = np.full((len(view.models), view.samples), -1, np.int64)
        for rows in view.reader.blocks("consensus"):
            for model in range(len(classes)):
                mean = view.reader.read("consensus", rows, model, keep=False)
                classes[model, rows] = np.where(np.isfinite(mean).all(-1), mean.argmax(-1), -1)
        return classes

    return view.cache.get_or_compute("consensus classes", compute)


@dataclass(frozen=True)
class ClassAnswerSets:
    """The sets of the samples that did not calibrate them.

    Attributes:
        rows: `[n]`, these samples, ascending.
        hits: `[M, n, K]`, whether a set contains the true class.
        sizes: `[M, n, K]`, the number of classes in it.
        held: The number of samples that calibrated.
    """

    rows: Array
    hits: Array
    sizes: Array
    held: int


def class_set_coverage(request: SubsetRequest) -> Answer:
    """Answer coverage and mean size of conformal sets at each element, `[M, K]` with intervals.

    Half of the samples calibrate, at the identity or over the orbit; the others are
    tested, and those of them in the subset are counted.
    """
    from ...conformal import LAC

    view, models = request.view, request.models
    if not has_class_sets(view):
        return unavailable_request(
            "sets need labels and class probabilities; scan with --keep probabilities"
        )
    place = "pooled" if request.selection.scope == "orbit" else "identity"
    try:
        tested = view.cache.get_or_compute(("sets", place), lambda: _tested_class_sets(view, place))
    except InputError as error:  # too few samples: the page shows the message
        return unavailable_request(error)
    chosen = request.subset.members[tested.rows]
    about = {
        "available": True,
        "calibrated": place,
        "wanted": LAC().coverage,
        "held": tested.held,
        "count": int(chosen.sum()),
        "models": request.names,
    }
    arrays: Json = {}
    hits, sizes = (
        np.moveaxis(values[models][:, chosen], 1, -1) for values in (tested.hits, tested.sizes)
    )
    each = bounded_mean_interval(hits), unbounded_mean_interval(sizes, low=0.0)
    for name, ends in zip(PARTS, each, strict=True):
        arrays |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
    return about, arrays


def _tested_class_sets(view: ScanView, place: str) -> ClassAnswerSets:
    """Calibrate on half of the samples and test the others; of very many, evenly chosen ones."""
    from ...conformal import LAC, conformal_halves, conformal_tests

    models, elements = len(view.models), len(view.group)
    most = min(MOST_SAMPLES, MOST_CELLS // (models * elements))
    usable = _samples_with_class_answers(view)
    usable = usable[:: -(-len(usable) // most)] if len(usable) else usable
    parts = conformal_halves(usable, 0.5, 0)
    shape = (models, len(parts[1]), elements)
    hits, sizes = np.zeros(shape, bool), np.zeros(shape, np.uint16)
    at = view.group.identity if place == "identity" else place
    for model in range(models):
        with view.passes.turn(patient=True):
            for rows, hit, size in conformal_tests(view.reader, LAC(), model, parts, at):
                here = np.searchsorted(parts[1], rows)
                hits[model, here], sizes[model, here] = hit, size
    return ClassAnswerSets(parts[1], hits, sizes, len(parts[0]))


def _samples_with_class_answers(view: ScanView) -> Array:
    """Return the samples that have a label and outputs of every model at every element."""
    assert view.label is not None
    good = view.label >= 0
    if not view.complete:
        for rows in view.reader.blocks("score"):
            for model in range(len(view.models)):
                good[rows] &= np.isfinite(view.reader.responses("score", rows, model)).all(1)
    return np.flatnonzero(good)
