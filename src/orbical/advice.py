"""What would help: remedies for a scanned model, each measured on samples it was not fitted to.

All is computed from the stored predictions of a scan, so no model runs. One half of the samples
fits temperatures, thresholds and sets, and the other half judges them.

Remedies are compared in one currency, the cost of a prediction that is acted on if its confidence
says so: an error costs 1, passing a prediction on to a person costs `passing`, and one acts where
the confidence is at least `1 - passing`. For calibrated confidence no other threshold is cheaper
(Chow, 1970), so a model that is accurate and honest has nothing to gain.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from ._text import counted, number, percent
from .calibration import bounded_mean_interval, checked_level, ece, interval_of_sums
from .conformal import LAC, halves
from .errors import InputError, check_name, real_number, whole_number
from .groups import Group
from .nero import averaged, over_orbit
from .recalibrate import OrbitTemperature
from .store import FINISHED, ScanArrays, arrays_of

if TYPE_CHECKING:
    import xarray as xr

    from .store import Scan

__all__ = ["Advice", "Expectation", "Remedy", "advise", "what_if"]

Array = np.ndarray

RECALIBRATED = ("identity", "pooled", "position")
"""Where a temperature is fitted: at the identity, one for all elements, or one for each."""
LEAST = 40
"""Samples of a model below which nothing is said: neither half could tell."""


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


class _Predictions(NamedTuple):
    """Predictions of one model for n samples at K elements."""

    probs: Array  # [K, n, C]; no classes if there are none stored, which _checked has refused
    confidence: Array  # [K, n]
    correct: Array  # [K, n]
    labels: Array

    def of(self, rows: Array) -> _Predictions:
        """Return those of some samples."""
        parts = self.probs[:, rows], self.confidence[:, rows], self.correct[:, rows]
        return _Predictions(*parts, self.labels[rows])

    def changed(self, probs: Array) -> _Predictions:
        """Return the predictions of other probabilities."""
        return _Predictions(probs, probs.max(-1), probs.argmax(-1) == self.labels, self.labels)


class _Outcome(NamedTuple):
    """Test samples after a change: `[K, n]` each, and the threshold of the confidence."""

    confidence: Array
    correct: Array
    acted: Array
    contains: Array | None
    size: Array | None
    threshold: float

    def loss(self, weights: Array, passing: float) -> Array:
        """Return the mean cost of each sample over its orbit, `[n]`."""
        each = np.where(self.acted, 1.0 - self.correct, passing)
        return np.asarray(weights @ each)


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
    import xarray as xr

    arrays = arrays_of(scan)
    change = _checked(Change(average, recalibrate, reject, coverage), arrays, passing)
    columns: dict[str, list[Any]] = {}
    for model in range(len(arrays.models)):
        fit, test = _halves(arrays, model, share, seed, most)
        outcome = _outcome(change, fit, test, arrays, passing)
        for name, values in _curves(outcome, arrays.weights, passing).items():
            columns.setdefault(name, []).append(values)
    held, tested = (part.correct.shape[1] for part in (fit, test))
    dims = ("model", "element")
    found = {name: (dims[: 1 + np.ndim(rows[0])], np.stack(rows)) for name, rows in columns.items()}
    coords = {"model": arrays.models, **{k: ("element", v) for k, v in arrays.group.coords.items()}}
    about = {
        "passes": change.average,
        "held": held,
        "tested": tested,
        "code": _code(change, arrays.group),
    }
    return xr.Dataset(found, coords, {"group": arrays.group.spec, "passing": passing, **about})


def _checked(change: Change, arrays: ScanArrays, passing: float) -> Change:
    """Refuse changes that the scan does not allow."""
    if not 0 < real_number("passing", passing) < 1:
        raise InputError("passing", "a number in (0, 1)", passing)
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


def _halves(
    arrays: ScanArrays, model: int, share: float, seed: int, most: int
) -> tuple[_Predictions, _Predictions]:
    """Read at most so many finished samples; return those that fit and those that judge."""
    blocks = arrays.sample_blocks(FINISHED, model=model)
    finished = np.flatnonzero(np.concatenate([np.isfinite(part).all(1) for _, (part,) in blocks]))
    if len(finished) > whole_number("most", most, 2):
        chosen = np.random.default_rng(seed).choice(len(finished), most, replace=False)
        finished = finished[np.sort(chosen)]
    names = ["confidence", "correct", *(["probabilities"] if "probabilities" in arrays else [])]
    read: list[list[Array]] = []
    for rows, parts in arrays.sample_blocks(*names, model=model):
        own = finished[(finished >= rows.start) & (finished < rows.stop)] - rows.start
        read.append([part[own].swapaxes(0, 1) for part in parts])
    confidence, correct, *probs = (np.concatenate(parts, 1) for parts in zip(*read, strict=True))
    labels = arrays.read("label") if "label" in arrays else np.zeros(arrays.samples, int)
    scores = probs[0].astype(np.float64) if probs else np.zeros((*correct.shape, 0))
    sure, right = confidence.astype(np.float64), correct.astype(bool)
    every = _Predictions(scores, sure, right, labels[finished])
    first, second = halves(np.arange(len(finished)), share, seed)
    return every.of(first), every.of(second)


def _outcome(
    change: Change, fit: _Predictions, test: _Predictions, arrays: ScanArrays, passing: float
) -> _Outcome:
    """Apply a change to test predictions; fit on others what it needs."""
    group, weights = arrays.group, arrays.weights
    if change.average > 1:
        fit, test = (
            part.changed(averaged(torch.from_numpy(part.probs), group, change.average).numpy())
            for part in (fit, test)
        )
    if change.recalibrate:
        fit, test = _recalibrated(change.recalibrate, fit, test, group, weights)
    contains = size = None
    threshold = 1 - passing if change.reject is None else change.reject
    if isinstance(threshold, str):
        threshold = _cheapest(fit, weights, passing)
    acted = test.confidence >= threshold
    if change.coverage is not None:
        classes = np.arange(fit.probs.shape[-1])
        sets = LAC(change.coverage, outputs="probabilities")
        sets.fit(fit.probs.swapaxes(0, 1), fit.labels, element_weight=weights, classes=classes)
        members = sets.predict_set(test.probs)
        size = members.sum(-1)
        contains = np.take_along_axis(members, test.labels[None, :, None], -1)[..., 0]
        acted = size == 1
    return _Outcome(test.confidence, test.correct, acted, contains, size, float(threshold))


def _recalibrated(
    where: str, fit: _Predictions, test: _Predictions, group: Group, weights: Array
) -> Iterator[_Predictions]:
    """Yield the samples that fit and those that judge, with probabilities of a temperature."""
    classes = np.arange(fit.probs.shape[-1])
    elements = [slice(k, k + 1) for k in range(len(group))]
    learn, use = {
        "identity": ([elements[group.identity]], [slice(None)]),
        "pooled": ([slice(None)], [slice(None)]),
        "position": (elements, elements),
    }[where]
    scalings: list[OrbitTemperature | None] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # temperatures at an end of their range are judged too
        for part in learn:
            orbits = fit.probs[part].swapaxes(0, 1)
            scaling = OrbitTemperature(outputs="probabilities")
            try:
                scaling.fit(orbits, fit.labels, element_weight=weights[part], classes=classes)
            except InputError:  # all classes are equally probable: no temperature changes that
                scalings.append(None)
            else:
                scalings.append(scaling)
    for side in (fit, test):
        parts = zip(scalings, use, strict=True)
        scaled = [
            side.probs[part] if one is None else one.predict_proba(side.probs[part])
            for one, part in parts
        ]
        yield side.changed(np.concatenate(scaled))


def _cheapest(fit: _Predictions, weights: Array, passing: float) -> float:
    """Return the threshold of the confidence at which predictions cost least."""
    sure = fit.confidence.ravel()
    order = np.argsort(-sure, kind="stable")
    gain = (np.repeat(weights, fit.confidence.shape[1]) * (passing - ~fit.correct.ravel()))[order]
    saved = np.cumsum(gain)
    last = np.append(np.diff(sure[order]) < 0, True)  # equal confidences go together
    best = int(np.where(last, saved, -np.inf).argmax())
    return float(sure[order][best]) if saved[best] > 0 else np.inf


def _curves(outcome: _Outcome, weights: Array, passing: float) -> dict[str, Any]:
    """Return means over samples at each element, and of all."""
    acted, wrong = outcome.acted, ~outcome.correct
    each = np.repeat(weights, acted.shape[1])
    pair = torch.from_numpy(outcome.confidence), torch.from_numpy(outcome.correct)
    pooled = ece(pair[0].flatten(), pair[1].flatten(), weights=torch.from_numpy(each))
    found = {
        "accuracy": outcome.correct.mean(1),
        "confidence": outcome.confidence.mean(1),
        "ece": ece(*pair).numpy(),
        "answered": acted.mean(1),
        "risk": (acted & wrong).sum(1) / np.where(acted.any(1), acted.sum(1), np.nan),
        "cost": np.where(acted, wrong, passing).mean(1),
        "pooled_ece": float(pooled),
        "threshold": outcome.threshold,
    }
    if outcome.contains is not None and outcome.size is not None:
        found |= {"coverage": outcome.contains.mean(1), "size": outcome.size.mean(1)}
    return found


@dataclass(frozen=True)
class Remedy:
    """What a remedy gains and costs.

    Attributes:
        name: What to do.
        gain: By how much a prediction is cheaper, mean over samples and the orbit.
        low: Lower end of its interval, corrected for all remedies of the model.
        high: Upper end.
        helps: Whether the interval is above 0.
        passes: Passes of the model for one prediction.
        needs: What it needs beside that.
        before: `cost`, `accuracy`, `pooled_ece`, `answered` and `risk` without it, means over the
            orbit; for tasks other than classification the `score`.
        after: The same with it.
        change: The arguments of `what_if` that make it.
        code: Python that does it.
    """

    name: str
    gain: float
    low: float
    high: float
    helps: bool
    passes: int
    needs: str
    before: dict[str, float]
    after: dict[str, float]
    change: dict[str, Any]
    code: str

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in plain values."""
        return asdict(self)

    def __str__(self) -> str:
        ends = f"[{number(self.low)}, {number(self.high)}]"
        said = f"{self.name}: {_unit(self)} less by {number(self.gain)} {ends}"
        for name, words in (
            ("accuracy", "accuracy"),
            ("pooled_ece", "ECE"),
            ("answered", "acts on"),
        ):
            if name in self.before and abs(self.after[name] - self.before[name]) >= 0.005:
                said += f"; {words} {_share(self.before[name])} to {_share(self.after[name])}"
        return f"{said}; {counted(self.passes, 'pass').replace('passs', 'passes')}, {self.needs}"


