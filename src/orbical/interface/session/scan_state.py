"""The state: everything a page must know about a scan that does not depend on the selection."""

from __future__ import annotations

import numpy as np

from ... import __version__
from ...calibration import quantity_title
from ...figures import ATOMS
from ...groups import OF_OUTPUTS, Group, spoken_name
from ...nero import headline_curves, headline_of
from ...store import Json, StoredArrays
from ..orbit_positions import OrbitLocator
from ..selection import Selection
from .calibration_plots import page_calibration_faces
from .filter_columns import filters_for_page
from .listing import listed_samples
from .sample_maps import available_map_colors, available_map_methods
from .scan_view import PLACE, UNITLESS, ScanView
from .subset_curves import curves_counted_in_view, subset_changes
from .subset_request import Answer, SubsetRequest

PARTS = ("plane", "space", "time", "color", "shift", "gain")
FIRST_LISTED = 100
"""A page begins with one of so many samples at the top of its list."""
MOST_NAMED = 20_000
"""The most samples whose names are part of the state; more are shown by index."""
NOUNS = {
    "image": "images",
    "window": "images",
    "pair": "image pairs",
    "points": "point clouds",
    "signal": "signals",
    "volume": "volumes",
    "texts": "texts",
}
"""The word for samples on the page, by the view of their inputs."""


def state(view: ScanView, titles: list[dict[str, str]]) -> Answer:
    """Describe a scan: its task, models, group, metrics and available requests."""
    from ..export import available_exports

    record, group = view.scan.record, view.group
    live = view.live
    about = {
        "scans": titles,
        "scan": view.name,
        "title": page_title(view),
        "task": {
            "name": record.task.name,
            "score": record.score.meaning,
            "higher_is_better": record.score.higher_is_better,
            "labeled": view.scan.labeled,
            "truth_name": view.truth or "label",
            "classes": view.class_names or [],
            "edges": record.task.settings.get("edges") or [],
            "threshold": record.task.settings.get("threshold"),
        },
        "views": {"input": view.input_view, "detail": record.views.detail},
        "models": [{"name": name, "live": name in live.answering} for name in view.models],
        "classes": view.classes,
        "samples": view.samples,
        "noun": sample_noun_of_state(view),
        "names": [] if view.samples > MOST_NAMED else view.shown_names,
        "group": group_json(group),
        "metrics": [vars(metric) for metric in view.metrics.values()],
        "methods": available_map_methods(),
        "colors": available_map_colors(view),
        "columns": filters_for_page(view),
        "live": bool(live.answering),
        "inputs": live.has_inputs,
        "warnings": [*view.warnings, *live.warnings],
        "stored": [name for name, dims in view.reader.dims.items() if dims[:3] == PLACE],
        "units": _units_of(view),
        "titles": {name: quantity_title(name) for name in view.reader.dims},
        "atoms": ATOMS if view.molecular else {},
        "bounds": view.orbits is not None or "orbit" in view.scan.stored,
        "answers": page_calibration_faces(view),
        "calibration": bool(page_calibration_faces(view)),
        "worst": view.worst is not None,
        "consistency": curves_counted_in_view(view),
        "runs": False,  # by itself a scan is compared with none
        "complete": view.complete,
        "exports": available_exports(),
        "version": __version__,
        "move": record.task.input if {*group.parts} <= {*PARTS, "rows"} | OF_OUTPUTS else {},
    }
    arrays: Json = {
        "index": group.layout.index.astype(np.int32),
        "weights": group.weights.astype(np.float32),
    }
    if view.label is not None:
        arrays["label"] = view.label.astype(np.int32)
    for name in PARTS:
        if name in group.parts:
            arrays[name] = np.asarray(group.parts[name], np.float32)
    return about, arrays


def headline(request: SubsetRequest) -> Answer:
    """Answer what was found in a sentence, where it is worst, and a sample that shows it."""
    view = request.view

    def compute() -> Json:
        arrays = StoredArrays(view.scan)
        curves = headline_curves(arrays, lambda name: view.moments(name)[:].mean[:, 0])
        samples = np.full(len(view.models), view.judged)
        found = headline_of(arrays, curves, samples, lambda _: subset_changes(view))
        sample = _telling_sample_of_state(view, found.model, found.element)
        return {"text": found.text, "element": found.element, "sample": sample}

    return view.cache.get_or_compute("headline", compute), {}


def _telling_sample_of_state(view: ScanView, model: int, element: int) -> int:
    """Return the sample for which a model is most behind the others there, or behind itself.

    It is one of the most variable, with which the list begins.
    """
    variable = view.variable(view.metrics["score"], view.reference(Selection()))
    request = SubsetRequest(view, Selection(order="variable"), {"count": FIRST_LISTED})
    listed_first = [int(one) for one in listed_samples(request)[1]["samples"]] or [0]
    models = range(len(view.models))
    scores = [[view.response(variable, one, at) for one in listed_first] for at in models]
    sign = 1 if view.metrics["score"].higher_is_better is not False else -1
    here, upright = (sign * np.array(scores)[..., at] for at in (element, view.group.identity))
    others = np.delete(here, model, 0) if len(here) > 1 else upright
    behind = np.nan_to_num(others.max(0) - here[model], nan=-np.inf)
    return listed_first[int(behind.argmax())]


def sample_noun_of_state(view: ScanView) -> str:
    """Return the word for samples; atoms with a periodic cell, first and last, are crystals."""
    if not view.molecular:
        return NOUNS.get(view.input_view, "samples")
    if not view.live.has_inputs or not view.samples:
        return "molecules"
    ends = [view.live.input(number) for number in (0, view.samples - 1)]
    repeats = {isinstance(one, dict) and "pbc" in one and bool(one["pbc"].any()) for one in ends}
    return "structures" if len(repeats) > 1 else "crystals" if True in repeats else "molecules"


def _units_of(view: ScanView) -> dict[str, str]:
    """Return the units of what models predict, such as eV; shares and counts have none."""
    found = {name: view.reader.attributes(name).get("units", "") for name in view.reader.dims}
    return {name: unit for name, unit in found.items() if unit not in UNITLESS}


def group_json(group: Group) -> Json:
    """Describe a group for drawing."""
    return {
        "spec": group.spec,
        "kind": group.layout.kind,
        "names": [spoken_name(group, place) for place in range(len(group))],
        "identity": group.identity,
        "axes": {name: np.asarray(values).tolist() for name, values in group.layout.axes.items()},
        "coords": {name: np.asarray(values).tolist() for name, values in group.coords.items()},
        "continuous": OrbitLocator(group).continuous,
        "measure": group.measure,
    }


def page_title(view: ScanView) -> str:
    """Return the title of a scan."""
    task = view.scan.record.task.name
    return f"{view.name}: {task} along {view.group.spec}"
