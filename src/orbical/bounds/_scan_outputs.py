"""What a scan contributes to an orbit table: answers, and the measured invariance defect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError, unknown_name

Array = np.ndarray
_WHY_ORBITS = (
    "orbit: the scan does not say which samples share an orbit. Labels moved along one sample's "
    "orbit agree by construction, so a scan alone knows no dissent and every ceiling would be 1. "
    "Give orbit= one id for each sample (for example match_orbits(x, scan.group).orbit), or store "
    "a coordinate 'orbit' with the scan"
)


@dataclass(frozen=True, eq=False)
class Answers:
    """What one model of a scan answers, made constant on orbits.

    Attributes:
        orbit: `[N]` ids.
        label: `[N]`.
        labels: the number of labels.
        confidence: `[N]`, equal on an orbit.
        predicted: `[N]`, equal on an orbit.
        invariance_gap: root mean square over samples of the scan's invariance gap.
        averaged: whether these are the answers of the orbit-averaged model.
    """

    orbit: Array
    label: Array
    labels: int | None
    confidence: Array
    predicted: Array
    invariance_gap: float
    averaged: bool


def answers(scan: Any, model: str | None, orbit: Any | None, limit: float) -> Answers:
    """Read one model's answers; where it is not invariant, those of its orbit average."""
    bare = hasattr(scan, "data_vars")
    data = _of_model(scan if bare else scan.data, model)
    for name in ("confidence", "predicted"):
        if name not in data:
            raise InputError(f"scan: has no {name!r}; expected the scan of a classification task")
    if "label" not in data.coords and "label" not in data:
        raise InputError("scan: has no labels, and without labels there is no dissent to bound")
    if orbit is None:
        if "orbit" not in data.coords and "orbit" not in data:
            raise InputError(_WHY_ORBITS)
        orbit = data["orbit"]
    label = np.asarray(data["label"])
    ids = np.asarray(orbit)
    if ids.shape != label.shape:
        raise InputError(
            f"orbit: expected one id for each of {len(label)} samples, got shape {list(ids.shape)}"
        )
    index = np.unique(ids, return_inverse=True)[1]
    weight = np.asarray(data["weight"]) if "weight" in data.coords else None
    average = _average(data, weight)
    labels = None if average is None else average.shape[1]
    gap = _gap(data, weight, average)
    # A bare dataset does not say where the identity is; an invariant model answers alike anywhere.
    at = 0 if bare else int(scan.group.identity)
    confidence = np.asarray(data["confidence"][:, at], dtype=np.float64)
    predicted = np.asarray(data["predicted"][:, at], dtype=np.int64)
    if not np.isfinite(confidence).all() or predicted.min() < 0:
        raise InputError("scan: is not complete; finish it before bounding anything by it")
    spread = _spread(confidence, index)
    if gap <= limit and spread <= limit and _spread(predicted.astype(float), index) == 0:
        mean = _orbit_mean(confidence[:, None], index)[:, 0]
        return Answers(ids, label, labels, mean[index], predicted, gap, averaged=False)
    if average is None:
        raise InputError(
            f"scan: the model is not invariant (gap {gap:.3g}, answers within an orbit differ by "
            f"{spread:.3g}; at most {limit:g} expected), so no bound for invariant models holds "
            "for it. Scan it with keep='probabilities' to bound its orbit-averaged version"
        )
    mean = _orbit_mean(average, index)
    return Answers(
        orbit=ids,
        label=label,
        labels=labels,
        confidence=np.clip(mean.max(1), 0, 1)[index],
        predicted=mean.argmax(1)[index],
        invariance_gap=gap,
        averaged=True,
    )


def _of_model(data: Any, model: str | None) -> Any:
    if "model" not in data.dims:
        return data
    names = [str(name) for name in np.asarray(data["model"])]
    if model is None:
        if len(names) > 1:
            raise InputError(f"model: the scan holds {names}; name one of them")
        model = names[0]
    if model not in names:
        raise unknown_name("model", model, names)
    return data.isel(model=names.index(model))


def _average(data: Any, weight: Array | None) -> Array | None:
    """Return `[N, C]`, the orbit average of the probabilities, if the scan kept what it needs."""
    if "probabilities" in data:
        kept = np.asarray(data["probabilities"], dtype=np.float64)
        return np.average(kept, axis=1, weights=weight)
    if "consensus" in data and data["consensus"].ndim == 2:
        return np.asarray(data["consensus"], dtype=np.float64)
    return None


def _gap(data: Any, weight: Array | None, average: Array | None) -> float:
    if "invariance_gap" in data:
        return float(np.sqrt(np.square(np.asarray(data["invariance_gap"], np.float64)).mean()))
    if "probabilities" not in data or average is None:
        raise InputError(
            "scan: holds neither 'invariance_gap' nor 'probabilities', so whether the model is "
            "invariant is not known"
        )
    off = np.asarray(data["probabilities"], dtype=np.float64) - average[:, None]
    return float(np.sqrt(np.average(np.square(off).sum(-1), axis=1, weights=weight).mean()))


def _spread(values: Array, index: Array) -> float:
    low, high = np.full(index.max() + 1, np.inf), np.full(index.max() + 1, -np.inf)
    np.minimum.at(low, index, values)
    np.maximum.at(high, index, values)
    return float((high - low).max())


def _orbit_mean(values: Array, index: Array) -> Array:
    count = np.bincount(index)
    sums = [np.bincount(index, weights=column) for column in values.T]
    return np.stack(sums, axis=1) / count[:, None]
