"""Check a scan, or saved outputs, against thresholds: pass, fail, or too few samples to tell.

Thresholds are set by keyword, or in the table `[tool.orbical.check]` of `pyproject.toml`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import numpy as np

from . import calibration, nero
from ._lazy import xr
from ._text import counted, number
from .data import OUTPUT_SUFFIXES, read_outputs
from .errors import (
    InputError,
    StoreError,
    check_name,
    number_of_bins,
    real_number,
    unknown_name,
    whole_number,
)
from .groups import PLACES
from .store import FINISHED, Scan, ScanArrays, arrays_of, is_scan, load

__all__ = ["Check", "check", "configured_check"]

_ALIASES = {"mahalanobis": "mahalanobis_calibration", "bleed": "aleatoric_bleed"}
_WHOLE = {
    "gap": "invariance gap",
    "changed": "predictions that change on the orbit",
    "accuracy_drop": "loss of accuracy from the identity to the worst element",
    "energy_gap": "gap of the energy in eV",
    "forces_gap": "gap of the forces in eV/Å",
    "dipole_gap": "gap of the dipole in e·Å",
    "stress_gap": "gap of the stress in eV/Å³",
}
"""Quantities of the whole orbit, which have no place; the last are those of the task atoms."""
_AVERAGED = {
    "gap": "invariance_gap",
    "accuracy_drop": "correct",
    "accuracy": "correct",
    "score": "score",
}
"""What is averaged over samples."""
_RANGES = {"accuracy": (0.0, 1.0), "accuracy_drop": (-1.0, 1.0), "changed": (0.0, 1.0)}
"""The ranges of what is counted."""
_SEEN = 0.1
"""How common a failure must be that samples of an unbounded quantity would have shown."""
_STATES = {"pass": "pass", "fail": "FAIL", "inconclusive": "inconclusive"}


@dataclass(frozen=True)
class Check(calibration.Verdict):
    """One threshold, checked for one model: a verdict, and what it is about.

    Attributes:
        name: the name of the threshold, such as "max_ece".
        model: the name of the model.
        what: what was measured, in words.
        samples: the number of samples.
        failed: on how many of them the model failed.
        needed: of an inconclusive check, about how many samples would decide, with a probability of
            80 % if further ones are like these; None if no number would, or it is not known.
    """

    name: str
    model: str
    what: str
    samples: int
    failed: int = 0
    needed: int | None = None

    def __str__(self) -> str:
        failed = f", {self.failed} with failures" if self.failed else ""
        return (
            f"{_STATES[self.outcome]} {self.model}: {self.what} {self.numbers} "
            f"({self.name}, {counted(self.samples, 'sample')}{failed}"
            f"{self.outlook and '; '}{self.outlook}){self.said}"
        )

    @property
    def outlook(self) -> str:
        """What it would take to decide an inconclusive check, in words."""
        if self.outcome != "inconclusive":
            return ""
        if self.needed is not None and not self.low <= self.limit <= self.high:
            fewer = f"fewer than {self.needed:,} decide nothing"
            return f"{fewer}: they may miss a failure of one in ten"
        if self.needed is not None:
            return f"about {self.needed:,} samples would decide"
        if np.isnan(self.low):
            return "without an interval nothing is decided"
        return f"too close to {number(self.limit)} for any number to decide"


_Judged = tuple[calibration.Verdict, int | None]
"""A verdict, and how many samples would decide it where more than its width tells."""


class _CheckRule(NamedTuple):
    """A threshold: a measure, "score" or a quantity of the orbit, at a place."""

    name: str
    quantity: str
    place: str
    what: str
    limit: dict[str, Any]
    value: float

    @property
    def variable(self) -> str:
        """The array of responses that a mean is of."""
        gap = f"{self.quantity.partition('_gap')[0]}_vs_consensus"
        return _AVERAGED.get(self.quantity, gap)

    @property
    def of_means(self) -> bool:
        """Whether it limits a mean over samples, for which no measure, and no torch, is needed."""
        return self.place != "pooled" and self.quantity in {*_WHOLE, *_AVERAGED}

    @property
    def of_squares(self) -> bool:
        """Whether it limits the root of a mean of squares."""
        return self.quantity.endswith("gap")


class _Draws(TypedDict):
    """How measures are computed."""

    bins: int
    level: float
    resamples: int


def check(
    scan: Scan | xr.Dataset | str | Path,
    /,
    *,
    models: Collection[str] | None = None,
    bins: int = 15,
    level: float = 0.95,
    resamples: int = calibration.RESAMPLES,
    **thresholds: float,
) -> list[Check]:
    """Check each model of a finished scan, or saved outputs, against thresholds.

    The name of a threshold is `max_` or `min_` and "gap", "changed", "accuracy_drop", "energy_gap"
    (or another quantity of atoms), "score" or any registered measure; the last two are means over
    the orbit, unless "worst_", "identity_" or "pooled_" stands before them, as in `max_worst_ece`.
    Of atoms `max_gap` limits the gap of every scanned quantity, each in its unit and in a row of
    its own, except those with a limit of their own.

    Intervals of bounded means (accuracy, changes, scores and gaps that are shares) hold at every
    number of samples, and contain what failures may be too rare for the sample. Other means need
    so many samples that a failure of one in ten would have been seen. Below that, and wherever an
    interval contains the threshold, the check is inconclusive and says how many samples would
    decide.

    Args:
        scan: a finished scan, its `data`, its path, or the path of outputs in an `.npz` file, which
            have no orbit: with `logits` or `probs`, and `labels`; or `mean`, `variance` and
            `target`.
        models: the names of the models to check; all by default.
        bins: number of bins of binned measures.
        level: nominal coverage of the intervals.
        resamples: number of draws of each interval.
        thresholds: the thresholds by name.

    Returns:
        A row for each threshold and model; `pandas.DataFrame(rows)` is a table of them.

    Raises:
        InputError: if a threshold is unknown or out of its range, or the scan lacks what it needs.
        StoreError: if the scan is unfinished.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, (images[:50], labels[:50]), group="cyclic:4",
        ...                task="classification", progress=False)
        >>> [(row.name, row.outcome) for row in ob.check(scan, min_accuracy=0.99, max_gap=1)]
        [('min_accuracy', 'fail'), ('max_gap', 'pass')]

    See Also:
        orbical.calibration.verdict: One measure of a scan against a limit.
    """
    if not thresholds:
        remedy = "set some, such as max_gap=0.02"
        raise InputError("thresholds", "at least one", "none", remedy=remedy)
    rules = [_rule_of_check(name, real_number(name, limit)) for name, limit in thresholds.items()]
    draws = _Draws(
        bins=number_of_bins(bins),
        level=calibration.checked_level(real_number("level", level)),
        resamples=whole_number("resamples", resamples, 1),
    )
    if isinstance(scan, str | Path) and str(scan).endswith(OUTPUT_SUFFIXES):
        return _check_outputs(Path(scan), rules, draws, models or ())
    opened = load(scan) if isinstance(scan, str | Path) else scan
    return _check_scan(opened, rules, draws, models or ())


def configured_check(path: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `check`, and `strict`, from a TOML file and what is given.

    The table is `[tool.orbical.check]`; a missing file has none. What is given takes precedence,
    unless it is None.

    >>> configured_check(Path("no.toml"), {"max_gap": 0.1, "level": None})
    {'max_gap': 0.1}
    """
    table: Any = {}
    if path.is_file():
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:  # of TOML, Unicode or numbers
            raise InputError(path, problem=f"cannot be read as TOML ({error})") from error
    for name in ("tool", "orbical", "check"):
        table = table.get(name, {})
        if not isinstance(table, dict):
            raise InputError(path, "the table [tool.orbical.check]", f"{name} = {table!r}")
    options = {str(name).replace("-", "_"): value for name, value in table.items()}
    options |= {name: value for name, value in given.items() if value is not None}
    if not isinstance(options.get("strict", False), bool):
        raise InputError("strict", "true or false", repr(options["strict"]))
    if not isinstance(options.get("models", []), list):
        raise InputError("models", "a list of names", repr(options["models"]))
    return options


