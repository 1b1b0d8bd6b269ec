"""What is wrong, and what would help: failures that were found, advice, and what if."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...errors import InputError, OrbicalError, check_name
from ...nero import failures as find_failures
from ...nero import mean_of_curves
from ...store import Json
from ..selection import Selection
from .request import Answer, Request, keep_set, unavailable
from .scan_view import ScanView

Array = np.ndarray

MEANS = ("accuracy", "answered", "risk", "cost", "coverage", "size")
"""What is stated of each model before and after a change: means over the orbit."""
_CHANGE = {"average": 1, "recalibrate": "", "reject": None, "coverage": None}
_MOST_OPEN = 5
MOST_SAMPLES = 1_000
"""The most samples that a change is fitted to and judged by, so that a switch answers at once."""


def _arrays(view: ScanView) -> Any:
    """Return the arrays of a scan with their cache, which these functions take as a scan."""
    return view.reader


def failures(request: Request) -> Answer:
    """Answer which subsets fail where: a sentence, a set, a position and a sample of each."""
    view = request.view
    return view.cache.get_or_compute("failures", lambda: _failures(view))


def _failures(view: ScanView) -> Answer:
    try:
        found = find_failures(_arrays(view))
    except OrbicalError as error:
        return unavailable(error)
    about = {
        "available": True,
        "searched": found.searched,
        "failures": [
            {
                "model": one.model,
                "sentence": one.sentence,
                "confirmed": one.confirmed,
                "excess": one.excess,
                "set": keep_set(view, found.subsets[one.column, one.value]),
                "element": one.elements[len(one.elements) // 2],
                "sample": _worst_of(view, one.model, found.samples_of(one), one.elements),
            }
            for one in (*found, *found.open[:_MOST_OPEN])
        ],
    }
    return about, {}


def _worst_of(view: ScanView, model: str, samples: Array, elements: tuple[int, ...]) -> int:
    """Return the sample whose score is worst at some elements."""
    upward = view.metrics["score"].higher_is_better is not False
    score = view.variable(view.metrics["score"], view.reference(Selection()))
    number = view.models.index(model)
    some = samples[:: max(1, len(samples) // 200)]
    rows = np.stack([view.response(score, int(one), number)[list(elements)] for one in some])
    known = np.isfinite(rows)
    means = np.where(known, rows, 0).sum(1) / np.maximum(known.sum(1), 1)
    return int(some[np.where(known.any(1), means if upward else -means, np.inf).argmin()])


def advice(request: Request) -> Answer:
    """Answer what would help each model: remedies with their gain, interval and cost."""
    from ...advice import advise  # imports scikit-learn, as below

    view = request.view

    def compute() -> Answer:
        try:
            found = advise(_arrays(view))
        except OrbicalError as error:
            return unavailable(error)
        return {"available": True, "models": [one.to_dict() for one in found]}, {}

    return view.cache.get_or_compute("advice", compute)


def choices(view: ScanView) -> Json:
    """Return what can be changed about the predictions of a scan."""
    from ...advice import RECALIBRATED

    size, stored = len(view.group), "probabilities" in view.reader and view.label is not None
    averages = range(1, size + 1) if stored and view.group.closed else (1,)
    return {
        "average": [number for number in averages if size % number == 0],
        "recalibrate": ["", *(RECALIBRATED if stored else ())],
        "reject": [None, "fitted", 0.5, 0.8, 0.9, 0.95],
        "coverage": [None, *((0.8, 0.9, 0.95) if stored else ())],
    }


def _changed(view: ScanView, change: Json) -> Any:
    from ...advice import what_if

    return what_if(_arrays(view), most=MOST_SAMPLES, **change)


def whatif(request: Request) -> Answer:
    """Answer what a change would do: means `before` and `after`, and the accuracy at each element.

    Both are of the samples that fitted nothing.
    """
    view, given = request.view, request.message.get("change", {})
    if not {"confidence", "correct"} <= view.metrics.keys() or not view.scan.labeled:
        return unavailable(
            "what if needs labels, and one class with its confidence for each sample"
        )
    if not isinstance(given, dict):
        raise InputError("change", "an object", type(given))
    known = choices(view)
    for name, value in given.items():
        check_name("change", name, known)
        if value not in known[name]:
            raise InputError(f"change {name}", f"one of {known[name]}", repr(value))
    arrays: Json = {}
    about: Json = {"available": True, "choices": known, "models": request.names}
    for part, change in (("before", _CHANGE), ("after", {**_CHANGE, **given})):
        key = ("what if", *change.values())
        found = view.cache.get_or_compute(key, partial(_changed, view, change))
        chosen = found.isel(model=request.models)
        arrays[f"{part}/accuracy"] = chosen["accuracy"].values
        about[part] = {"pooled_ece": chosen["pooled_ece"].values.tolist()}
        for name in MEANS:
            if name in chosen:
                means = mean_of_curves(chosen[name].values, view.group.weights)
                about[part][name] = means.tolist()
        about |= {name: found.attrs[name] for name in ("code", "passes", "held", "tested")}
    return about, arrays