@dataclass(frozen=True)
class Expectation:
    """A remedy that needs training: what to expect from it, by the studies; nothing is measured.

    Attributes:
        name: What to do.
        expect: What the studies found.
        link: The page that shows it.
        code: Python that does it.
    """

    name: str
    expect: str
    link: str
    code: str


@dataclass(frozen=True)
class Advice:
    """Advice on one model of a scan.

    Attributes:
        model: Its name.
        verdict: "helps" if a remedy is shown to help, "nothing to do" if none gains more than the
            margin, "not enough samples" if that cannot be told.
        sentence: The verdict with its numbers.
        remedies: All that apply, best first; `Remedy.helps` says which are shown to help.
        expectations: What training might do; empty if nothing is to do.
        missing: What was not tried, and why.
    """

    model: str
    verdict: str
    sentence: str
    remedies: tuple[Remedy, ...]
    expectations: tuple[Expectation, ...] = ()
    missing: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in plain values."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"{self.model}: {self.sentence}"]
        shown = [one for one in self.remedies if one.helps]
        lines += [f"{place}. {one}" for place, one in enumerate(shown, 1)]
        lines += [f"expected: {one.name} ({one.link})" for one in self.expectations]
        return "\n".join([*lines, *(f"not tried: {why}" for why in self.missing)])