def _rule_of_check(name: str, limit: float) -> _CheckRule:
    side, _, rest = name.partition("_")
    limits = {"maximum" if side == "max" else "minimum": float(limit)}, float(limit)
    if side in ("max", "min") and rest in _WHOLE:
        place = "worst" if rest == "accuracy_drop" else "mean"
        return _CheckRule(name, rest, place, _WHOLE[rest], *limits)
    place, _, measure = rest.partition("_")
    if place not in PLACES:
        place, measure = "mean", rest
    if side in ("max", "min") and measure in ("accuracy", "score") and place != "pooled":
        return _CheckRule(name, measure, place, f"{measure}, {PLACES[place]}", *limits)
    if rest in calibration.MEASURES:
        place, measure = "mean", rest
    measure = _ALIASES.get(measure, measure)
    if side not in ("max", "min") or measure not in calibration.MEASURES:
        side = side if side in ("max", "min") else "max"
        kinds = ("pair", "outputs", "regression", "aleatoric")
        names = *_WHOLE, *_ALIASES, *(entry.name for entry in calibration.list_measures(*kinds))
        named = {f"{side}_{one}" for one in names}
        error = unknown_name("threshold", name, named, cutoff=0.7)  # all begin alike
        own = "(your own measure is known once its module is imported: see the option import)"
        raise error.about("threshold", remedy=f"{error.remedy} {own}".strip())
    what = f"{calibration.MEASURES[measure].title}, {PLACES[place]}"
    return _CheckRule(name, measure, place, what, *limits)


