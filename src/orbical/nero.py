"""What a scan says: responses along orbits, one sample at a time or all together.

Labeled arrays in, labeled arrays out. What is read from a stored scan stays lazy and is summed
chunk by chunk when it is used; `.compute()` does it at once. Every function takes a `Scan`, or its
`data` (a choice of samples or models of it, say); unfinished parts of a scan are left out.

Each array of responses carries in its attributes what a figure needs: `metric` and its `meaning`,
`reference` (what a score is measured against), `limits` and `higher_is_better` where they are
known, all `models` in their order, the `group` with its `identity`, and the `layout` of its orbit
with `layout_index` and `layout_axes`.

Paper: Zhao et al., Evaluating Machine Learning Models with NERO, sections 2.2 to 2.5.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import dask.array as da
import numpy as np
import xarray as xr

from .errors import InputError, unknown_name
from .groups import Group, parse
from .store.scan_result import Scan

_FINISHED = "score_vs_consensus"
_SCORES = {"score": "truth", "score_vs_consensus": "consensus"}
_HEADLINES = {"accuracy": "correct", "confidence": "confidence", "score": "score"}
_SUMMARY_MEANINGS = {
    "accuracy": "share of samples whose predicted class is the true one",
    "confidence": "mean of the largest class probability",
    "samples": "number of finished samples",
    "consensus_vs_truth": "mean score of the consensus",
    "worst_element": "index of the element where the model is worst on average",
    "worst_name": "name of that element",
    "invariance_gap": "root mean square distance of the un-transformed answers from their mean",
    "action_defect": "relative loss of the transformation itself, there and back, over the orbit",
}


def responses(scan: Scan | xr.Dataset, metric: str = "score") -> xr.DataArray:
    """Return every sample's response along its orbit: `[model, sample, element]`, lazily.

    Args:
        scan: a scan, or its `data`.
        metric: a stored variable with one number for each sample and element, such as `"score"`,
            `"confidence"`, `"correct"` or `"action_defect"` (which no model takes part in). Without
            labels `"score"` is the score against the consensus; `attrs["reference"]` says which.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, images[:20], group="rotations:8", task="classification", progress=False)
        >>> found = ob.nero.responses(scan)
        >>> dict(found.sizes), found.attrs["reference"]
        ({'model': 1, 'sample': 20, 'element': 8}, 'consensus')
    """
    data, group = _opened(scan)
    name = _known_metric(data, metric)
    values = data[name]
    if values.dtype.kind != "f":  # numbers that cannot say "missing" are masked by one that can
        values = values.astype(np.float32).where(data[_FINISHED].notnull())
    dims = [dim for dim in ("model", "sample", "element") if dim in values.dims]
    values = values.transpose(*dims)
    values.name = name
    values.attrs = _about(data, group, name)
    return values


def aggregate(
    scan: Scan | xr.Dataset, by: str | None = None, metric: str = "score"
) -> xr.DataArray:
    """Average responses over samples, at each element: the aggregate NERO plot, lazily.

    `mean over samples of r[model, sample, element]`, for each group of samples apart with `by`.

    Args:
        scan: a scan, or its `data`.
        by: a coordinate on `sample`, such as `"label"`; its values become a dimension, and a
            coordinate `samples` says how many samples have each.
        metric: as in `responses`. The predicted class is refused: class indices have no mean.

    Returns:
        `[model, element]`, or `[model, by, element]`.

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
    data, _ = _opened(scan)
    values = responses(scan, metric)
    if data[values.name].dtype.kind in "iu":
        raise InputError(
            f"metric: {metric!r} given, which holds class indices; they have no mean: "
            "expected a metric such as 'score', 'confidence' or 'correct'"
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
    """Take the responses of one sample, or of a few: the individual NERO plot.

    Args:
        scan: a scan, or its `data`.
        sample: a place along `sample`, from 0, or several.
        metric: as in `responses`.

    Returns:
        `[model, element]`, or `[model, sample, element]` for several; the coordinate `sample`
        holds their numbers, and `label` their labels where there are any.

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
    several = not isinstance(sample, int | np.integer)
    try:
        chosen = [operator.index(one) for one in (sample if several else [sample])]  # type: ignore
    except TypeError:
        raise InputError(f"sample: {sample!r} given, a whole number or several expected") from None
    for one in chosen:
        if not 0 <= one < count:
            raise InputError(f"sample: expected 0 to {count - 1}, got {one}")
    if "sample" not in values.coords:
        values = values.assign_coords(sample=np.arange(count))
    taken = values.isel(sample=chosen if several else chosen[0])
    taken.attrs = values.attrs
    return taken


def consensus(scan: Scan | xr.Dataset) -> xr.Dataset:
    """Return the consensus and what is measured with it, lazily.

    The consensus of a sample is the group's average of the un-transformed answers,
    `sum_g w_g g^-1 h(g x)`. A wrong but equivariant model has a perfect consensus; with labels,
    `consensus_vs_truth` tells.

    Returns:
        A dataset of `consensus` `[model, sample, ...]`, `score_vs_consensus`
        `[model, sample, element]` and, with labels, `consensus_vs_truth` `[model, sample]`.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, images[:20], group="rotations:8", task="classification", progress=False)
        >>> float(ob.nero.consensus(scan)["consensus"].sum("class").mean().round(3))
        1.0

    Paper: section 2.5, equation 1.
    """
    data, group = _opened(scan)
    names = ["consensus", "score_vs_consensus", "consensus_vs_truth"]
    chosen = data[[name for name in names if name in data]]
    chosen.attrs = {**data.attrs, "identity": group.identity}
    return chosen


def invariance_gap(scan: Scan | xr.Dataset) -> xr.Dataset:
    """Measure how far the un-transformed answers are from their own mean.

    `sqrt(sum_g w_g ||p_g - mean||^2)` for a sample; the root mean square of that over samples for a
    model. Zero exactly when the model is equivariant at the sampled elements, right or wrong.

    Returns:
        A dataset of `per_sample` `[model, sample]` (lazy) and `total` `[model]`.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> def brightness(images):
        ...     return torch.stack([images.mean((1, 2, 3)), -images.mean((1, 2, 3))], 1)
        >>> scan = ob.scan(brightness, images[:20], group="cyclic:4", task="classification",
        ...                progress=False)
        >>> bool(ob.nero.invariance_gap(scan)["total"] < 1e-6)
        True
    """
    data, _ = _opened(scan)
    per_sample = data["invariance_gap"]
    total = (per_sample.astype(np.float64) ** 2).mean("sample").compute() ** 0.5
    total.attrs = {"meaning": "root mean square of the gap over samples"}
    return xr.Dataset(
        {"per_sample": per_sample, "total": total},
        attrs={"meaning": per_sample.attrs.get("meaning", ""), "group": data.attrs["group"]},
    )


def action_defect(scan: Scan | xr.Dataset) -> xr.Dataset:
    """Measure what the transformations themselves lose, so that blur is not read as structure.

    The defect of a sample at an element is `||g^-1 g x - x|| / ||x||`, there and back.

    Returns:
        A dataset of `curve` `[element]`, the mean over samples; `orbit`, its mean over the group;
        `worst`, its largest value; and `worst_element`, the index where that is.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, images[:20], group="dihedral:4", task="classification", progress=False)
        >>> float(ob.nero.action_defect(scan)["worst"])  # quarter turns and mirrors move whole pixels
        0.0
    """
    curve = aggregate(scan, metric="action_defect").compute()
    worst = int(curve.fillna(-np.inf).argmax("element"))
    return xr.Dataset(
        {
            "curve": curve,
            "orbit": curve.weighted(curve["weight"]).mean("element"),
            "worst": curve[worst].drop_vars(list(curve.coords)),
            "worst_element": worst,
        },
        attrs={"meaning": curve.attrs["meaning"], "group": curve.attrs["group"]},
    )


def summary(scan: Scan | xr.Dataset) -> xr.Dataset:
    """Put each model into a few numbers.

    `accuracy`, `confidence` (both for classification) and `score` stand at three positions:
    `upright`, at the identity; `orbit`, the mean over the group by its weights; `worst`, at the
    element where the model is worst on average: by accuracy where there is one, otherwise by
    score. All three are taken at that same element, so confidence can be held against accuracy.

    Returns:
        A dataset of the above `[model, position]`, and, `[model]` each: `worst_element` (index, -1
        where nothing is finished), `worst_name`, `invariance_gap`, `consensus_vs_truth` (with
        labels) and `samples` (how many are finished); and `action_defect`, a single number.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, (images[:50], labels[:50]), group="rotations:8",
        ...                task="classification", progress=False)
        >>> table = ob.nero.summary(scan)
        >>> table["accuracy"].dims, table["position"].values.tolist()
        (('model', 'position'), ['upright', 'orbit', 'worst'])
    """
    data, group = _opened(scan)
    curves = xr.Dataset(
        {
            name: aggregate(scan, metric=metric)
            for name, metric in _HEADLINES.items()
            if metric == "score" or metric in data
        }
    )
    single = {"samples": data[_FINISHED].notnull().any("element").sum("sample")}
    if "consensus_vs_truth" in data:
        single["consensus_vs_truth"] = data["consensus_vs_truth"].astype(np.float64).mean("sample")
    computed = curves.assign(single).compute()
    curves = computed[list(curves.data_vars)]
    judge = computed["accuracy" if "accuracy" in computed else "score"]
    upward = judge.attrs.get("higher_is_better", True)
    lost = judge.fillna(np.inf if upward else -np.inf)
    worst = lost.argmin("element") if upward else lost.argmax("element")
    positions = [
        curves.isel(element=group.identity),
        curves.weighted(curves["weight"]).mean("element", keep_attrs=True),
        curves.isel(element=worst),
    ]
    on_element = [name for name, values in curves.coords.items() if "element" in values.dims]
    table = xr.concat(
        [part.drop_vars(on_element, errors="ignore") for part in positions],
        dim=xr.Variable("position", ["upright", "orbit", "worst"]),
        coords="minimal",
        compat="override",
        combine_attrs="override",
    ).transpose("model", "position")
    worst = worst.where(computed["samples"] > 0, -1)
    names = [group.name(int(element)) if element >= 0 else "" for element in worst.values]
    table = table.assign(computed[list(single)].drop_vars(on_element, errors="ignore"))
    table = table.assign(
        worst_element=("model", worst.values),
        worst_name=("model", names),
        invariance_gap=invariance_gap(scan)["total"],
        action_defect=float(action_defect(scan)["orbit"]),
    ).assign_attrs(data.attrs, reference=computed["score"].attrs["reference"])
    for name, values in table.data_vars.items():
        values.attrs = {"meaning": _SUMMARY_MEANINGS.get(str(name), curves["score"].meaning)}
    return table


def _opened(scan: Scan | xr.Dataset) -> tuple[xr.Dataset, Group]:
    """Get at the data and the group of a scan; a dataset names its group in its attributes."""
    if isinstance(scan, Scan):
        return scan.data, scan.group
    if not isinstance(scan, xr.Dataset) or "group" not in scan.attrs or _FINISHED not in scan:
        raise InputError(
            f"scan: {type(scan).__name__} given, the result of orbical.scan or its data expected"
        )
    try:
        group = parse(scan.attrs["group"])
    except InputError as error:
        raise InputError(
            f"scan: data over {scan.attrs['group']!r} given, a group that cannot be made from its "
            "name; give the scan itself"
        ) from error
    if scan.sizes.get("element") != len(group):
        raise InputError(
            f"scan: {scan.sizes.get('element', 'no')} elements of {group.spec} given, all "
            f"{len(group)} expected; choose elements in the result instead"
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
    if metric not in known:
        raise unknown_name("metric", metric, known)
    return metric


def _about(data: xr.Dataset, group: Group, name: str) -> dict[str, Any]:
    """Describe what a figure of these responses needs to know."""
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
    """Describe which samples belong to which value of a coordinate: `[sample, by]`, ones and zeros.

    As a product with this matrix, a mean over each group of samples is one pass over the chunks,
    whatever the order of the samples.
    """
    known = [
        str(name)
        for name, values in data.variables.items()
        if values.dims == ("sample",) and name != "sample"
    ]
    if by not in known:
        raise unknown_name("by", by, known)
    values, places, counts = np.unique(
        np.asarray(data[by]), return_inverse=True, return_counts=True
    )
    chunks = data.chunksizes.get("sample", "auto")
    lazy = da.from_array(places.reshape(-1), chunks=(chunks,))
    ones = (lazy[:, None] == np.arange(len(values))[None]).astype(np.float64)
    return xr.DataArray(
        ones, dims=("sample", by), coords={by: values, "samples": (by, counts)}, name="members"
    )