def advise(
    scan: Scan | xr.Dataset,
    *,
    passing: float = 0.5,
    coverage: float = 0.9,
    margin: float = 0.02,
    level: float = 0.95,
    seed: int = 0,
    most: int = 4000,
) -> list[Advice]:
    """Say what would help each model of a scan, with its measured gain, its interval and its cost.

    Tried are temperatures (fitted at the identity, on the whole orbit, at each position), a fitted
    threshold of the confidence, prediction sets, averages over part or all of the orbit, and such
    averages with a temperature. One half of the samples fits them, the other half judges them by
    the cost of a prediction over the orbit: an error costs 1, and passing on predictions of a
    confidence below `1 - passing` costs `passing`. For tasks other than classification the score of
    the average over the orbit is compared with that of the model.

    The gain of a sample is the mean over its orbit, so samples are independent, and intervals
    (`orbical.calibration.bounded_mean_interval`) hold at every number of them. With
    probability `level` no remedy of a model is said to help that does not. Remedies that are not
    shown to be worse than the best come first, the cheapest of them before the others.

    Args:
        scan: a labeled scan, or its `data`; with `keep="probabilities"` for most remedies.
        passing: the cost of passing a prediction on to a person, relative to that of an error.
        coverage: that of the prediction sets.
        margin: a gain that is too small to matter; for unbounded scores, relative to their mean.
        level: nominal coverage of the intervals of all remedies of a model together.
        seed: seed of the halves.
        most: use at most so many samples, drawn at random.

    Returns:
        The advice on each model.

    Raises:
        InputError: if the scan has no labels.

    Example:
        >>> import orbical as ob
        >>> images, labels = ob.datasets.digits()
        >>> def brightness(images):  # the same at all rotations, and never sure
        ...     return torch.zeros(len(images), 10)
        >>> scan = ob.scan(brightness, (images, labels), group="cyclic:4", task="classification",
        ...                keep="probabilities", progress=False)
        >>> ob.advise(scan)[0].verdict
        'nothing to do'
    """
    arrays = arrays_of(scan)
    checked_level(level)
    if not arrays.has_responses("score"):
        raise InputError("scan", "labels", "none", remedy="scan with (inputs, labels)")
    if not (arrays.has_responses("correct") and arrays.has_responses("confidence")):
        return [_of_scores(arrays, model, margin, level) for model in range(len(arrays.models))]
    _checked(Change(), arrays, passing)
    changes, missing = _changes(arrays, coverage)
    return [
        _of_classes(arrays, model, changes, missing, passing, margin, level, seed, most)
        for model in range(len(arrays.models))
    ]