def _check_scan(
    scan: Scan | xr.Dataset, rules: list[_CheckRule], draws: _Draws, models: Collection[str]
) -> list[Check]:
    arrays = arrays_of(scan)
    failed = _failed_in_check(scan, arrays)
    for name in models:
        check_name("model", name, arrays.models)
    own = {rule.name for rule in rules}
    rules = [one for rule in rules for one in _check_rules_by_quantity(rule, arrays, own)]
    for rule in rules:
        calibration.measure_limit(rule.name, rule.value, _bounds(rule, arrays))
    return [
        _check_of(rule, model, arrays.samples, found, failed=failed[model])
        for rule in rules
        for model, found in _verdicts_of_check(scan, rule, draws).items()
        if not models or model in models
    ]


def _check_rules_by_quantity(
    rule: _CheckRule, arrays: ScanArrays, own: set[str]
) -> list[_CheckRule]:
    """Return a limit of the gap as one of every quantity of atoms without a limit of its own.

    Any other rule is returned as it is.
    """
    gaps = {name: what for name, what in _WHOLE.items() if name.endswith("_gap")}
    each = [rule._replace(quantity=name, what=what) for name, what in gaps.items()]
    scanned = [one for one in each if rule.quantity == "gap" and one.variable in arrays]
    if not scanned:
        return [rule]
    return [one for one in scanned if rule.name.replace("gap", one.quantity) not in own]


def _failed_in_check(scan: Scan | xr.Dataset, arrays: ScanArrays) -> dict[str, int]:
    """Return on how many samples each model failed; refuse what is unfinished."""
    if not is_scan(scan):
        for model, name in enumerate(arrays.models):
            blocks = arrays.sample_blocks(FINISHED, model=model)
            missing = sum(int(np.isnan(part).all(1).sum()) for _, (part,) in blocks)
            if missing:  # data do not say whether these failed or are unfinished
                wanted, remedy = f"all samples of {name}", "pass the scan instead of its data"
                raise InputError("scan", wanted, f"{missing} missing", remedy=remedy)
        return dict.fromkeys(arrays.models, 0)
    if not scan.complete:
        state = f"{scan.share_done:.0%} done"
        raise StoreError(f"scan: expected a finished one, got one that is {state}; finish it first")
    return {name: len(failures) for name, failures in scan.failures.items()}


def _check_of(rule: _CheckRule, model: str, samples: int, found: _Judged, **about: Any) -> Check:
    judged, needed = found
    if needed is None and judged.outcome == "inconclusive":  # by its width
        end = judged.high if judged.value < judged.limit else judged.low
        level = 1 - (1 - judged.level) / judged.positions
        ends = judged.value, end, judged.limit
        needed = calibration.samples_to_decide_by_width(*ends, samples, level)
    about = {"name": rule.name, "what": rule.what, **about, **vars(judged)}
    return Check(model=model, samples=samples, needed=needed, **about)


