"""The result of a search for worst cases between the sampled elements, checked against a scan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..._imports_and_paths import reading
from ...errors import InputError
from ...store import Scan

if TYPE_CHECKING:
    import xarray as xr

_NEEDED = ("score", "missed", "element", "nearest")
_TOLERANCE = 0.02


def opened_worst(worst: object, scan: Scan) -> xr.Dataset:
    """Open the result of `orbical.worst_case`, or a file of it, and check that it is of a scan."""
    import xarray as xr

    if isinstance(worst, str | Path):
        with reading("worst", worst, "a netCDF file of worst cases"):
            return _checked_worst_search(xr.load_dataset(worst), scan)
    return _checked_worst_search(worst, scan)


def _checked_worst_search(worst: object, scan: Scan) -> xr.Dataset:
    """Return worst cases if they are those of a scan."""
    import xarray as xr

    if not isinstance(worst, xr.Dataset) or not {*_NEEDED} <= {*map(str, worst.data_vars)}:
        raise InputError("worst", "the result of orbical.worst_case", type(worst))
    if worst.attrs.get("group") != scan.group.spec:
        other = f"one along {worst.attrs.get('group')}"
        raise InputError("worst", f"a search along {scan.group.spec}", other)
    known = [name for name in worst["model"].values if name in scan.models]
    count = scan.record.data.samples
    if not known or int(worst["sample"].max()) >= count:
        raise InputError(
            "worst",
            f"a search of the models {', '.join(scan.models)} on at most {count} samples",
            f"{', '.join(map(str, worst['model'].values))} on {worst.sizes['sample']}",
        )
    _check_worst_search_scores(worst, scan, str(known[0]))
    return worst


def _check_worst_search_scores(worst: xr.Dataset, scan: Scan, model: str) -> None:
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
