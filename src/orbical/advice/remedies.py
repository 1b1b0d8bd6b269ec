"""Remedies of a scanned model, ranked by what they gain on samples they were not fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .._lazy import xr
from .._text import counted, number, percent
from ..calibration import bounded_mean_interval, checked_level, unbounded_mean_interval
from ..errors import InputError
from ..groups import Group
from ..nero import mean_of_curves
from ..store import Scan, ScanArrays, arrays_of
from .what_if_changes import (
    RECALIBRATED,
    Change,
    ChangeOutcome,
    advised_group,
    checked_remedy,
    rows_to_advise_on,
    trial_of_changes,
    what_if_change_code,
)

Array = np.ndarray

LEAST = 40
"""Samples of a model below which nothing is said: neither half could tell."""

LEAST_ANSWERED = 0.05
"""The share of predictions that a remedy acts on at least: others are the same as no model."""

_NO_CODE = f"# acts on less than {percent(LEAST_ANSWERED)} of the predictions: as good as no model"


@dataclass(frozen=True)
class Remedy:
    """What a remedy gains and costs.

    Attributes:
        name: What to do.
        gain: By how much a prediction is cheaper, mean over samples and the orbit.
        low: Lower end of its interval, corrected for all remedies of the model.
        high: Upper end.
        helps: Whether the interval is above 0, and the model is then of use: it acts on 5 % of the
            predictions or more, and is shown to cost less than passing all of them on.
        passes: Passes of the model for one prediction.
        needs: What it needs beside that.
        before: `cost`, `accuracy`, `pooled_ece`, `answered` and `risk` without it, means over the
            orbit; for tasks other than classification the `score`.
        after: The same with it.
        change: The arguments of `what_if` that make it.
        code: Python that does it; a comment if it acts on fewer than 5 % of the predictions.
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
    change: dict[str, object]
    code: str

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in plain values."""
        return asdict(self)

    def __str__(self) -> str:
        ends = f"[{number(self.low)}, {number(self.high)}]"
        unit = "cost" if "cost" in self.before else "error"
        said = f"{self.name}: {unit} less by {number(self.gain)} {ends}"
        words = {"accuracy": "accuracy", "pooled_ece": "ECE", "answered": "acts on"}
        for name, word in words.items():
            if name in self.before and abs(self.after[name] - self.before[name]) >= 0.005:
                said += f"; {word} {_share(self.before[name])} to {_share(self.after[name])}"
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
            margin, "not enough samples" if that cannot be told, "nothing helps" if nothing that
            costs less is better than passing all predictions on, "nothing to try" if no remedy
            applies.
        sentence: The verdict with its numbers.
        remedies: All that apply, best first, and last those that pass nearly everything on;
            `Remedy.helps` says which are shown to help.
        expectations: What training might do; empty if nothing is shown to be wrong.
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
    """Describe what would help each model of a scan: measured gain, its interval and its cost.

    Tried are temperatures (fitted at the identity, on the whole orbit, at each position), a fitted
    threshold of the confidence, prediction sets, averages over part or all of the orbit, and such
    averages with a temperature. One half of the samples fits them, the other half judges them by
    the cost of a prediction over the orbit: an error costs 1, and passing on predictions of a
    confidence below `1 - passing` costs `passing`. Where a detector finds nothing, its confidence
    is 0. For tasks other than classification the score of
    the average over the orbit is compared with that of the model.

    The gain of a sample is the mean over its orbit, so samples are independent, and intervals
    (`orbical.calibration.bounded_mean_interval`) hold at every number of them. With
    probability `level` no remedy of a model is said to help that does not. Nor is one that passes
    nearly all predictions on: it has to cost less than using no model, too. Remedies that are not
    shown to be worse than the best come first, the cheapest of them before the others. Intervals of
    scores without bounds (`unbounded_mean_interval`) are approximate. `passing` and `margin` are
    choices, not estimates: set them to what an error and a change cost in your use.

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
        >>> import orbical as ob, torch
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
        raise InputError(
            "scan",
            "data with the truth, such as labels, by which predictions are judged",
            f"a scan of {arrays.task} without it",
            remedy="pass the scan (inputs, truth)",
        )
    if not (arrays.has_responses("correct") and arrays.has_responses("confidence")):
        return [
            _advice_from_scores(arrays, model, margin, level) for model in range(len(arrays.models))
        ]
    checked_remedy(Change(), arrays, passing)
    changes, missing = _remedies_to_try(arrays, coverage)
    return [
        _advice_from_classes(arrays, model, changes, missing, passing, margin, level, seed, most)
        for model in range(len(arrays.models))
    ]