def _changes(arrays: ScanArrays, coverage: float) -> tuple[list[Change], tuple[str, ...]]:
    """Return the changes that a scan allows, cheapest first, and what it does not allow."""
    reject, missing = Change(reject="fitted"), []
    if "probabilities" not in arrays or "label" not in arrays:
        return [reject], ("temperatures, averages and sets, as keep='probabilities' is missing",)
    fitted = [Change(recalibrate=where) for where in RECALIBRATED]
    changes = [fitted[0], reject, *fitted[1:], Change(coverage=coverage)]
    size = len(arrays.group)
    if arrays.group.closed and size > 1:
        partial = tuple(arrays.group.coords) == ("angle",)  # evenly spaced ones are a group
        divisors = [n for n in range(2 if partial else size, size + 1) if size % n == 0]
        places = np.unique(np.linspace(0, len(divisors) - 1, 3).round().astype(int))
        for chosen in (divisors[place] for place in places):
            changes += [Change(chosen), Change(chosen, "pooled")]
    elif size > 1:
        missing.append(f"averages, as {arrays.group.spec} is not closed")
    return changes, tuple(missing)


def _of_classes(
    arrays: ScanArrays,
    model: int,
    changes: Sequence[Change],
    missing: tuple[str, ...],
    passing: float,
    margin: float,
    level: float,
    seed: int,
    most: int,
) -> Advice:
    """Advise on one classifier."""
    fit, test = _halves(arrays, model, 0.5, seed, most)
    count = fit.correct.shape[1] + test.correct.shape[1]
    if count < LEAST:
        return _too_few(arrays.models[model], count, missing)
    outcomes = [_outcome(one, fit, test, arrays, passing) for one in (Change(), *changes)]
    before, *states = (_state(one, arrays, passing) for one in outcomes)
    losses = np.stack([one.loss(arrays.weights, passing) for one in outcomes])
    gains = losses[:1] - losses[1:]
    ends = bounded_mean_interval(gains, 1 - (1 - level) / len(changes), low=-1.0, high=1.0)
    remedies = [
        _remedy(change, arrays, each, before, state)
        for change, state, *each in zip(changes, states, *ends, strict=True)
    ]
    drop = _share(before["accuracy_at_identity"]), _share(before["accuracy"])
    now = (
        f"{drop[0]} correct at the identity and {drop[1]} over the orbit, acting on "
        f"{_share(before['answered'])} of the predictions; cost {number(before['cost'])} a "
        f"prediction (an error costs 1, passing one on {number(passing)}; {len(test.correct[0])} "
        "samples judge)"
    )
    return _advice(arrays.models[model], now, remedies, gains, margin, level, missing)


