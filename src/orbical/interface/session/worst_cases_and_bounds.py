"""Limits of models: worst cases between the sampled elements, and bounds that symmetry implies."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ...bounds import Bound
from ...errors import InputError
from ...groups import chart_of
from ...store import Json
from .scan_view import ScanView
from .subset_request import Answer, SubsetRequest

Array = np.ndarray


def worst_cases(request: SubsetRequest) -> Answer:
    """Answer where each sample is worst: score, what the scan missed, nearest element, place."""
    return worst_case_rows(request.view, np.arange(request.view.samples))


def worst_case_rows(view: ScanView, samples: Array) -> Answer:
    """Return the worst cases of some samples, `[M, n]`, numbered by their place among these."""
    if view.worst is None:
        raise InputError("worst", "a search that was passed to the view", "none")
    at = {int(sample): place for place, sample in enumerate(samples)}
    kept = [place for place, one in enumerate(view.worst["sample"].values) if int(one) in at]
    found = view.worst.isel(sample=kept).reindex(model=view.models)
    chart = chart_of(view.group)
    names = [] if chart is None else list(chart.names)
    arrays: Json = {
        "samples": np.array([at[int(one)] for one in found["sample"].values], np.int32),
        "nearest": np.nan_to_num(found["nearest"].values, nan=-1).astype(np.int32),
        "score": found["score"].sel(place="refined").values,
        "missed": found["missed"].values,
    }
    if names:
        arrays["coords"] = np.stack([found[name].values for name in names], -1)
    about = {
        "models": view.models,
        "coords": names,
        "reference": found.attrs["reference"],
        "searched": found.attrs["searched"],
    }
    return about, arrays


BINS = 15
PRICES = {
    "broken": "broken_symmetry",
    "broken_at_least": "broken_at_least",
    "any_accuracy": "any_accuracy_sharp",
    "least_low": "least_ece_lower",
    "least_high": "least_ece_upper",
}
"""What a model pays for its accuracy, and how small its error could be, by their bounds."""


def bounds(request: SubsetRequest) -> Answer:
    """Answer the accuracy ceiling and ECE bounds of each model shown, or why there are none."""
    view = request.view
    try:
        found = [
            view.cache.get_or_compute(("bounds", name), partial(_orbit_bounds_of_model, view, name))
            for name in request.names
        ]
    except InputError as error:
        return {"available": False, "reason": str(error), "models": []}, {}
    ceiling = max(part["ceiling"] for part in found)
    return {"available": True, "reason": "", "models": found, "ceiling": ceiling}, {}


def _orbit_bounds_of_model(view: ScanView, name: str) -> Json:
    from ...bounds import OrbitTable, certified_ceiling, classification

    table = OrbitTable.from_scan(view.scan, name, orbit=view.orbits)
    found = classification(table, bins=BINS)
    return {
        "name": name,
        "accuracy": found.about["accuracy"],
        "ece": found["ece"].value,
        "low": found["forced_ece"].value,
        "high": found["sharp_upper"].value,
        "ceiling": found["accuracy_ceiling"].value,
        "floor": found["accuracy_floor"].value,
        "averaged": found.about["averaged"],
        "invariance_gap": found.about["invariance_gap"],
        "orbits": found.about["orbits"],
        "certified": _ends(lambda: certified_ceiling(table)),
        **{part: _value(found[bound]) for part, bound in PRICES.items()},
    }


def _value(bound: Bound) -> float | None:
    """Return the value of a bound, None where it does not apply."""
    return bound.value if bound.applies else None


def _ends(compute: Callable[[], tuple[float, float]]) -> list[float] | None:
    """Return both ends of an interval, None where the samples do not allow one."""
    try:
        return [float(end) for end in compute()]
    except InputError:
        return None
