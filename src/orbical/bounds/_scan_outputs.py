"""Outputs of a scanned model for an orbit table, and its measured invariance defect."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..calibration import model_index
from ..errors import InputError
from ..store import ScanArrays, arrays_of
from .equivariant_fit import sum_by_orbit
from .matching import ids_and_facts

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
    arrays = arrays_of(scan)
    number = model_index(arrays, model)
    for name in ("confidence", "predicted"):
        if name not in arrays:
            raise InputError("scan", "the scan of a classification task", f"no {name!r}")
    if "label" not in arrays:
        raise InputError("scan", "labels", "none", remedy="without labels there is no dissent")
    if orbit is None:
        if "orbit" not in arrays:
            raise InputError("orbit", "one id for each sample", "none", remedy=_WHY_ORBITS)
        orbit = arrays.read("orbit")
    label = arrays.read("label")
    ids = np.asarray(ids_and_facts(orbit)[0])
    if ids.shape != label.shape:
        raise InputError("orbit", f"one id for each of {len(label)} samples", ids)
    index = np.unique(ids, return_inverse=True)[1]
    moving = arrays.settings.get("representation", "trivial") != "trivial"
    if moving and len(index) > index.max() + 1:
        raise InputError(
            "scan",
            "classes that stay as inputs move, where samples share an orbit",
            "labels in the frame of each sample",
            remedy="pass the data to OrbitTable.from_data with representation=",
        )
    gap = invariance_gap(arrays, number)
    confidence = outputs_at_identity(arrays, "confidence", number).astype(np.float64)
    predicted = outputs_at_identity(arrays, "predicted", number).astype(np.int64)
    if not np.isfinite(confidence).all() or predicted.min() < 0:
        raise InputError("scan", "a finished scan", "missing results", remedy="finish it first")
    own = {"confidence": confidence, "predicted": predicted}
    average = _averaged_scan_outputs(arrays, number)
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
    measured = {
        "invariance_gap": gap,
        "averaged": averaged,
        "broken_along_orbits": _broken(arrays, number),
    }
    return arguments, own, measured


def _broken(arrays: ScanArrays, model: int) -> float:
    """Return the share of elements, over samples, without the most frequent prediction."""
    weights, most = arrays.weights / arrays.weights.sum(), 0.0
    for _, (predicted,) in arrays.sample_blocks("predicted", model=model):
        votes = np.zeros((len(predicted), int(predicted.max()) + 1))
        np.add.at(votes, (np.arange(len(predicted))[:, None], predicted), weights)
        most += votes.max(1).sum()
    return max(0.0, float(1 - most / arrays.samples))  # votes sum to 1 up to rounding


def invariance_gap(arrays: ScanArrays, model: int) -> float:
    """Return the root mean square of the invariance gap over samples."""
    gaps = arrays.read("invariance_gap", model=model).astype(np.float64)
    return float(np.sqrt(np.square(gaps).mean()))


def outputs_at_identity(arrays: ScanArrays, name: str, model: int) -> Array:
    """Read an array `[N, ...]` of a model at the identity, a block at a time."""
    blocks = arrays.sample_blocks(name, model=model)
    return np.concatenate([part[:, arrays.group.identity] for _, (part,) in blocks])


def _averaged_scan_outputs(arrays: ScanArrays, model: int) -> Array:
    """Return `[N, C]`, the orbit average of the probabilities."""
    if "probabilities" in arrays:
        weights = arrays.weights / arrays.weights.sum()
        blocks = arrays.sample_blocks("probabilities", model=model)
        return np.concatenate([np.tensordot(part, weights, (1, 0)) for _, (part,) in blocks])
    if "consensus" not in arrays:
        raise InputError(
            "scan",
            "one that stores the consensus",
            "none for so many classes",
            remedy="scan with keep='consensus' (--keep consensus)",
        )
    return arrays.read("consensus", model=model).astype(np.float64)


def _spread(values: Array, index: Array) -> float:
    order = np.lexsort((values, index))
    last = np.flatnonzero(np.diff(index[order], append=-1))
    first = np.concatenate([[0], last[:-1] + 1])
    return float((values[order][last] - values[order][first]).max())


def _orbit_mean(values: Array, index: Array) -> Array:
    count = np.bincount(index)
    return (sum_by_orbit(index, values, len(count)).T / count).T