def _of_scores(arrays: ScanArrays, model: int, margin: float, level: float) -> Advice:
    """Advise on a model of another task: would the average over the orbit score better?"""
    name, size = arrays.models[model], len(arrays.group)
    about = arrays.attributes("score")
    better = bool(about.get("higher_is_better", True))
    blocks = arrays.sample_blocks("score", model=model)
    score = np.concatenate([over_orbit(part, arrays.weights) for _, (part,) in blocks])
    if "consensus_vs_truth" not in arrays:
        return Advice(name, "nothing to do", "no average over the orbit is stored", ())
    average = arrays.read("consensus_vs_truth", model=model).astype(np.float64)
    known = np.isfinite(score) & np.isfinite(average)
    if known.sum() < LEAST:
        return _too_few(name, int(known.sum()), ())
    gains = ((average - score) if better else (score - average))[None, known]
    if about.get("units") == "share":
        gain, low, high = bounded_mean_interval(gains, level, low=-1.0, high=1.0)
    else:
        counts, squares = np.full(1, known.sum()), np.square(gains).sum(1)
        gain, low, high = interval_of_sums(counts, gains.sum(1), squares, level)
        margin *= float(np.abs(score[known]).mean())
    states = [{"score": float(values[known].mean())} for values in (score, average)]
    remedy = _remedy(Change(size), arrays, (gain[0], low[0], high[0]), states[0], states[1])
    now = f"{arrays.score} {number(states[0]['score'])} over the orbit ({known.sum()} samples)"
    return _advice(name, now, [remedy], gains, margin, level, ())


def _remedy(
    change: Change,
    arrays: ScanArrays,
    gain: Sequence[float],
    before: dict[str, float],
    after: dict[str, float],
) -> Remedy:
    """Describe a change with its gain and the ends of its interval."""
    mean, low, high = map(float, gain)
    return Remedy(
        name=_name(change, arrays.group),
        gain=mean,
        low=low,
        high=high,
        helps=low > 0,
        passes=change.average,
        needs=_needs(change),
        before=before,
        after=after,
        change=asdict(change),
        code=_code(change, arrays.group),
    )


def _too_few(model: str, count: int, missing: tuple[str, ...]) -> Advice:
    need = f"{counted(count, 'finished sample')}; {LEAST} at least are needed to fit and to judge"
    return Advice(model, "not enough samples", f"not enough samples: {need}", (), (), missing)


def _advice(
    model: str,
    now: str,
    remedies: Sequence[Remedy],
    gains: Array,
    margin: float,
    level: float,
    missing: tuple[str, ...],
) -> Advice:
    """Order the remedies, and say what follows; `gains` `[R, n]` are those of each sample."""
    order = _ranked(remedies, gains, level)
    ranked = tuple(remedies[place] for place in order)
    best = max(remedies, key=lambda one: one.high)
    if any(one.helps for one in remedies):
        first = next(one for one in ranked if one.helps)
        verdict = "helps"
        text = f"{first.name} helps, and nothing that costs more is shown to help more"
    elif best.high <= margin:
        verdict = text = "nothing to do"
        text += f": no remedy gains more than {number(best.high)}"
    else:
        verdict = text = "not enough samples"
        text += f" to tell: {best.name} may gain up to {number(best.high)}, and is not shown to"
    found = _EXPECTATIONS if verdict == "helps" else ()
    return Advice(model, verdict, f"{now}. {text[0].upper()}{text[1:]}.", ranked, found, missing)


def _ranked(remedies: Sequence[Remedy], gains: Array, level: float) -> list[int]:
    """Return remedies that are not shown to be worse than the best, cheapest first; then others.

    Remedies are given with the cheapest first.
    """
    helping = [place for place, one in enumerate(remedies) if one.helps]
    others = sorted(range(len(remedies)), key=lambda place: -remedies[place].gain)
    if not helping:
        return others
    best = max(helping, key=lambda place: remedies[place].gain)
    behind = bounded_mean_interval(_scaled(gains[best] - gains[helping]), level, low=-1.0)[1]
    ties = [place for place, low in zip(helping, behind, strict=True) if low <= 0]
    ties.sort(key=lambda place: remedies[place].passes)
    return [*ties, *(place for place in others if place not in ties)]


