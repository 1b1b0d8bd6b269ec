"""Groups of samples for calibration along an orbit, and labeled results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import check_name
from ..registry import MEASURES

if TYPE_CHECKING:
    import xarray as xr

ENDS = ("low", "high", "calibrated")
CAUTION = "caution"
"""The coordinate of an interval's limit of use, empty where it has none."""


def labeled_variables(scan: object) -> set[str]:
    """Return the names of the variables of a scan, of its `data`, or of `pairs_within(scan)`."""
    return {*getattr(getattr(scan, "data", scan), "data_vars", ())}


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
    shape = (like.sizes["model"], len(groups), like.sizes["element"])
    values = {"value": np.full(shape, np.nan)}
    for place, part in parts:
        for end in ("value", *ENDS):
            if end in part:
                values.setdefault(end, np.full(shape, np.nan))[place] = np.asarray(part[end])
        if CAUTION in part:
            values.setdefault(CAUTION, np.full(shape, "", object))[place] = part[CAUTION]
    values = {end: part[:, 0] if by is None else part for end, part in values.items()}
    ends = {end: values[end] for end in ENDS if end in values}
    if CAUTION in values:
        ends[CAUTION] = values[CAUTION].astype(str)
    entry = MEASURES.get(name)
    attrs = {key: part for key, part in like.attrs.items() if key != "limits"}
    attrs |= {
        "statistic": "",
        "metric": name,
        "meaning": name if entry is None else entry.long_name,
        "higher_is_better": entry is not None and entry.higher_is_better,
        "reference": "truth",
    }
    if entry is not None and entry.target:
        attrs["floor"] = entry.target
    axis = {} if by is None else {by: groups}
    return labeled_along_elements(name, like, values["value"], ends, attrs, axis)


def labeled_along_elements(
    name: str,
    like: xr.DataArray,
    values: np.ndarray,
    more: Mapping[str, np.ndarray],
    attrs: Mapping[str, object],
    axis: Mapping[str, np.ndarray] = MappingProxyType({}),
) -> xr.DataArray:
    """Return values `[model, element]` with the models and elements of a scan's array.

    `more` are coordinates of the same shape, such as the ends of an interval; `axis` is the name
    and the labels of a dimension between models and elements.
    """
    import xarray as xr

    dims = ("model", *axis, "element")
    coords: dict[Any, Any] = {
        coord: part
        for coord, part in like.coords.items()
        if part.dims in (("model",), ("element",))
    }
    coords |= {**axis, **{end: (dims, part) for end, part in more.items()}}
    return xr.DataArray(values, coords, dims, name=name, attrs=dict(attrs))