def _remedies_to_try(arrays: ScanArrays, coverage: float) -> tuple[list[Change], tuple[str, ...]]:
    """Return the changes that a scan allows, cheapest first, and what it does not allow."""
    reject, refused = Change(reject="fitted"), _why_no_average(arrays.group)
    if "probabilities" not in arrays or "label" not in arrays:
        return [reject], (
            "temperatures, averages and sets, which need one label a sample and a scan with "
            "--keep probabilities (in Python keep='probabilities')",
        )
    fitted = [Change(recalibrate=where) for where in RECALIBRATED]
    changes = [fitted[0], reject, *fitted[1:], Change(coverage=coverage)]
    size = len(arrays.group)
    if not refused:
        partial = tuple(arrays.group.coords) == ("angle",)  # evenly spaced ones are a group
        divisors = [n for n in range(2 if partial else size, size + 1) if size % n == 0]
        places = np.unique(np.linspace(0, len(divisors) - 1, 3).round().astype(int))
        for chosen in (divisors[place] for place in places):
            changes += [Change(chosen), Change(chosen, "pooled")]
    return changes, (refused,) if refused else ()


def _why_no_average(group: Group, without_mean: str = "") -> str:
    """Return why no average over the orbit is tried; empty if it is."""
    if without_mean:
        return f"averages, as none is made of such outputs of the task {without_mean}"
    if len(group) == 1:
        return f"averages, as {group.spec} has one element"
    return "" if group.closed else f"averages, as {group.spec} is not closed"


