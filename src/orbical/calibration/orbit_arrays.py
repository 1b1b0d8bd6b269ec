"""What calibration along an orbit reads from a scan, and how it names what it found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import unknown_name
from .generalized import gence_floor, gence_sq_floor

if TYPE_CHECKING:
    import xarray as xr

MEANINGS = {
    "ece": "expected calibration error",
    "ks": "Kolmogorov-Smirnov calibration error",
    "esd": "expected squared difference",
    "smooth_ece": "smooth calibration error",
    "mmce": "maximum mean calibration error",
    "mmce_squared": "squared maximum mean calibration error",
    "skce": "squared kernel calibration error",
    "sb_ece": "soft-binned calibration error",
    "ence": "expected normalized calibration error",
    "uce": "uncertainty calibration error",
    "regression_esd": "expected squared difference of squared error and variance",
    "regression_esd_normalized": "expected squared difference of normalized error and 1",
    "quantile_calibration": "quantile calibration error",
    "mahalanobis_calibration": "calibration error of the Mahalanobis distance",
    "gence": "generalized expected normalized calibration error",
    "gence_sq": "generalized expected normalized calibration error of squares",
    "gence_fiber": "generalized normalized calibration error, by fiber",
    "gence_sq_fiber": "generalized normalized calibration error of squares, by fiber",
    "gaussian_nll": "negative log-likelihood",
    "gaussian_crps": "continuous ranked probability score",
    "aleatoric_bleed": "aleatoric bleed",
}
FLOORS = {"gence": gence_floor, "gence_sq": gence_sq_floor}
"""What a calibrated model has where that is neither 0 nor a matter of the data."""

ENDS = ("low", "high", "calibrated")


def groups_of(values: xr.DataArray, by: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of a coordinate on samples, and the place of each sample among them."""
    size = values.sizes["sample"]
    if by is None:
        return np.zeros(1), np.zeros(size, dtype=np.int64)
    known = [str(name) for name, part in values.coords.items() if part.dims == ("sample",)]
    if by not in known:
        raise unknown_name("by", by, known)
    return np.unique(values[by].values, return_inverse=True)


def read_together(*arrays: xr.DataArray) -> Iterator[np.ndarray]:
    """Read several arrays in one pass over the store."""
    import dask

    for part in dask.compute(*(array.data for array in arrays)):
        yield np.asarray(part)


def labeled(
    name: str,
    like: xr.DataArray,
    groups: np.ndarray,
    by: str | None,
    values: dict[str, np.ndarray],
) -> xr.DataArray:
    """Give arrays `[model, group, element]` names, and the attributes that figures need."""
    import xarray as xr

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
    found = xr.DataArray(values["value"], dims=dims, coords=coords, name=name)
    found.attrs = {key: part for key, part in like.attrs.items() if key != "limits"}
    found.attrs |= {
        "statistic": "",
        "metric": name,
        "meaning": MEANINGS.get(name, name),
        "higher_is_better": False,
        "reference": "truth",
    }
    if name in FLOORS:
        found.attrs["floor"] = FLOORS[name]
    return found
