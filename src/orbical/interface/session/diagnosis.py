"""What is wrong, why, and what would help: failures and advice, flips of a sample, and layers."""

from __future__ import annotations

import contextlib
import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._trees import concatenate, to_device, tree_map
from ...errors import InputError, OrbicalError, check_name, check_type
from ...groups import chart_of
from ...nero import failures as find_failures
from ...nero import mean_of_curves
from ...store import Json
from ..selection import Selection
from .input_pictures import thumbnails
from .scan_view import ScanView
from .subset_request import Answer, SubsetRequest, keep_set, unavailable_request

if TYPE_CHECKING:
    from ...adversarial import Flip

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


def failures(request: SubsetRequest) -> Answer:
    """Answer which subsets fail where: a sentence, a set, a position and a sample of each."""
    view = request.view
    return view.cache.get_or_compute("failures", lambda: _failures_to_diagnose(view))


def _failures_to_diagnose(view: ScanView) -> Answer:
    try:
        found = find_failures(_arrays(view))
    except OrbicalError as error:
        return unavailable_request(error)
    about = {
        "available": True,
        "searched": found.searched,
        "scope": found.scope,
        "failures": [
            {
                "model": one.model,
                "sentence": one.sentence,
                "confirmed": one.confirmed,
                "excess": one.excess,
                "set": keep_set(view, found.subsets[one.column, one.value]),
                "element": one.elements[len(one.elements) // 2],
                "sample": _worst_of_failure(view, one.model, found.samples_of(one), one.elements),
            }
            for one in (*found, *found.open[:_MOST_OPEN])
        ],
    }
    return about, {}


def _worst_of_failure(view: ScanView, model: str, samples: Array, elements: tuple[int, ...]) -> int:
    """Return the sample whose score is worst at some elements."""
    upward = view.metrics["score"].higher_is_better is not False
    score = view.variable(view.metrics["score"], view.reference(Selection()))
    number = view.models.index(model)
    some = samples[:: max(1, len(samples) // 200)]
    rows = np.stack([view.response(score, int(one), number)[list(elements)] for one in some])
    known = np.isfinite(rows)
    means = np.where(known, rows, 0).sum(1) / np.maximum(known.sum(1), 1)
    return int(some[np.where(known.any(1), means if upward else -means, np.inf).argmin()])


def advice(request: SubsetRequest) -> Answer:
    """Answer what would help each model: remedies with their gain, interval and cost."""
    from ...advice import advise  # imports scikit-learn, as below

    view = request.view

    def compute() -> Answer:
        try:
            found = advise(_arrays(view))
        except OrbicalError as error:
            return unavailable_request(error)
        return {"available": True, "models": [one.to_dict() for one in found]}, {}

    return view.cache.get_or_compute("advice", compute)


def whatif_choices(view: ScanView) -> Json:
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


def whatif(request: SubsetRequest) -> Answer:
    """Answer what a change would do: means `before` and `after`, and the accuracy at each element.

    Both are of the samples that fitted nothing.
    """
    view, given = request.view, request.message.get("change", {})
    if not {"confidence", "correct"} <= view.metrics.keys() or not view.scan.labeled:
        return unavailable_request(
            "what if needs labels, and one class with its confidence for each sample"
        )
    check_type("change", given, dict, "an object")
    known = whatif_choices(view)
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


FRAMES = 12
"""The most pictures of a film strip."""
LAYER_SAMPLES = 64
"""Samples that the errors of layers are measured on, as in `orbical why`."""
MOST_COMPARED = 2_000
"""The most samples among which the nearest is searched without a model."""
_ROWS = 256


def diagnosed_flips(request: SubsetRequest) -> Answer:
    """Answer one sample along its orbit: pictures, and where the predictions of models flip.

    Flips of models that can run are refined by bisection; those of others lie between two elements.
    """
    view, number = request.view, request.sample
    chart = chart_of(view.group)
    if "predicted" not in view.reader or chart is None or len(chart.names) != 1 or chart.held:
        return unavailable_request("this needs predicted classes along one continuous coordinate")
    try:
        found = {name: _flips_to_diagnose(view, number, name) for name in request.names}
    except OrbicalError as error:
        return unavailable_request(error)
    places = chart.start[:, 0]
    low = float(places.min())
    closed = view.group.layout.kind == "circle"
    high = float(places.max()) + (float(chart.step[0]) if closed else 0.0)
    count = min(FRAMES, len(places))
    centers = low + (np.arange(count) + 0.5) * (high - low) / count
    frames = np.abs(places[None] - centers[:, None]).argmin(1)

    def shown(flip: Flip) -> Json:
        here = view.live.locator.at(int(np.abs(places - flip.at).argmin()), (flip.at,))
        return {**flip.to_dict(), "element": here.element, "position": list(here.position)}

    def bands(name: str, own: list[Flip]) -> list[Json]:
        """Return the classes along the orbit, each with its share of it."""
        last = view.reader.row("predicted", number, view.models.index(name))[int(places.argmax())]
        classes = [*(one.before for one in own), own[0].before if own and closed else int(last)]
        ends = [low, *(one.at for one in own), high]
        label = classes if view.label is None else [int(view.label[number])]
        return [
            {"share": float(share), "class": seen, "wrong": seen not in label}
            for share, seen in zip(np.diff(ends) / (high - low), classes, strict=True)
        ]

    about: Json = {
        "available": True,
        "sample": number,
        "frames": frames.tolist(),
        "span": [low, high],
        "models": [
            {"name": name, "bands": bands(name, own), "flips": [shown(one) for one in own]}
            for name, own in found.items()
        ],
    }
    pictures = thumbnails(view, [number] * count, frames.tolist())
    return about, {} if pictures is None else {"frames": pictures}


def _flips_to_diagnose(view: ScanView, sample: int, name: str) -> list[Flip]:
    """Return the flips of one model in the order of the coordinate, refined if it can run."""
    from ...adversarial import flips as find_flips

    live = view.live

    def compute() -> list[Flip]:
        if name in live.answering:
            given = {**live.settings(name), "data": live.data}
            refine = partial(find_flips, view.scan, sample, models={name: live.models[name]})
            with contextlib.suppress(OrbicalError):  # those of the scan are known all the same
                found = live.run(name, partial(refine, **given))
                return [one for one in found if one.model == name]
        known = [one for one in find_flips(view.scan, sample) if one.model == name]
        return _flips_with_nearest(view, sample, known)

    return view.cache.get_or_compute(("flips", sample, name), compute)


def _flips_with_nearest(view: ScanView, sample: int, flips: list[Flip]) -> list[Flip]:
    """Add the nearest samples of the classes that predictions flip to, from inputs alone."""
    from ...adversarial import nearest_samples_to_flips

    live, chart, label = view.live, chart_of(view.group), view.label
    if not flips or label is None or chart is None or not live.has_inputs or live.action is None:
        return flips
    ends = np.array([[one.at + one.width / 2] for one in flips])
    moved = live.moved(sample, chart.elements(ends, np.zeros(len(flips), int)))
    classes = np.array([one.after for one in flips])
    numbers = np.flatnonzero(np.isin(label, classes))[:MOST_COMPARED]
    blocks = (
        (part, concatenate([live.input(int(one)) for one in part]), label[part])
        for part in np.array_split(numbers, -(-len(numbers) // _ROWS))
        if len(part)
    )
    flat = tree_map(lambda leaf: leaf[:, 0], moved)
    found = nearest_samples_to_flips(flat, classes, np.full(len(flips), sample), blocks)
    return [replace(flip, nearest=near) for flip, near in zip(flips, found, strict=True)]


def diagnosed_layers(request: SubsetRequest) -> Answer:
    """Answer at which layers of each network the symmetry is lost."""
    from ...testing import layer_errors

    view, live = request.view, request.view.live
    modules = [name for name in request.names if name in live.answering and live.module(name)]
    task = live.task
    if not modules or task is None:
        return unavailable_request("this needs a torch module: pass it as models")

    def compute(name: str) -> Json:
        given = concatenate([live.input(one) for one in range(min(LAYER_SAMPLES, view.samples))])
        # A copy: others run the model meanwhile, and layers are replaced here.
        module, settings = copy.deepcopy(live.module(name)), live.settings(name)
        given, prepared = to_device(given, settings["device"]), settings["preprocess"]
        found = layer_errors(module, given, group=view.group, task=task, preprocess=prepared)
        return {**found.to_dict(), "titles": found.titles, "first": found.first}

    about: list[Json] = []
    for name in modules:
        try:
            found = view.cache.get_or_compute(("layers", name), partial(compute, name))
            about.append({"model": name, **found})
        except OrbicalError as error:
            about.append({"model": name, "error": str(error)})
    return {"available": True, "models": about}, {}
