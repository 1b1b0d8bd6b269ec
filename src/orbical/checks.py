"""Check a scan, or saved outputs, against thresholds: pass, fail, or too few samples to tell.

Thresholds are set by keyword, or in the table `[tool.orbical.check]` of `pyproject.toml`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from ._text import counted
from .calibration import (
    MEASURES,
    Verdict,
    checked_level,
    judge,
    list_measures,
    mean_interval,
    outputs_table,
    scan_measures,
    verdict,
)
from .data import read_outputs
from .errors import (
    InputError,
    StoreError,
    check_name,
    real_number,
    unknown_name,
    whole_number,
)
from .groups import PLACES
from .nero import answer_names, consistency, orbit_moments
from .store import Scan, ScanArrays, arrays_of, load

__all__ = ["Check", "check", "configured"]

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
_STATES = {"pass": "pass", "fail": "FAIL", "inconclusive": "inconclusive"}


@dataclass(frozen=True)
class Check(Verdict):
    """One threshold, checked for one model: a verdict, and what it is about.

    Attributes:
        name: the name of the threshold, such as "max_ece".
        model: the name of the model.
        what: what was measured, in words.
        samples: the number of samples.
        failed: on how many of them the model failed.
    """

    name: str
    model: str
    what: str
    samples: int
    failed: int = 0

    def __str__(self) -> str:
        failed = f", {self.failed} with failures" if self.failed else ""
        return (
            f"{_STATES[self.outcome]} {self.model}: {self.what} {self.numbers} "
            f"({self.name}, {counted(self.samples, 'sample')}{failed})"
        )


class _Rule(NamedTuple):
    """A threshold: a measure, "score" or a quantity of the orbit, at a place."""

    name: str
    quantity: str
    place: str
    what: str
    limit: dict[str, Any]


def check(
    scan: Scan | str | Path,
    /,
    *,
    models: Collection[str] | None = None,
    bins: int = 15,
    level: float = 0.95,
    resamples: int = 200,
    **thresholds: float,
) -> list[Check]:
    """Check each model of a finished scan, or saved outputs, against thresholds.

    The name of a threshold is `max_` or `min_` and "gap", "changed", "accuracy_drop", "energy_gap"
    (or another quantity of atoms), "score" or any registered measure; the last two are means over
    the orbit, unless "worst_", "identity_" or "pooled_" stands before them, as in `max_worst_ece`.

    Args:
        scan: a finished scan, its path, or the path of outputs in an `.npz` file, which have no
            orbit: with `logits` or `probs`, and `labels`; or `mean`, `variance` and `target`.
        models: the names of the models to check; all by default.
        bins: number of bins of binned measures.
        level: nominal coverage of the intervals.
        resamples: number of draws of each interval.
        thresholds: the thresholds by name.

    Returns:
        A row for each threshold and model; `pandas.DataFrame(rows)` is a table of them.

    Raises:
        InputError: if a threshold is unknown, or the scan does not have what it needs.
        StoreError: if the scan is unfinished.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, (images[:50], labels[:50]), group="cyclic:4",
        ...                task="classification", progress=False)
        >>> [(row.name, row.outcome) for row in ob.check(scan, min_accuracy=0.99, max_gap=9)]
        [('min_accuracy', 'fail'), ('max_gap', 'pass')]

    See Also:
        orbical.calibration.verdict: one measure of a scan against a limit.
    """
    if not thresholds:
        raise InputError(
            "thresholds",
            "at least one",
            "none",
            remedy="set some such as max_gap = 0.02 or min_accuracy = 0.9",
        )
    rules = [_rule(name, real_number(name, limit)) for name, limit in thresholds.items()]
    draws = {
        "bins": whole_number("bins", bins, 1),
        "level": checked_level(real_number("level", level)),
        "resamples": whole_number("resamples", resamples, 1),
    }
    if isinstance(scan, str | Path) and str(scan).endswith(".npz"):
        return _check_outputs(Path(scan), rules, draws, models or ())
    opened = load(scan) if isinstance(scan, str | Path) else scan
    return _check_scan(opened, rules, draws, models or ())


def configured(path: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `check`, and `strict`, from a TOML file and what is given.

    The table is `[tool.orbical.check]`; a missing file has none. What is given takes precedence,
    unless it is None.

    >>> configured(Path("no.toml"), {"max_gap": 0.1, "level": None})
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
    found = {str(name).replace("-", "_"): value for name, value in table.items()}
    found |= {name: value for name, value in given.items() if value is not None}
    if not isinstance(found.get("strict", False), bool):
        raise InputError("strict", "true or false", repr(found["strict"]))
    if not isinstance(found.get("models", []), list):
        raise InputError("models", "a list of names", repr(found["models"]))
    return found


def _rule(name: str, limit: float) -> _Rule:
    side, _, rest = name.partition("_")
    limits = {"maximum" if side == "max" else "minimum": float(limit)}
    if side in ("max", "min") and rest in _WHOLE:
        place = "worst" if rest == "accuracy_drop" else "mean"
        return _Rule(name, rest, place, _WHOLE[rest], limits)
    place, _, measure = rest.partition("_")
    if rest in MEASURES or place not in PLACES:
        place, measure = "mean", rest
    measure = _ALIASES.get(measure, measure)
    known = {*MEASURES} | ({"score"} if place != "pooled" else set())
    if side not in ("max", "min") or measure not in known:
        side = side if side in ("max", "min") else "max"
        kinds = ("pair", "outputs", "regression", "aleatoric")
        names = *_WHOLE, *_ALIASES, *(entry.name for entry in list_measures(*kinds))
        named = {f"{side}_{one}" for one in names}
        error = unknown_name("threshold", name, named)
        own = "your own measure is known once its module is imported (see the option import)"
        raise error.about("threshold", remedy=f"{error.remedy}; {own}".removeprefix("; "))
    title = MEASURES[measure].title if measure in MEASURES else measure
    return _Rule(name, measure, place, f"{title}, {PLACES[place]}", limits)


def _check_scan(
    scan: Scan, rules: list[_Rule], draws: dict[str, Any], models: Collection[str]
) -> list[Check]:
    if not scan.complete:
        raise StoreError(
            f"scan: expected a finished one, got one that is {scan.share_done:.0%} done; finish "
            "it first"
        )
    for name in models:
        check_name("model", name, scan.models)
    size, failures = scan.data.sizes["sample"], scan.failures
    return [
        Check(
            **vars(found),
            name=rule.name,
            model=model,
            what=rule.what,
            samples=size,
            failed=len(failures[model]),
        )
        for rule in rules
        for model, found in _verdicts(scan, rule, draws).items()
        if not models or model in models
    ]


def _check_outputs(
    path: Path, rules: list[_Rule], draws: dict[str, Any], models: Collection[str]
) -> list[Check]:
    for name in models:
        check_name("model", name, [path.stem])
    outputs = read_outputs(path)
    kinds = ("regression", "aleatoric") if "mean" in outputs else ("pair", "outputs")
    known = [entry.name for entry in list_measures(*kinds, listed="table")]
    for rule in rules:
        if rule.place in ("worst", "pooled") or rule.quantity not in MEASURES:
            raise InputError(
                rule.name,
                "a scan for it",
                f"saved outputs in {str(path)!r}, which have no orbit",
                remedy="set thresholds of measures, such as max_ece",
            )
        if rule.quantity not in known:
            raise unknown_name(f"{rule.name}: of these outputs", rule.quantity, known)
    found = outputs_table(outputs, **draws, only={rule.quantity for rule in rules})
    checked = []
    for rule in rules:
        if rule.quantity not in found:
            problem = f"cannot be computed of the outputs in {str(path)!r}"
            raise InputError(rule.name, problem=problem)
        one, title = found[rule.quantity], MEASURES[rule.quantity].title
        ends = float(one.value), float(one.low), float(one.high)
        judged = judge(*ends, **rule.limit, level=draws["level"])
        size = len(next(iter(outputs.values())))
        checked.append(
            Check(**vars(judged), name=rule.name, model=path.stem, what=title, samples=size)
        )
    return checked


def _verdicts(scan: Scan, rule: _Rule, draws: dict[str, Any]) -> dict[str, Verdict]:
    if rule.quantity == "changed":
        return _of_changes(scan, rule, draws["level"])
    entry = MEASURES.get(rule.quantity)
    if entry is None or (rule.quantity in _AVERAGED and entry not in scan_measures(scan)):
        return _of_means(scan, rule, draws["level"])
    options = {name: draws[name] for name in ("level", "resamples")} | entry.accepted(
        {"bins": draws["bins"]}
    )
    try:
        return verdict(scan, entry, place=rule.place, **rule.limit, **options)
    except InputError as error:
        raise error.about(rule.name) from error


def _of_changes(scan: Scan, rule: _Rule, level: float) -> dict[str, Verdict]:
    """Judge the share of samples whose prediction changes somewhere on the orbit."""
    if not answer_names(arrays_of(scan)):
        raise InputError(
            rule.name,
            "answers that are classes, texts or boxes",
            f"a scan of {scan.record.task.name}",
            remedy="use max_gap, or orbical.nero.consistency with a tolerance",
        )
    found = consistency(scan, level=level)
    ends = (found[f"changed{end}"].values.tolist() for end in ("", "_low", "_high"))
    return {
        model: judge(*each, **rule.limit, level=level)
        for model, *each in zip(scan.models, *ends, strict=True)
    }


def _of_means(scan: Scan, rule: _Rule, level: float) -> dict[str, Verdict]:
    """Judge a mean over samples; at the worst of K elements, each end at the corrected level."""
    positions = len(scan.group) if rule.place == "worst" else 1
    extreme = (np.fmax if "maximum" in rule.limit else np.fmin).reduce  # of what is known
    arrays, judged = arrays_of(scan), {}
    for number, model in enumerate(scan.models):
        terms = _terms(arrays, rule, number)
        each = [_mean_ends(column, 1 - (1 - level) / positions, rule) for column in terms]
        value, low, high = (float(extreme(part)) for part in np.array(each).T)
        judged[model] = judge(value, low, high, **rule.limit, level=level, positions=positions)
    return judged


def _mean_ends(terms: np.ndarray, level: float, rule: _Rule) -> tuple[float, float, float]:
    """Return the mean of what is known, and its interval."""
    known = terms[~np.isnan(terms)].astype(float)
    if not len(known):
        return np.nan, np.nan, np.nan
    # Differences of right and wrong that are all equal still leave doubt (Agresti and Min, 2005).
    given = np.append(known, [1.0, -1.0]) if rule.quantity == "accuracy_drop" else known
    values, mean = torch.from_numpy(given), float(known.mean())
    found = mean_interval(values, values, torch.zeros_like(values), level)
    low, high = min(float(found.low), mean), max(float(found.high), mean)
    if rule.quantity.endswith("gap"):  # a root mean square
        mean, low, high = (float(np.sqrt(max(0.0, end))) for end in (mean, low, high))
    return mean, low, high


def _terms(arrays: ScanArrays, rule: _Rule, model: int) -> Iterator[np.ndarray]:
    """Yield what is averaged over samples: one column `[N]`, or one for each element."""
    of_atoms = rule.quantity.partition("_gap")[0]
    name = _AVERAGED.get(rule.quantity, f"{of_atoms}_vs_consensus")
    if name not in arrays:
        wanted = "labeled data" if rule.quantity in _AVERAGED else f"a scan with {of_atoms}"
        raise InputError(rule.name, wanted, f"one without {name!r}")
    identity, weights = arrays.group.identity, arrays.group.weights

    def column(of_block: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        blocks = arrays.sample_blocks(name, model=model)
        return np.concatenate([of_block(part.astype(float)) for _, (part,) in blocks])

    if rule.quantity == "gap":
        yield column(np.square)
    elif rule.quantity not in _AVERAGED:
        yield column(lambda part: _mean_square(part, weights))
    elif rule.place == "mean":
        yield column(lambda part: orbit_moments(part, weights)[0])
    else:
        at_identity = column(lambda part: part[:, identity])
        if rule.place == "identity":
            yield at_identity
            return
        drop = rule.quantity == "accuracy_drop"
        for _, (columns,) in arrays.element_blocks(name, model=model):
            yield from (at_identity - each if drop else each for each in columns)


def _mean_square(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return each sample's mean square over its orbit; a single answer is its own consensus."""
    alone = (~np.isnan(values)).sum(1) < min(2, values.shape[1])
    return np.where(alone, np.nan, orbit_moments(np.square(values), weights)[0])
