"""Limits of models: worst cases between the sampled elements, and bounds that symmetry implies."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...bounds import Bound
from ...errors import InputError
from ...groups import chart_of
from ...store import Json, Scan
from .request import Answer, Request
from .scan_view import ScanView

if TYPE_CHECKING:
    import xarray as xr

Array = np.ndarray

_NEEDED = ("score", "missed", "element", "nearest")
_TOLERANCE = 0.02


def opened_worst(worst: Any, scan: Scan) -> xr.Dataset:
    """Open the result of `orbical.worst_case`, or a file of it, and check that it is of a scan."""
    import xarray as xr

    if isinstance(worst, str | Path):
        try:
            worst = xr.load_dataset(worst)
        except (OSError, ValueError) as error:
            raise InputError(
                "worst",
                "a netCDF file of worst cases",
                f"{str(worst)!r}, which is no such file or cannot be read",
            ) from error
    if not isinstance(worst, xr.Dataset) or not {*_NEEDED} <= {*map(str, worst.data_vars)}:
        raise InputError("worst", "the result of orbical.worst_case", type(worst).__name__)
    if worst.attrs.get("group") != scan.group.spec:
        raise InputError(
            "worst", f"a search along {scan.group.spec}", f"one along {worst.attrs.get('group')}"
        )
    known = [name for name in worst["model"].values if name in scan.models]
    count = scan.record.data.samples
    if not known or int(worst["sample"].max()) >= count:
        raise InputError(
            "worst",
            f"a search of the models {', '.join(scan.models)} on at most {count} samples",
            f"{', '.join(map(str, worst['model'].values))} on {worst.sizes['sample']}",
        )
    _check_scores(worst, scan, str(known[0]))
    return worst


def _check_scores(worst: xr.Dataset, scan: Scan, model: str) -> None:
    """Refuse a search of other data: its scores at sampled elements are not those of the scan."""
    own = worst.sel(model=model).isel(sample=slice(0, 8))
    name = "score" if worst.attrs["reference"] == "truth" else "score_vs_consensus"
    stored = scan.data[name].sel(model=model).isel(sample=own["sample"].values)
    expected = np.take_along_axis(stored.values, own["element"].values[:, None], 1)[:, 0]
    given = own["score"].sel(place="grid").values
    apart = np.nan_to_num(np.abs(given - expected) / np.maximum(1.0, np.abs(expected)))
    if apart.max() > _TOLERANCE:
        sample = int(own["sample"][int(apart.argmax())])
        raise InputError(
            "worst",
            "a search of the data of the scan",
            f"other scores for {model!r}, such as of sample {sample}",
            remedy="pass the scan, or its data in the same order, to orbical.worst_case",
        )


def worst_cases(request: Request) -> Answer:
    """Answer where each sample is worst: score, what the scan missed, nearest element, place."""
    return rows_of(request.view, np.arange(request.view.samples))


def rows_of(view: ScanView, samples: Array) -> Answer:
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


def bounds(request: Request) -> Answer:
    """Answer the accuracy ceiling and ECE bounds of each model shown, or why there are none."""
    view = request.view
    try:
        found = [
            view.cache.get_or_compute(("bounds", name), partial(_of, view, name))
            for name in request.names
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