def _check_outputs(
    path: Path, rules: list[_CheckRule], draws: _Draws, models: Collection[str]
) -> list[Check]:
    for name in models:
        check_name("model", name, [path.stem])
    outputs = read_outputs(path)
    kinds = ("regression", "aleatoric") if "mean" in outputs else ("pair", "outputs")
    known = [entry.name for entry in calibration.list_measures(*kinds, listed="table")]
    for rule in rules:
        if rule.place in ("worst", "pooled") or rule.quantity not in calibration.MEASURES:
            got = f"saved outputs in {str(path)!r}, which have no orbit"
            remedy = "set thresholds of measures, such as max_ece"
            raise InputError(rule.name, "a scan for it", got, remedy=remedy)
        if rule.quantity not in known:
            raise unknown_name(f"{rule.name}: of these outputs", rule.quantity, known)
        calibration.measure_limit(rule.name, rule.value, _bounds(rule))
    wanted = {rule.quantity for rule in rules}
    try:
        measured = calibration.measure_table(outputs, **draws, only=wanted)
    except InputError as error:
        if error.argument != "only":
            raise
        raise error.about(str(path)) from error
    level, size = draws["level"], len(next(iter(outputs.values())))
    checked = []
    for rule in rules:
        row, title = measured[rule.quantity], calibration.MEASURES[rule.quantity].title
        if rule.quantity == "accuracy":
            correct = calibration.top_label(**outputs)[1].numpy()
            judged = _check_terms_against_threshold([correct], _bounds(rule), rule, level)
        else:
            ends = float(row.value), float(row.low), float(row.high)
            judged = calibration.judge(*ends, **rule.limit, level=level, caution=row.caution), None
        checked.append(_check_of(rule, path.stem, size, judged, what=title))
    return checked


def _verdicts_of_check(
    scan: Scan | xr.Dataset, rule: _CheckRule, draws: _Draws
) -> dict[str, _Judged]:
    if rule.of_means:
        return _check_verdicts_on_means(scan, rule, draws["level"])
    entry = calibration.MEASURES[rule.quantity]
    options = entry.accepted({"bins": draws["bins"]}) | rule.limit
    options |= {"level": draws["level"], "resamples": draws["resamples"]}
    try:
        judged = calibration.verdict(scan, entry, place=rule.place, **options)
    except InputError as error:
        raise error.about(rule.name) from error
    return {model: (each, None) for model, each in judged.items()}


def _check_verdicts_on_means(
    scan: Scan | xr.Dataset, rule: _CheckRule, level: float
) -> dict[str, _Judged]:
    """Judge a mean over samples of each model."""
    arrays = arrays_of(scan)
    if rule.quantity == "changed":
        if not nero.answer_names(arrays):
            expected = "predictions that are classes, texts or boxes"
            remedy = "use max_gap, or orbical.nero.consistency with a tolerance"
            raise InputError(rule.name, expected, f"a scan of {arrays.task}", remedy=remedy)
        rows = nero.sample_changes(arrays)["changed"]
        binary = nero.changes_are_binary(arrays)
        return {
            model: _check_terms_against_threshold(
                [nero.known_terms(values, binary)], _bounds(rule), rule, level
            )
            for model, values in zip(arrays.models, rows, strict=True)
        }
    bounds, name = _bounds(rule, arrays), rule.variable
    least = nero.least_response(arrays, name) if bounds is None and name in arrays else None
    return {
        model: _check_terms_against_threshold(
            list(_terms_to_check(arrays, rule, place)), bounds, rule, level, least
        )
        for place, model in enumerate(arrays.models)
    }


