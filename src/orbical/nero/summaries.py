"""What a scan says of each model as a whole: consensus, invariance gap, action defect, summary."""

from __future__ import annotations

import numpy as np
import xarray as xr

from ..store.scan_result import Scan
from .along_orbits import FINISHED, aggregate, opened
from .changes import consistency, has_answers

_HEADLINES = {"accuracy": "correct", "confidence": "confidence", "score": "score"}
_SUMMARY_MEANINGS = {
    "accuracy": "share of samples whose predicted class is the true one",
    "confidence": "mean of the largest class probability",
    "samples": "number of finished samples",
    "consensus_vs_truth": "mean score of the consensus",
    "worst_element": "index of the element where the model is worst on average",
    "worst_name": "name of that element",
    "changed": "share of samples whose prediction changes somewhere on the orbit",
    "changed_pairs": "share of pairs of elements whose predictions disagree",
    "invariance_gap": "root mean square distance of the un-transformed outputs from their mean",
    "action_defect": "relative loss of the transformation itself, there and back, over the orbit",
}


def consensus(scan: Scan | xr.Dataset) -> xr.Dataset:
    """Return the consensus and the scores against it, lazily.

    The consensus of a sample is the average of the un-transformed outputs over the group,
    `sum_g w_g g^-1 h(g x)`. An equivariant model agrees with its consensus even where it is wrong;
    with labels, `consensus_vs_truth` shows it.

    Args:
        scan: a scan, or its `data`.

    Returns:
        A dataset of `consensus` `[model, sample, ...]`, `score_vs_consensus`
        `[model, sample, element]` and, with labels, `consensus_vs_truth` `[model, sample]`.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, images[:20], group="rotations:8", task="classification",
        ...                progress=False)
        >>> float(ob.nero.consensus(scan)["consensus"].sum("class").mean().round(3))
        1.0

    Paper: section 2.5, equation 1.
    """
    data, group = opened(scan)
    names = ["consensus", "score_vs_consensus", "consensus_vs_truth"]
    chosen = data[[name for name in names if name in data]]
    chosen.attrs = {**data.attrs, "identity": group.identity}
    return chosen


def invariance_gap(scan: Scan | xr.Dataset) -> xr.Dataset:
    """Compute the distance of the un-transformed outputs from their mean.

    `sqrt(sum_g w_g ||p_g - mean||^2)` for a sample; the root mean square of that over samples for a
    model. It is 0 exactly if the model is equivariant at the sampled elements.

    Args:
        scan: a scan, or its `data`.

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
    data, _ = opened(scan)
    per_sample = data["invariance_gap"]
    total = (per_sample.astype(np.float64) ** 2).mean("sample").compute() ** 0.5
    total.attrs = {"meaning": "root mean square of the gap over samples"}
    return xr.Dataset(
        {"per_sample": per_sample, "total": total},
        attrs={"meaning": per_sample.attrs.get("meaning", ""), "group": data.attrs["group"]},
    )


def action_defect(scan: Scan | xr.Dataset) -> xr.Dataset:
    """Compute the loss of the transformations themselves, such as the blur of an image.

    The defect of a sample at an element is `||g^-1 g x - x|| / ||x||`.

    Args:
        scan: a scan, or its `data`.

    Returns:
        A dataset of `curve` `[element]`, the mean over samples; `mean`, its mean over the group;
        `worst`, its largest value; and `worst_element`, the index where that is.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, images[:20], group="dihedral:4", task="classification",
        ...                progress=False)
        >>> float(ob.nero.action_defect(scan)["worst"])  # quarter turns move whole pixels
        0.0
    """
    curve = aggregate(scan, metric="action_defect").compute()
    worst = int(curve.fillna(-np.inf).argmax("element"))
    return xr.Dataset(
        {
            "curve": curve,
            "mean": curve.weighted(curve["weight"]).mean("element"),
            "worst": curve[worst].drop_vars(list(curve.coords)),
            "worst_element": worst,
        },
        attrs={"meaning": curve.attrs["meaning"], "group": curve.attrs["group"]},
    )


def summary(scan: Scan | xr.Dataset) -> xr.Dataset:
    """Summarize each model in a few numbers.

    `accuracy`, `confidence` (both for classification) and `score` are given at three of the
    `orbical.groups.PLACES`: `identity`; `mean`, the weighted mean over the group; `worst`, at the
    element where the model is worst on average: by accuracy if there is one, otherwise by score.
    All three are taken at that same element, so confidence can be compared with accuracy.

    Args:
        scan: a scan, or its `data`.

    Returns:
        A dataset of the above `[model, place]`, and, `[model]` each: `worst_element` (index, -1
        if nothing is finished), `worst_name`, `invariance_gap`, `consensus_vs_truth` (with labels)
        and `samples` (how many are finished); where answers are classes or boxes, `changed` and
        `changed_pairs` of `consistency`; and `action_defect`, a single number.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, (images[:50], labels[:50]), group="rotations:8",
        ...                task="classification", progress=False)
        >>> table = ob.nero.summary(scan)
        >>> table["accuracy"].dims, table["place"].values.tolist()
        (('model', 'place'), ['identity', 'mean', 'worst'])
    """
    data, group = opened(scan)
    curves = xr.Dataset(
        {
            name: aggregate(scan, metric=metric)
            for name, metric in _HEADLINES.items()
            if metric == "score" or metric in data
        }
    )
    single = {"samples": data[FINISHED].notnull().any("element").sum("sample")}
    if "consensus_vs_truth" in data:
        single["consensus_vs_truth"] = data["consensus_vs_truth"].astype(np.float64).mean("sample")
    computed = curves.assign(single).compute()
    curves = computed[list(curves.data_vars)]
    worst = _worst_element(computed)
    places = [
        curves.isel(element=group.identity),
        curves.weighted(curves["weight"]).mean("element", keep_attrs=True),
        curves.isel(element=worst),
    ]
    on_element = [name for name, values in curves.coords.items() if "element" in values.dims]
    table = xr.concat(
        [part.drop_vars(on_element, errors="ignore") for part in places],
        dim=xr.Variable("place", ["identity", "mean", "worst"]),
        coords="minimal",
        compat="override",
        combine_attrs="override",
    ).transpose("model", "place")
    worst = worst.where(computed["samples"] > 0, -1)
    names = [group.name(int(element)) if element >= 0 else "" for element in worst.values]
    table = table.assign(computed[list(single)].drop_vars(on_element, errors="ignore"))
    table = table.assign(
        worst_element=("model", worst.values),
        worst_name=("model", names),
        invariance_gap=invariance_gap(scan)["total"],
        action_defect=float(action_defect(scan)["mean"]),
    ).assign_attrs(data.attrs, reference=computed["score"].attrs["reference"])
    if has_answers(scan):
        changes = consistency(scan)
        table = table.assign(changed=changes["changed"], changed_pairs=changes["pairs"])
    for name, values in table.data_vars.items():
        values.attrs = {"meaning": _SUMMARY_MEANINGS.get(str(name), curves["score"].meaning)}
    return table


def _worst_element(curves: xr.Dataset) -> xr.DataArray:
    """Return the element of the least accuracy, and of the worst score among equals, by model."""
    score = curves["score"]
    worth = score if score.attrs.get("higher_is_better", True) else -score
    worth = worth.fillna(np.inf)
    if "accuracy" in curves:
        accuracy = curves["accuracy"].fillna(np.inf)
        worth = worth.where(accuracy == accuracy.min("element"), np.inf)
    return worth.argmin("element")
