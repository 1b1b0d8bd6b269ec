"""What averages, temperatures, thresholds and sets change, from stored predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from .._lazy import xr
from .._warnings import silent
from ..calibration import ece
from ..conformal import LAC, conformal_halves, finished_rows_of_coverage, rows_of_coverage
from ..errors import InputError, check_name, real_number, whole_number
from ..groups import Group, parse
from ..nero import averages_over_elements, evenly_spaced
from ..recalibrate import OrbitTemperature
from ..store import Scan, ScanArrays, arrays_of

Array = np.ndarray

RECALIBRATED = ("identity", "pooled", "position")
"""Where a temperature is fitted: at the identity, one for all elements, or one for each."""


@dataclass(frozen=True)
class Change:
    """What is changed about the predictions of a model.

    Attributes:
        average: the number of elements that probabilities are averaged over.
        recalibrate: where a temperature is fitted, one of `RECALIBRATED`; empty for none.
        reject: the confidence below which predictions are passed on; "fitted" for the cheapest,
            None for `1 - passing`.
        coverage: that of prediction sets; those of several classes are passed on. None for none.
    """

    average: int = 1
    recalibrate: str = ""
    reject: float | str | None = None
    coverage: float | None = None


class ChangedPredictions(NamedTuple):
    """Predictions of one model for n samples at K elements."""

    probs: Array  # [K, n, C]; no classes if there are none stored, which checked_remedy has refused
    confidence: Array  # [K, n]
    correct: Array  # [K, n]
    labels: Array

    def of(self, rows: Array) -> ChangedPredictions:
        """Return those of some samples."""
        parts = self.probs[:, rows], self.confidence[:, rows], self.correct[:, rows]
        return ChangedPredictions(*parts, self.labels[rows])

    def changed(self, probs: Array) -> ChangedPredictions:
        """Return the predictions of other probabilities."""
        return ChangedPredictions(
            probs, probs.max(-1), probs.argmax(-1) == self.labels, self.labels
        )


class ChangeOutcome(NamedTuple):
    """Test samples after a change: `[K, n]` each, and the threshold of the confidence."""

    confidence: Array
    correct: Array
    acted: Array
    contains: Array | None
    size: Array | None
    threshold: float
    weights: Array  # [K]
    passing: float

    def losses(self) -> Array:
        """Return the mean cost of each sample over its orbit, `[n]`."""
        return np.asarray(self.weights @ np.where(self.acted, 1.0 - self.correct, self.passing))

    def curves(self) -> dict[str, Any]:
        """Return means over samples at each element, and of all."""
        acted, wrong = self.acted, ~self.correct
        each = np.repeat(self.weights, acted.shape[1])
        pair = torch.from_numpy(self.confidence), torch.from_numpy(self.correct)
        pooled = ece(pair[0].flatten(), pair[1].flatten(), weights=torch.from_numpy(each))
        found = {
            "accuracy": self.correct.mean(1),
            "confidence": self.confidence.mean(1),
            "ece": ece(*pair).numpy(),
            "answered": acted.mean(1),
            "risk": (acted & wrong).sum(1) / np.where(acted.any(1), acted.sum(1), np.nan),
            "cost": np.where(acted, wrong, self.passing).mean(1),
            "pooled_ece": float(pooled),
            "threshold": self.threshold,
        }
        if self.contains is not None and self.size is not None:
            found |= {"coverage": self.contains.mean(1), "size": self.size.mean(1)}
        return found


def what_if(
    scan: Scan | xr.Dataset,
    *,
    average: int = 1,
    recalibrate: str = "",
    reject: float | str | None = None,
    coverage: float | None = None,
    passing: float = 0.5,
    share: float = 0.5,
    seed: int = 0,
    most: int = 4000,
) -> xr.Dataset:
    """Compute what averaging, recalibration, rejection or prediction sets would change.

    They are applied in this order. What needs fitting is fitted on a share of the samples; all
    numbers are those of the others, with and without a change.

    Args:
        scan: a labeled classification scan, or its `data`; with `keep="probabilities"` for all but
            rejection.
        average: average the probabilities over so many evenly spaced elements of a closed group.
        recalibrate: fit a temperature at the `"identity"`, one for all elements (`"pooled"`), or
            one at each `"position"`, which must then be known when the model is used.
        reject: pass on predictions below this confidence; "fitted" for the cheapest threshold, and
            None for `1 - passing`.
        coverage: make prediction sets of this coverage, calibrated on the whole orbit; sets of
            several classes are passed on.
        passing: the cost of passing a prediction on, relative to that of an error.
        share: the share of the samples that fits.
        seed: seed of that share.
        most: use at most so many samples, drawn at random.

    Returns:
        A dataset `[model, element]` of `accuracy`, `confidence`, `ece`, `answered` (the share of
        predictions that are acted on), `risk` (the share of wrong ones among them), `cost` and,
        with sets, `coverage` and `size`; `[model]` of `pooled_ece` and `threshold`. Attributes have
        `passes` (of the model for one prediction), `held` and `tested` (samples) and `code`.

    Raises:
        InputError: if the scan lacks what a change needs.

    Example:
        >>> import orbical as ob
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, (images[:100], labels[:100]), group="cyclic:4",
        ...                task="classification", keep="probabilities", progress=False)
        >>> found = ob.advice.what_if(scan, average=4, recalibrate="pooled")
        >>> found.attrs["passes"], bool(found["accuracy"].std("element") < 1e-9)
        (4, True)
    """
    arrays = arrays_of(scan)
    change = checked_remedy(Change(average, recalibrate, reject, coverage), arrays, passing)
    columns: dict[str, list[Any]] = {}
    for model in range(len(arrays.models)):
        rows = rows_to_advise_on(arrays, model, seed, most)
        trial = trial_of_changes(arrays, model, rows, passing, share, seed)
        for name, values in trial.outcome(change).curves().items():
            columns.setdefault(name, []).append(values)
    dims = ("model", "element")
    found = {name: (dims[: 1 + np.ndim(rows[0])], np.stack(rows)) for name, rows in columns.items()}
    coords = {"model": arrays.models, **{k: ("element", v) for k, v in arrays.group.coords.items()}}
    about = {
        "passes": change.average,
        "held": len(trial.fit.labels),
        "tested": len(trial.test.labels),
        "code": what_if_change_code(change, arrays.group),
    }
    return xr.Dataset(found, coords, {"group": arrays.group.spec, "passing": passing, **about})


def checked_remedy(change: Change, arrays: ScanArrays, passing: float) -> Change:
    """Refuse changes that the scan does not allow."""
    real_number("passing", passing, "in (0, 1)")
    if not (arrays.has_responses("correct") and arrays.has_responses("confidence")):
        raise InputError("scan", "a labeled classification", "no right and wrong predictions")
    if change.recalibrate:
        check_name("recalibrate", change.recalibrate, RECALIBRATED)
    whole_number("average", change.average, 1)
    if len(arrays.group) % change.average:
        raise InputError("average", f"a divisor of {len(arrays.group)}", change.average)
    if change.average > 1 and not arrays.group.closed:
        raise InputError("average", "1, as the group is not closed", change.average)
    wanted = change.average > 1 or change.recalibrate or change.coverage is not None
    if wanted and "probabilities" not in arrays:
        raise InputError(
            "scan", "class probabilities", "none", remedy="scan with keep='probabilities'"
        )
    if isinstance(change.reject, str):
        check_name("reject", change.reject, ["fitted"])
    return change


def rows_to_advise_on(arrays: ScanArrays, model: int, seed: int, most: int) -> Array:
    """Return the samples with a score at every element, at most so many of them."""
    finished = finished_rows_of_coverage(arrays, "score", model)
    if len(finished) > whole_number("most", most, 2):
        chosen = np.random.default_rng(seed).choice(len(finished), most, replace=False)
        finished = finished[np.sort(chosen)]
    return finished


class Trial(NamedTuple):
    """Predictions of a model to try changes on: one half fits them, and the other judges."""

    fit: ChangedPredictions
    test: ChangedPredictions
    group: Group
    weights: Array
    passing: float

    def outcome(self, change: Change) -> ChangeOutcome:
        """Apply a change to test predictions; fit on the others what it needs."""
        fit, test = self.fit, self.test
        if change.average > 1:
            fit, test = (
                part.changed(
                    averages_over_elements(
                        torch.from_numpy(part.probs), self.group, change.average
                    ).numpy()
                )
                for part in (fit, test)
            )
        if change.recalibrate:
            fit, test = _recalibrated_predictions(
                change.recalibrate, fit, test, self.group, self.weights
            )
        contains = size = None
        threshold = 1 - self.passing if change.reject is None else change.reject
        if isinstance(threshold, str):
            threshold = _cheapest_threshold(fit, self.weights, self.passing)
        acted = test.confidence >= threshold
        if change.coverage is not None:
            every = np.arange(fit.probs.shape[-1])
            sets = LAC(change.coverage, outputs="probabilities")
            sets.fit(fit.probs.swapaxes(0, 1), fit.labels, self.weights, classes=every)
            members = sets.predict_set(test.probs)
            size = members.sum(-1)
            contains = np.take_along_axis(members, test.labels[None, :, None], -1)[..., 0]
            acted = size == 1
        after = test.confidence, test.correct, acted, contains, size, float(threshold)
        return ChangeOutcome(*after, self.weights, self.passing)


def trial_of_changes(
    arrays: ScanArrays, model: int, finished: Array, passing: float, share: float, seed: int
) -> Trial:
    """Read samples of a model, and divide them into those that fit and those that judge."""
    names = ["confidence", "correct", *(["probabilities"] if "probabilities" in arrays else [])]
    read = [parts for _, parts in rows_of_coverage(arrays, model, finished, *names)]
    confidence, correct, *probs = (
        np.concatenate(parts).swapaxes(0, 1) for parts in zip(*read, strict=True)
    )
    labels = arrays.read("label") if "label" in arrays else np.zeros(arrays.samples, int)
    scores = probs[0].astype(np.float64) if probs else np.zeros((*correct.shape, 0))
    sure = np.nan_to_num(confidence.astype(np.float64))  # nothing detected is nothing to act on
    every = ChangedPredictions(scores, sure, correct == 1, labels[finished])
    fit, test = conformal_halves(np.arange(len(finished)), share, seed)
    return Trial(every.of(fit), every.of(test), arrays.group, arrays.weights, passing)


def _recalibrated_predictions(
    where: str, fit: ChangedPredictions, test: ChangedPredictions, group: Group, weights: Array
) -> tuple[ChangedPredictions, ChangedPredictions]:
    """Return the samples that fit and those that judge, with probabilities of a temperature."""
    classes = np.arange(fit.probs.shape[-1])
    elements = [slice(k, k + 1) for k in range(len(group))]
    learn, use = {
        "identity": ([elements[group.identity]], [slice(None)]),
        "pooled": ([slice(None)], [slice(None)]),
        "position": (elements, elements),
    }[where]
    scalings: list[OrbitTemperature | None] = []
    with silent():  # temperatures at an end of their range are judged too
        for part in learn:
            orbits = torch.from_numpy(fit.probs[part]).swapaxes(0, 1)
            scaling = OrbitTemperature(outputs="probabilities")
            try:
                scaling.fit(orbits, fit.labels, element_weight=weights[part], classes=classes)
            except InputError:  # all classes are equally probable: no temperature changes that
                scalings.append(None)
            else:
                scalings.append(scaling)
    # Tensors, since scikit-learn would check arrays; both sides at once, since calls cost more
    probs = torch.from_numpy(np.concatenate([fit.probs, test.probs], 1))
    scaled = [
        probs[part] if one is None else one.predict_proba(probs[part])
        for one, part in zip(scalings, use, strict=True)
    ]
    sides = torch.cat(scaled).numpy()
    number = len(fit.labels)
    return fit.changed(sides[:, :number]), test.changed(sides[:, number:])


def _cheapest_threshold(fit: ChangedPredictions, weights: Array, passing: float) -> float:
    """Return the threshold of the confidence at which predictions cost least."""
    sure = fit.confidence.ravel()
    order = np.argsort(-sure, kind="stable")
    gain = (np.repeat(weights, fit.confidence.shape[1]) * (passing - ~fit.correct.ravel()))[order]
    saved = np.cumsum(gain)
    last = np.append(np.diff(sure[order]) < 0, True)  # equal confidences go together
    best = int(np.where(last, saved, -np.inf).argmax())
    return float(sure[order][best]) if saved[best] > 0 else np.inf


def what_if_change_code(change: Change, group: Group) -> str:
    """Write Python that makes a change; `model` and `task` are those of the scan."""
    lines = ["import orbical as ob"]
    if change.average > 1:
        name = _group_of_average_change(group, change.average)
        chosen = repr(name)
        if name is None:
            chosen, spaced = "group", evenly_spaced(group, change.average)
            lines.append(f"every = ob.groups.parse({group.spec!r}).parts.items()")
            lines.append(
                f"few = {{name: part[{spaced.start}::{spaced.step}] for name, part in every}}"
            )
            lines.append(
                f"group = ob.groups.from_parts({advised_group(group, change.average)!r}, few)"
            )
        lines.append(f"model = ob.predictors.OrbitAverage(model, {chosen}, task)")
    if change.recalibrate in ("identity", "pooled"):
        kind = "Temperature" if change.recalibrate == "identity" else "OrbitTemperature"
        shape = "[N, C], upright" if kind == "Temperature" else "[N, K, C], along orbits"
        lines.append(f"scaling = ob.recalibrate.{kind}(outputs='probabilities')")
        lines.append(f"scaling.fit(held_out_probs, held_out_labels)  # {shape}")
        lines.append("probs = scaling.predict_proba(new_probs)")
    elif change.recalibrate:
        lines.append("scalings = [ob.recalibrate.Temperature(outputs='probabilities')")
        lines.append("            .fit(held_out_probs[:, k], held_out_labels)  # [N, K, C]")
        lines.append(f"            for k in range({len(group)})]  # scalings[k] at element k")
    if change.coverage is None and change.reject is not None:
        least = str(change.reject)
        if change.reject == "fitted":
            made = [f"average={change.average}"] if change.average > 1 else []
            made += [f"recalibrate={change.recalibrate!r}"] if change.recalibrate else []
            given = ", ".join(["scan", *made, "reject='fitted'"])
            lines.append(f"least = ob.advice.what_if({given})['threshold']  # of each model")
            least = "least"
        lines.append(f"act = confidence >= {least}  # pass on the others")
    if change.coverage is not None:  # sets decide then, whatever the confidence
        lines.append(f"sets = ob.conformal.LAC({change.coverage}, outputs='probabilities')")
        lines.append("sets.fit(held_out_probs, held_out_labels)  # [N, K, C], along orbits")
        lines.append("act = sets.predict_set(new_probs).sum(-1) == 1")
    return "\n".join(lines)


def _group_of_average_change(group: Group, number: int) -> str | None:
    """Return the text of the group of some evenly spaced elements, None if it has none.

    >>> from orbical.groups import dihedral, flips
    >>> [_group_of_average_change(dihedral(4), number) for number in (4, 2)]
    ['dihedral:2', 'dihedral:1']
    >>> _group_of_average_change(flips(), 2) is None
    True
    """
    if number == len(group):
        return group.spec
    kind, _, order = group.spec.partition(":")
    if not order.isdigit() or int(order) * number % len(group):
        return None
    text = f"{kind}:{int(order) * number // len(group)}"
    part, chosen = parse(text), np.arange(len(group))[evenly_spaced(group, number)]
    same = len(part) == number and np.array_equal(np.sort(group.index_of(part)), chosen)
    return text if same else None


def advised_group(group: Group, number: int) -> str:
    """Describe evenly spaced elements of a group."""
    return (
        _group_of_average_change(group, number)
        or f"{number} evenly spaced elements of {group.spec}"
    )
