"""Outputs of a scanned model for an orbit table, and its measured invariance defect."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError, check_name
from .equivariant_fit import sum_by
from .matching import Orbits

Array = np.ndarray
_WHY_ORBITS = (
    "pass match_orbits(x, scan.group).orbit, or store a coordinate 'orbit' with the scan. Labels "
    "agree along the orbit of one sample, so without ids there is no dissent and every ceiling "
    "would be 1"
)


def invariant_outputs(
    scan: Any, model: str | None, orbit: Any | None, limit: float
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return the arguments of `OrbitTable.from_labels` for one model of a scan.

    Also returns the outputs of the model itself, which differ where it is not invariant and its
    orbit average takes its place, and what was measured: the root mean square of the invariance gap
    over samples, whether outputs are averaged, and how often predictions leave their orbit's most
    frequent one.
    """
    data, at = of_model(scan, model)
    for name in ("confidence", "predicted"):
        if name not in data:
            raise InputError("scan", "the scan of a classification task", f"no {name!r}")
    if "label" not in data:
        raise InputError("scan", "labels", "none", remedy="without labels there is no dissent")
    if orbit is None:
        if "orbit" not in data:
            raise InputError("orbit", "one id for each sample", "none", remedy=_WHY_ORBITS)
        orbit = data["orbit"]
    label = np.asarray(data["label"])
    ids = np.asarray(orbit.orbit if isinstance(orbit, Orbits) else orbit)
    if ids.shape != label.shape:
        raise InputError(
            "orbit", f"one id for each of {len(label)} samples", f"shape {list(ids.shape)}"
        )
    index = np.unique(ids, return_inverse=True)[1]
    if hasattr(scan, "record") and len(index) > index.max() + 1:
        moving = scan.record.task.settings.get("representation", "trivial") != "trivial"
        if moving:
            raise InputError(
                "scan",
                "classes that stay as inputs move, where samples share an orbit",
                "labels in the frame of each sample",
                remedy="pass the data to OrbitTable.from_data with representation=",
            )
    gap = invariance_gap(data)
    confidence = np.asarray(data["confidence"][:, at], dtype=np.float64)
    predicted = np.asarray(data["predicted"][:, at], dtype=np.int64)
    if not np.isfinite(confidence).all() or predicted.min() < 0:
        raise InputError("scan", "a finished scan", "missing results", remedy="finish it first")
    own = {"confidence": confidence, "predicted": predicted}
    average = _average(data)
    varies = _spread(confidence, index) > limit or _spread(predicted.astype(float), index) > 0
    averaged = gap > limit or varies
    if averaged:
        mean = _orbit_mean(average, index)
        confidence, predicted = np.clip(mean.max(1), 0, 1)[index], mean.argmax(1)[index]
    else:
        confidence = _orbit_mean(confidence, index)[index]
    arguments = {
        "orbit": orbit,
        "label": label,
        "labels": average.shape[1],
        "confidence": confidence,
        "predicted": predicted,
    }
    measured = {"invariance_gap": gap, "averaged": averaged, "broken_along_orbits": _broken(data)}
    return arguments, own, measured


def _broken(data: Any) -> float:
    """Return the share of elements, over samples, without the most frequent prediction."""
    predicted, weight = np.asarray(data["predicted"]), np.asarray(data["weight"])
    votes = np.zeros((len(predicted), int(predicted.max()) + 1))
    np.add.at(votes, (np.arange(len(predicted))[:, None], predicted), weight / weight.sum())
    return max(0.0, float(1 - votes.max(1).mean()))  # votes sum to 1 up to rounding


def invariance_gap(data: Any) -> float:
    """Return the root mean square of the invariance gap over samples."""
    return float(np.sqrt(np.square(np.asarray(data["invariance_gap"], np.float64)).mean()))


def of_model(scan: Any, model: str | None) -> tuple[Any, int]:
    """Return the arrays of a model of a scan (or of its dataset), and the identity's index.

    A bare dataset does not name the identity; an invariant model is the same at any element.
    """
    bare = hasattr(scan, "data_vars")
    data, at = (scan, 0) if bare else (scan.data, int(scan.group.identity))
    if "model" not in data.dims:
        return data, at
    names = [str(name) for name in np.asarray(data["model"])]
    if model is None:
        if len(names) > 1:
            raise InputError("model", f"one of {names}", "None")
        model = names[0]
    check_name("model", model, names)
    return data.isel(model=names.index(model)), at


def _average(data: Any) -> Array:
    """Return `[N, C]`, the orbit average of the probabilities."""
    if "probabilities" in data:
        kept = np.asarray(data["probabilities"], dtype=np.float64)
        return np.asarray(np.average(kept, axis=1, weights=np.asarray(data["weight"])))
    if "consensus" not in data:
        raise InputError(
            "scan",
            "one that stores the consensus",
            "none for so many classes",
            remedy="scan with keep='consensus' (--keep consensus)",
        )
    return np.asarray(data["consensus"], dtype=np.float64)


def _spread(values: Array, index: Array) -> float:
    order = np.lexsort((values, index))
    last = np.flatnonzero(np.diff(index[order], append=-1))
    first = np.concatenate([[0], last[:-1] + 1])
    return float((values[order][last] - values[order][first]).max())


def _orbit_mean(values: Array, index: Array) -> Array:
    count = np.bincount(index)
    return (sum_by(index, values, len(count)).T / count).T