def _scaled(values: Array) -> Array:
    """Return values between -1 and 1, with their signs."""
    return np.asarray(values / max(1.0, float(np.abs(values).max(initial=0.0))))


def _state(outcome: _Outcome, arrays: ScanArrays, passing: float) -> dict[str, float]:
    """Return means over samples and the orbit."""
    weights = arrays.weights
    curves = _curves(outcome, weights, passing)
    answered = float(weights @ outcome.acted.mean(1))
    wrong = float(weights @ (outcome.acted & ~outcome.correct).mean(1))
    state = {
        "cost": float(weights @ curves["cost"]),
        "accuracy": float(weights @ curves["accuracy"]),
        "accuracy_at_identity": float(curves["accuracy"][arrays.group.identity]),
        "pooled_ece": curves["pooled_ece"],
        "answered": answered,
        "risk": wrong / answered if answered else float("nan"),
    }
    for name in {"coverage", "size"} & {*curves}:
        state[name] = float(weights @ curves[name])
    return state


def _name(change: Change, group: Group) -> str:
    """Say what a change is."""
    said = []
    if change.average > 1:
        said.append(f"average over {_part(group, change.average)}")
    if change.recalibrate:
        where = {"identity": "at the identity", "pooled": "on the whole orbit"}
        said.append(f"a temperature fitted {where.get(change.recalibrate, 'at each position')}")
    if change.reject == "fitted":
        said.append("pass on predictions below a fitted confidence")
    if change.coverage is not None:
        said.append(f"sets of {percent(change.coverage)} coverage, acting on single classes")
    return ", then ".join(said)


def _needs(change: Change) -> str:
    """Say what a change needs beside passes."""
    if change.recalibrate == "position":
        return "held-out labels at each position, which must be known in use"
    if change.recalibrate == "identity":
        return "held-out labels"
    fits = change.recalibrate or change.reject == "fitted" or change.coverage is not None
    return "held-out labels with their orbits" if fits else "no labels"


def _code(change: Change, group: Group) -> str:
    """Write Python that makes a change."""
    lines = ["import orbical as ob"]
    if change.average > 1:
        lines.append(f"model = ob.predictors.OrbitAverage(model, {_part(group, change.average)!r})")
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
    if change.reject == "fitted":
        lines.append("found = ob.advice.what_if(scan, reject='fitted')")
        lines.append("act = confidence >= found['threshold']  # pass on the others")
    if change.coverage is not None:
        lines.append(f"sets = ob.conformal.LAC({change.coverage}, outputs='probabilities')")
        lines.append("sets.fit(held_out_probs, held_out_labels)  # [N, K, C], along orbits")
        lines.append("act = sets.predict_set(new_probs).sum(-1) == 1")
    return "\n".join(lines)


def _part(group: Group, number: int) -> str:
    """Name a group of evenly spaced rotations of another, or that group itself."""
    return group.spec if number == len(group) else f"{group.spec.partition(':')[0]}:{number}"


def _unit(remedy: Remedy) -> str:
    return "cost" if "cost" in remedy.before else "error"


def _share(value: float) -> str:
    return percent(value, 1).replace("%", " %")


_EXPECTATIONS = (
    Expectation(
        "train with random elements of the group (augmentation)",
        "removes most of the loss over the orbit, at some cost upright",
        "docs/studies/digits-nero.md",
        "from torchvision.transforms import v2\ntransform = v2.RandomRotation(180)",
    ),
    Expectation(
        "build the symmetry in: an invariant network or head",
        "the same prediction along the whole orbit; whether it is more accurate than augmentation "
        "depends on the data",
        "docs/studies/point-clouds.md",
        "import orbical as ob\nnet = ob.zoo.group_cnn.GroupCNN(...)",
    ),
    Expectation(
        "a calibration loss, interleaved with the likelihood",
        "less calibration error than the likelihood alone; one temperature did as well or better "
        "in most settings",
        "docs/studies/esd.md",
        "import orbical as ob\nobjective = ob.training.interleaved(ob.losses.esd, weight=1.0)",
    ),
)