def _advice_from_classes(
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
    rows = rows_to_advise_on(arrays, model, seed, most)
    if len(rows) < LEAST:
        return _too_few(arrays, model, len(rows), missing)
    trial = trial_of_changes(arrays, model, rows, passing, 0.5, seed)
    outcomes = [trial.outcome(change) for change in (Change(), *changes)]
    before, *states = (_means_after_remedy(outcome, arrays.group.identity) for outcome in outcomes)
    losses = np.stack([outcome.losses() for outcome in outcomes])
    gains = losses[:1] - losses[1:]
    corrected = 1 - (1 - level) / len(changes)
    ends = bounded_mean_interval(gains, corrected, low=-1.0, high=1.0)
    over_none = bounded_mean_interval(
        passing - losses[1:], corrected, low=passing - 1, high=passing
    )
    acting = np.array([_acts(state) for state in states])
    at_least, at_most = (
        np.where(acting, np.minimum(*both), 0.0)
        for both in zip(ends[1:], over_none[1:], strict=True)
    )
    remedies = [
        _remedy(change, arrays, each, before, state, helps)
        for change, state, helps, *each in zip(changes, states, at_least > 0, *ends, strict=True)
    ]
    drop = _share(before["accuracy_at_identity"]), _share(before["accuracy"])
    now = (
        f"on the half of the samples that judges ({len(trial.test.labels)}), {drop[0]} correct at "
        f"the identity and {drop[1]} over the orbit, acting on "
        f"{_share(before['answered'])} of the predictions; cost {number(before['cost'])} a "
        f"prediction (an error costs 1, passing one on {number(passing)})"
    )
    return _advice_from_remedies(
        arrays.models[model], now, remedies, gains, at_most, margin, level, missing
    )


def _advice_from_scores(arrays: ScanArrays, model: int, margin: float, level: float) -> Advice:
    """Advise on a model of another task: would the average over the orbit score better?"""
    name, size = arrays.models[model], len(arrays.group)
    about = arrays.attributes("score")
    better = bool(about.get("higher_is_better", True))
    blocks = arrays.sample_blocks("score", model=model)
    score = np.concatenate([mean_of_curves(part, arrays.weights) for _, (part,) in blocks])
    has_mean = arrays.attributes("consensus_vs_truth").get("averaged")
    if refused := _why_no_average(arrays.group, "" if has_mean else arrays.task):
        return Advice(name, "nothing to try", f"nothing to try: no {refused}", (), (), (refused,))
    average = arrays.read("consensus_vs_truth", model=model).astype(np.float64)
    known = np.isfinite(score) & np.isfinite(average)
    if known.sum() < LEAST:
        return _too_few(arrays, model, int(known.sum()), ())
    gains = ((average - score) if better else (score - average))[None, known]
    if about.get("units") == "share":
        gain, low, high = bounded_mean_interval(gains, level, low=-1.0, high=1.0)
    else:
        gain, low, high = unbounded_mean_interval(gains, level)
        margin *= float(np.abs(score[known]).mean())
    states = [{"score": float(values[known].mean())} for values in (score, average)]
    ends = gain[0], low[0], high[0]
    remedy = _remedy(Change(size), arrays, ends, states[0], states[1], low[0] > 0)
    now = f"{arrays.score} {number(states[0]['score'])} over the orbit ({known.sum()} samples)"
    return _advice_from_remedies(name, now, [remedy], gains, high, margin, level, ())


def _remedy(
    change: Change,
    arrays: ScanArrays,
    gain: Sequence[float],
    before: dict[str, float],
    after: dict[str, float],
    helps: bool,
) -> Remedy:
    """Describe a change with its gain and the ends of its interval."""
    mean, low, high = map(float, gain)
    return Remedy(
        name=_remedy_name(change, arrays.group),
        gain=mean,
        low=low,
        high=high,
        helps=bool(helps),
        passes=change.average,
        needs=_change_needs(change),
        before=before,
        after=after,
        change=asdict(change),
        code=what_if_change_code(change, arrays.group) if _acts(after) else _NO_CODE,
    )


def _acts(state: dict[str, float]) -> bool:
    """Check whether a model acts on enough predictions to be one; scores are not passed on."""
    return state.get("answered", 1.0) >= LEAST_ANSWERED


def _too_few(arrays: ScanArrays, model: int, count: int, missing: tuple[str, ...]) -> Advice:
    verdict = "not enough samples"
    text = (
        f"{verdict}: {count} of {counted(arrays.samples, 'sample')} have a score at every element; "
        f"at least {LEAST} are needed to fit and to judge"
    )
    return Advice(arrays.models[model], verdict, text, (), (), missing)


def _advice_from_remedies(
    model: str,
    now: str,
    remedies: Sequence[Remedy],
    gains: Array,
    at_most: Array,
    margin: float,
    level: float,
    missing: tuple[str, ...],
) -> Advice:
    """Order the remedies, and say what follows.

    `gains` `[R, n]` are those of each sample, `at_most` `[R]` what remedies that act may gain, also
    over passing all predictions on.
    """
    order = _ranked_remedies(remedies, gains, level)
    ranked = tuple(remedies[place] for place in order)
    if any(one.helps for one in remedies):
        first = next(one for one in ranked if one.helps)
        verdict = "helps"
        text = f"{first.name} helps, and nothing that costs more is shown to help more"
    elif at_most.max() > margin:
        verdict = text = "not enough samples"
        name = remedies[int(at_most.argmax())].name
        text += f" to tell: {name} may gain up to {number(at_most.max())}, and is not shown to"
    elif any(one.high > margin for one in remedies):
        verdict = text = "nothing helps"
        text += (
            f": no remedy that acts on {percent(LEAST_ANSWERED)} of the predictions or more costs "
            f"less than passing all of them on by more than {number(margin)}"
        )
    else:
        verdict = text = "nothing to do"
        text += f": no remedy gains more than {number(max(one.high for one in remedies))}"
    found = _EXPECTATIONS if "helps" in verdict else ()
    return Advice(model, verdict, f"{now}. {text[0].upper()}{text[1:]}.", ranked, found, missing)


def _ranked_remedies(remedies: Sequence[Remedy], gains: Array, level: float) -> list[int]:
    """Return remedies that are not shown to be worse than the best, cheapest first; then others.

    Remedies are given with the cheapest first.
    """
    helping = [place for place, one in enumerate(remedies) if one.helps]
    # Those that pass nearly everything on come last, whatever that saves.
    others = sorted(
        range(len(remedies)),
        key=lambda place: (not _acts(remedies[place].after), -remedies[place].gain),
    )
    if not helping:
        return others
    best = max(helping, key=lambda place: remedies[place].gain)
    if len(helping) == 1:
        return [best, *(place for place in others if place != best)]
    # Two gains differ by the costs after each remedy, from 0 to 1; other tasks have one remedy.
    behind = bounded_mean_interval(gains[best] - gains[helping], level, low=-1.0, high=1.0)[1]
    ties = [place for place, low in zip(helping, behind, strict=True) if low <= 0]
    ties.sort(key=lambda place: remedies[place].passes)
    return [*ties, *(place for place in others if place not in ties)]


def _means_after_remedy(outcome: ChangeOutcome, identity: int) -> dict[str, float]:
    """Return means over samples and the orbit."""
    curves, weights = outcome.curves(), outcome.weights
    answered = float(weights @ curves["answered"])
    wrong = float(weights @ (outcome.acted & ~outcome.correct).mean(1))
    state = {
        "cost": float(weights @ curves["cost"]),
        "accuracy": float(weights @ curves["accuracy"]),
        "accuracy_at_identity": float(curves["accuracy"][identity]),
        "pooled_ece": curves["pooled_ece"],
        "answered": answered,
        "risk": wrong / answered if answered else float("nan"),
    }
    sets = (name for name in ("coverage", "size") if name in curves)
    return state | {name: float(weights @ curves[name]) for name in sets}


def _remedy_name(change: Change, group: Group) -> str:
    """Describe what a change is."""
    said = []
    if change.average > 1:
        said.append(f"average over {advised_group(group, change.average)}")
    if change.recalibrate:
        where = {"identity": "at the identity", "pooled": "on the whole orbit"}
        said.append(f"a temperature fitted {where.get(change.recalibrate, 'at each position')}")
    if change.reject == "fitted":
        said.append("pass on predictions below a fitted confidence")
    if change.coverage is not None:
        said.append(f"sets of {percent(change.coverage)} coverage, acting on single classes")
    return ", then ".join(said)


def _change_needs(change: Change) -> str:
    """Describe what a change needs beside passes."""
    if change.recalibrate == "position":
        return "held-out labels at each position, which must be known in use"
    if change.recalibrate == "identity":
        return "held-out labels"
    fits = change.recalibrate or change.reject == "fitted" or change.coverage is not None
    return "held-out labels with their orbits" if fits else "no labels"


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
        "a calibration loss on held-out batches, beside cross-entropy",
        "less calibration error than cross-entropy; a single temperature did as well or better in "
        "most settings",
        "docs/studies/esd.md",
        "import orbical as ob\nobjective = ob.training.interleaved(ob.losses.esd, weight=1.0)",
    ),
)
