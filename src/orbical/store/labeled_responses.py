"""Responses of a scan as labeled arrays: what a user receives, and what results are labeled by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..groups import Group
from .blocks import FINISHED, LabeledArrays, group_of, is_scan
from .record import Json

if TYPE_CHECKING:
    import xarray as xr

    from .scan_result import Scan

_SCORES = {"score": "truth", FINISHED: "consensus"}


def opened(scan: Scan | xr.Dataset) -> tuple[xr.Dataset, Group]:
    """Return the labeled data and the group of a scan."""
    group = group_of(scan)
    return (scan.data if is_scan(scan) else scan), group


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
    name = LabeledArrays(data, group).response_name(metric)
    values = data[name]
    if values.dtype.kind != "f":  # without NaN, missing values are masked by those of the score
        values = values.astype(np.float32).where(data[FINISHED].notnull())
    values = values.transpose("model", "sample", "element", missing_dims="ignore")
    values.name = name
    values.attrs = _about(data, group, name)
    return values


def _about(data: xr.Dataset, group: Group, name: str) -> Json:
    """Return the attributes that a figure of these responses needs."""
    about: Json = {
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
