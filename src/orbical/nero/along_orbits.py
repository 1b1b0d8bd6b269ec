"""Responses along orbits, of single samples or averaged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dask.array as da
import numpy as np
import xarray as xr

from ..errors import InputError, check_name
from ..groups import Group, parse
from ..store.scan_result import Scan

FINISHED = "score_vs_consensus"
_SCORES = {"score": "truth", "score_vs_consensus": "consensus"}


def responses(scan: Scan | xr.Dataset, metric: str = "score") -> xr.DataArray:
    """Return the response of every sample along its orbit, lazily.

    Args:
        scan: a scan, or its `data`.
        metric: a stored variable with one number for each sample and element, such as `"score"`,
            `"confidence"`, `"correct"` or `"action_defect"` (which has no model). Without labels
            `"score"` is the score against the consensus; `attrs["reference"]` states which.

    Returns:
        `[model, sample, element]`.

    Raises:
        InputError: if there is no such metric.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, images[:20], group="rotations:8", task="classification",
        ...                progress=False)
        >>> found = ob.nero.responses(scan)
        >>> dict(found.sizes), found.attrs["reference"]
        ({'model': 1, 'sample': 20, 'element': 8}, 'consensus')
    """
    data, group = opened(scan)
    name = _known_metric(data, metric)
    values = data[name]
    if values.dtype.kind != "f":  # without NaN, missing values are masked by those of the score
        values = values.astype(np.float32).where(data[FINISHED].notnull())
    dims = [dim for dim in ("model", "sample", "element") if dim in values.dims]
    values = values.transpose(*dims)
    values.name = name
    values.attrs = _about(data, group, name)
    return values


def aggregate(
    scan: Scan | xr.Dataset, by: str | None = None, metric: str = "score"
) -> xr.DataArray:
    """Average responses over samples at each element, lazily: the aggregate NERO plot.

    Args:
        scan: a scan, or its `data`.
        by: a coordinate on `sample`, such as `"label"`; its values become a dimension, with the
            number of samples of each as the coordinate `samples`.
        metric: as in `responses`, except the predicted class: class indices have no mean.

    Returns:
        `[model, element]`, or `[model, by, element]`.

    Raises:
        InputError: if there is no such metric or coordinate.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan({"untrained": net}, (images[:50], labels[:50]), group="rotations:8",
        ...                task="classification", progress=False)
        >>> by_digit = ob.nero.aggregate(scan, by="label")
        >>> dict(by_digit.sizes), by_digit.attrs["meaning"]
        ({'model': 1, 'label': 10, 'element': 8}, 'probability of the true class')

    Paper: section 2.2 and figure 4.
    """
    data, _ = opened(scan)
    values = responses(scan, metric)
    if data[values.name].dtype.kind in "iu":
        raise InputError(
            "metric",
            "one that has a mean, such as 'score', 'confidence' or 'correct'",
            f"{metric!r}, which are class indices",
        )
    seen = values.notnull()
    filled = values.fillna(0).astype(np.float64)
    if by is None:
        total, count = filled.sum("sample"), seen.sum("sample")
    else:
        members = _members(data, by)
        total = xr.dot(filled, members, dim="sample")
        count = xr.dot(seen.astype(np.float64), members, dim="sample")
    dims = [dim for dim in ("model", by, "element") if dim in total.dims]
    mean = (total / count.where(count > 0)).transpose(*dims)
    mean.name = values.name
    mean.attrs = values.attrs
    return mean


def individual(
    scan: Scan | xr.Dataset, sample: int | Sequence[int], metric: str = "score"
) -> xr.DataArray:
    """Select the responses of one or several samples: the individual NERO plot.

    Args:
        scan: a scan, or its `data`.
        sample: an index along `sample`, from 0, or several.
        metric: as in `responses`.

    Returns:
        `[model, element]`, or `[model, sample, element]` for several; the coordinate `sample`
        holds their indices, and `label` their labels if there are any.

    Raises:
        InputError: if there is no such sample or metric.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, (images[:20], labels[:20]), group="rotations:8",
        ...                task="classification", progress=False)
        >>> third = ob.nero.individual(scan, 3)
        >>> third.dims, int(third.label)
        (('model', 'element'), 3)

    Paper: section 2.3 and figure 5.
    """
    values = responses(scan, metric)
    count = values.sizes["sample"]
    chosen = np.asarray(sample)
    if chosen.dtype.kind not in "iu":
        raise InputError("sample", "an integer or several", repr(sample))
    if chosen.size and not 0 <= chosen.min() <= chosen.max() < count:
        wrong = chosen[(chosen < 0) | (chosen >= count)].flat[0]
        raise InputError("sample", f"0 to {count - 1}", wrong)
    if "sample" not in values.coords:
        values = values.assign_coords(sample=np.arange(count))
    taken = values.isel(sample=chosen if chosen.ndim else int(chosen))
    taken.attrs = values.attrs
    return taken


def opened(scan: Scan | xr.Dataset) -> tuple[xr.Dataset, Group]:
    """Return the data and the group of a scan; a dataset names its group in its attributes."""
    if isinstance(scan, Scan):
        return scan.data, scan.group
    if not isinstance(scan, xr.Dataset) or "group" not in scan.attrs or FINISHED not in scan:
        raise InputError("scan", "the result of orbical.scan or its data", type(scan).__name__)
    try:
        group = parse(scan.attrs["group"])
    except InputError as error:
        raise InputError(
            "scan",
            "a group that its name describes",
            repr(scan.attrs["group"]),
            remedy="pass the scan instead of its data",
        ) from error
    if scan.sizes.get("element") != len(group):
        raise InputError(
            "scan",
            f"all {len(group)} elements of {group.spec}",
            scan.sizes.get("element", "none"),
            remedy="select elements in the result instead",
        )
    return scan, group


def _known_metric(data: xr.Dataset, metric: str) -> str:
    known = [
        str(name)
        for name, values in data.data_vars.items()
        if {"sample", "element"} <= {*values.dims} <= {"model", "sample", "element"}
    ]
    if metric == "score" and "score" not in known:
        return "score_vs_consensus"
    check_name("metric", metric, known)
    return metric


def _about(data: xr.Dataset, group: Group, name: str) -> dict[str, Any]:
    """Return the attributes that a figure of these responses needs."""
    about: dict[str, Any] = {
        "metric": name,
        "meaning": data[name].attrs.get("meaning", name),
        "task": data.attrs["task"],
        "models": [str(model) for model in np.atleast_1d(data["model"].values)],
        "group": group.spec,
        "identity": group.identity,
        "layout": group.layout.kind,
        "layout_index": group.layout.index.tolist(),
        "layout_axes": {axis: values.tolist() for axis, values in group.layout.axes.items()},
    }
    if name in _SCORES:
        about["reference"] = _SCORES[name]
        about["meaning"] = data.attrs["score"] + (
            ", the consensus taken as truth" if about["reference"] == "consensus" else ""
        )
    stored = data[name].attrs
    if "higher_is_better" in stored:
        about["higher_is_better"] = bool(stored["higher_is_better"])
    if stored.get("units") == "share":
        about["limits"] = [0.0, 1.0]
    return about


def _members(data: xr.Dataset, by: str) -> xr.DataArray:
    """Describe the samples of each value of a coordinate: `[sample, by]`, ones and zeros.

    As a product with this matrix, a mean over each group of samples is one pass over the chunks,
    whatever the order of the samples.
    """
    known = [
        str(name)
        for name, values in data.variables.items()
        if values.dims == ("sample",) and name != "sample"
    ]
    check_name("by", by, known)
    values, places, counts = np.unique(
        np.asarray(data[by]), return_inverse=True, return_counts=True
    )
    chunks = data.chunksizes.get("sample", "auto")
    lazy = da.from_array(places.reshape(-1), chunks=(chunks,))
    ones = (lazy[:, None] == np.arange(len(values))[None]).astype(np.float64)
    return xr.DataArray(
        ones, dims=("sample", by), coords={by: values, "samples": (by, counts)}, name="members"
    )