def _check_terms_against_threshold(
    columns: list[np.ndarray],
    bounds: tuple[float, float] | None,
    rule: _CheckRule,
    level: float,
    least: float | None = None,
) -> _Judged:
    """Judge the mean of terms `[n]`; at the worst of K elements, each end at a corrected level."""
    highest, lowest = "maximum" in rule.limit, -np.inf if least is None else least
    within = {} if bounds is None else {"low": bounds[0], "high": bounds[1]}

    def interval(terms: np.ndarray, level: float) -> calibration.CautionedMean[Any]:
        if bounds is None:
            return calibration.unbounded_mean_interval(terms, level, low=lowest)
        return calibration.CautionedMean(calibration.bounded_mean_interval(terms, level, **within))

    extremes, of_columns = nero.mean_at_worst(columns, interval, level, highest)
    if rule.of_squares:
        extremes = np.sqrt(extremes.clip(0))
    caution: str = next((one.caution for one in of_columns if one.caution), "")
    value, low, high = map(float, extremes)
    about: dict[str, Any] = {"positions": len(columns), "level": level, "caution": caution}
    judged = calibration.judge(value, low, high, **rule.limit, **about)
    corrected = 1 - (1 - level) / len(columns)
    # So many show a failure of one in ten, with the probability of one end.
    enough = int(np.ceil(np.log((1 - corrected) / 2) / np.log1p(-_SEEN)))
    if bounds is None and not np.isnan(value) and min(map(len, columns)) < enough:
        return replace(judged, outcome="inconclusive"), enough
    if judged.outcome != "inconclusive" or bounds is None:
        return judged, None
    means = [one[0] for one in of_columns]
    worst = columns[int((np.nanargmax if highest else np.nanargmin)(means))]
    limit = judged.limit**2 if rule.of_squares else judged.limit
    return judged, calibration.samples_to_decide(worst, limit, corrected, **within)


def _bounds(rule: _CheckRule, arrays: ScanArrays | None = None) -> tuple[float, float] | None:
    """Return the values between which all terms, and so their mean, lie, if there are such."""
    if rule.quantity in _RANGES:
        return _RANGES[rule.quantity]
    if arrays is not None and rule.of_means:
        return nero.response_bounds(arrays, rule.variable)
    return calibration.MEASURES[rule.quantity].bounds


def _terms_to_check(arrays: ScanArrays, rule: _CheckRule, model: int) -> Iterator[np.ndarray]:
    """Yield what is averaged over samples: one column of known terms, or one for each element."""
    name = rule.variable
    if name not in arrays:
        if rule.quantity in _AVERAGED:
            expected = "a labeled scan whose predictions are right or wrong"
            got = f"another one, of {arrays.task}"
            raise InputError(rule.name, expected, got, remedy=_remedy(arrays))
        wanted = rule.quantity.partition("_gap")[0]
        raise InputError(rule.name, f"a scan with {wanted}", f"one without {name!r}")
    identity, weights = arrays.group.identity, arrays.group.weights

    def column(of_block: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        blocks = (arrays.responses(name, rows, model, keep=False) for rows in arrays.blocks(name))
        return np.concatenate([of_block(part.astype(float)) for part in blocks])

    binary = rule.quantity == "accuracy" or arrays.dtype(name).kind == "b"
    if rule.quantity == "gap":
        yield nero.known_terms(column(np.square))
    elif rule.quantity not in _AVERAGED:
        yield nero.known_terms(column(lambda part: _mean_square(part, weights)))
    elif rule.place == "mean":
        yield nero.known_terms(
            column(lambda part: nero.orbit_means_and_variances(part, weights)[0])
        )
    elif rule.place == "identity":
        yield nero.known_terms(column(lambda part: part[:, identity]), binary)
    else:
        drop = rule.quantity == "accuracy_drop"
        upright = column(lambda part: part[:, identity]) if drop else 0.0
        for each in nero.element_columns(arrays, name, model):
            yield nero.known_terms(upright - each if drop else each, binary and not drop)


def _remedy(arrays: ScanArrays) -> str:
    """Return what helps where a scan lacks an average: labels, or a limit for one that it has."""
    known = [name for name, variable in _AVERAGED.items() if variable in arrays]
    labels = "" if "score" in arrays else "scan data with labels"
    other = f"set a limit for its {' or '.join(known)}, such as max_{known[0]}" if known else ""
    return ", or ".join(filter(None, [labels, other]))


def _mean_square(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return each sample's mean square over its orbit; a single answer is its own consensus."""
    alone = (~np.isnan(values)).sum(1) < min(2, values.shape[1])
    return np.where(alone, np.nan, nero.orbit_means_and_variances(np.square(values), weights)[0])
