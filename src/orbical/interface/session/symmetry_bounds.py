"""Bounds on accuracy and calibration that the symmetry implies, if orbits are known."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ...bounds import Bound
from ...errors import InputError
from ...store import Json
from ..selection import Selection
from .sample_sets import Answer
from .scan_view import ScanView

BINS = 15
PRICES = {
    "broken": "broken_symmetry",
    "broken_at_least": "broken_at_least",
    "any_accuracy": "any_accuracy_sharp",
    "least_low": "least_ece_lower",
    "least_high": "least_ece_upper",
}
"""What a model pays for its accuracy, and how small its error could be, by their bounds."""


def bounds(view: ScanView, selection: Selection, message: Json) -> Answer:
    """Answer the accuracy ceiling and ECE bounds of each model shown, or why there are none."""
    names = [view.models[model] for model in view.shown(selection)]
    try:
        found = [
            view.cache.get_or_compute(("bounds", name), partial(_of, view, name)) for name in names
        ]
    except InputError as error:
        return {"available": False, "reason": str(error), "models": []}, {}
    ceiling = max(part["ceiling"] for part in found)
    return {"available": True, "reason": "", "models": found, "ceiling": ceiling}, {}


def _of(view: ScanView, name: str) -> Json:
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
