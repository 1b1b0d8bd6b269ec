"""What a scan says of each model as a whole: consensus, invariance gap, action defect, summary."""

from __future__ import annotations

import numpy as np

from .._lazy import xr
from ..store import Scan, ScanArrays, arrays_of, opened_scan, responses
from .along_orbits import aggregate
from .changes import answer_names, sample_changes
from .classification_scores import RATES, binary_rates, has_two_classes
from .headlines import finished_samples, headline_curves, headline_of, worst_elements
from .molecule_violations import scanned_quantities, violations_of
from .sums_and_means import known_mean, mean_of_curves

Array = np.ndarray

_SUMMARY_MEANINGS = {
    "accuracy": "share of samples whose predicted class is the true one",
    "confidence": "mean of the largest class probability",
    **RATES,
    "samples": "number of finished samples",
    "consensus_vs_truth": "mean score of the consensus",
    "worst_element": "index of the element where the model is worst on average",
    "worst_name": "name of that element",
    "changed": "share of samples whose prediction changes somewhere on the orbit",
    "changed_pairs": "share of pairs of elements whose predictions disagree",
    "invariance_gap": "root mean square distance of the un-transformed outputs from their mean",
    "violation": "largest distance of each quantity from its consensus, in its own unit",
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

    See Also:
        invariance_gap: How far outputs are from the consensus.

    References:
        Zhao et al., Evaluating Machine Learning Models with NERO, section 2.5, equation 1.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, images[:20], group="rotations:8", task="classification",
        ...                progress=False)
        >>> float(ob.nero.consensus(scan)["consensus"].sum("class").mean().round(3))
        1.0
    """
    data, group = opened_scan(scan)
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

    See Also:
        consensus: The mean that outputs are compared with.
        consistency: How often the answer itself changes.

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
    data, _ = opened_scan(scan)
    per_sample = data["invariance_gap"]
    about = {"meaning": "root mean square of the gap over samples"}
    total = (("model",), _root_mean_square_gap(arrays_of(scan)), about)
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

    See Also:
        invariance_gap: What the model loses, and the transformation with it.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, images[:20], group="dihedral:4", task="classification",
        ...                progress=False)
        >>> float(ob.nero.action_defect(scan)["worst"])  # quarter turns move whole pixels
        0.0
    """
    curve = aggregate(scan, metric="action_defect")
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
    All three are taken at that same element, so confidence can be compared with accuracy. Of two
    classes there are also `auroc`, `sensitivity` and `specificity`, of which class 1 is positive;
    `binary_rates` has their intervals.

    Args:
        scan: a scan, or its `data`.

    Returns:
        A dataset of the above `[model, place]`, and, `[model]` each: `worst_element` (index, -1
        if nothing is finished), `worst_name`, `invariance_gap`, `consensus_vs_truth` (with labels)
        and `samples` (how many are finished); where answers are classes or boxes, `changed` and
        `changed_pairs` of `consistency`; of atoms, whose `score` and gap are of one quantity,
        `violation` `[model, quantity]`, the largest of each (`violations`); and `action_defect`, a
        single number. The attribute `headline` says what was found in a sentence.

    See Also:
        headline: What was found in a sentence.
        aggregate: The mean at every element.
        orbical.check: Check a scan against thresholds.

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
    (data, group), arrays = opened_scan(scan), arrays_of(scan)
    curves, samples = headline_curves(arrays), finished_samples(arrays)
    worst = np.where(samples > 0, worst_elements(curves, arrays), -1)
    each = np.arange(len(worst))
    shown = {**curves}
    if has_two_classes(arrays):
        rates = binary_rates(scan)
        shown |= {name: rates[name].values for name in RATES}
    table: dict[str, object] = {}
    for name, curve in shown.items():
        mean = mean_of_curves(curve, arrays.weights)
        at_places = curve[:, group.identity], mean, curve[each, worst]
        table[name] = (("model", "place"), np.stack(at_places, 1))
    single: dict[str, object] = {
        "samples": samples,
        "worst_element": worst,
        "worst_name": [group.name(int(element)) if element >= 0 else "" for element in worst],
        "invariance_gap": _root_mean_square_gap(arrays),
    }
    if "consensus_vs_truth" in arrays:
        scores = (arrays.read("consensus_vs_truth", model=int(model)) for model in each)
        single["consensus_vs_truth"] = [*map(known_mean, scores)]
    if answer_names(arrays):
        shares = [[*map(known_mean, values)] for values in sample_changes(arrays).values()]
        single |= dict(zip(("changed", "changed_pairs"), shares, strict=True))
    table |= {name: (("model",), values) for name, values in single.items()}
    table["action_defect"] = float(action_defect(scan)["mean"])
    coords = {"model": data["model"], "place": ["identity", "mean", "worst"]}
    if quantities := scanned_quantities(arrays):
        largest = {(one.model, one.quantity): one.largest for one in violations_of(arrays)}
        values = [[largest.get((model, q), np.nan) for q in quantities] for model in arrays.models]
        table["violation"] = (("model", "quantity"), values)
        coords["quantity"] = quantities
    score = responses(scan).attrs
    about = {"reference": score["reference"], "headline": headline_of(arrays, curves, samples).text}
    result = xr.Dataset(table, coords, {**data.attrs, **about})
    for key, variable in result.data_vars.items():
        variable.attrs = {"meaning": _SUMMARY_MEANINGS.get(str(key), score["meaning"])}
    return result


def _root_mean_square_gap(arrays: ScanArrays) -> Array:
    gaps = (arrays.read("invariance_gap", model=model) for model in range(len(arrays.models)))
    return np.sqrt([known_mean(np.square(gap.astype(np.float64))) for gap in gaps])
