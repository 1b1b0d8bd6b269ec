"""Groups of samples for calibration along an orbit, and labeled results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import check_name
from ..registry import MEASURES

if TYPE_CHECKING:
    import xarray as xr

ENDS = ("low", "high", "calibrated")
SAID = "caution"
"""The coordinate of an interval's limit of use, empty where it has none."""


def calibration_groups(values: xr.DataArray, by: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of a coordinate on samples, and the place of each sample among them."""
    size = values.sizes["sample"]
    if by is None:
        return np.zeros(1), np.zeros(size, dtype=np.int64)
    known = [str(name) for name, part in values.coords.items() if part.dims == ("sample",)]
    check_name("by", by, known)
    return np.unique(values[by].values, return_inverse=True)


def labeled_calibration(
    name: str,
    like: xr.DataArray,
    groups: np.ndarray,
    by: str | None,
    parts: Iterable[tuple[Any, Mapping[str, Any]]],
) -> xr.DataArray:
    """Return an array `[model, group, element]` labeled, with the attributes that figures need.

    Its parts are places, and there the `value`, and the ends of its interval and their `caution` if
    it has one.
    """
    import xarray as xr

    shape = (like.sizes["model"], len(groups), like.sizes["element"])
    values = {"value": np.full(shape, np.nan)}
    for place, part in parts:
        for end in ("value", *ENDS):
            if end in part:
                values.setdefault(end, np.full(shape, np.nan))[place] = np.asarray(part[end])
        if SAID in part:
            values.setdefault(SAID, np.full(shape, "", object))[place] = part[SAID]
    dims = ("model", "element") if by is None else ("model", by, "element")
    values = {end: part[:, 0] if by is None else part for end, part in values.items()}
    coords: dict[str, Any] = {
        str(coord): part
        for coord, part in like.coords.items()
        if part.dims in (("model",), ("element",))
    }
    if by is not None:
        coords[by] = groups
    coords |= {end: (dims, values[end]) for end in ENDS if end in values}
    if SAID in values:
        coords[SAID] = (dims, values[SAID].astype(str))
    found = xr.DataArray(values["value"], dims=dims, coords=coords, name=name)
    entry = MEASURES.get(name)
    found.attrs = {key: part for key, part in like.attrs.items() if key != "limits"}
    found.attrs |= {
        "statistic": "",
        "metric": name,
        "meaning": name if entry is None else entry.long_name,
        "higher_is_better": entry is not None and entry.higher_is_better,
        "reference": "truth",
    }
    if entry is not None and entry.target:
        found.attrs["floor"] = entry.target
    return found
