"""Compare a scan, or saved outputs, with thresholds: pass, fail, or too few samples to tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .._text import counted
from ..calibration import (
    MEASURES,
    Verdict,
    classification_table,
    list_measures,
    mean_interval,
    regression_table,
    scan_measures,
)
from ..calibration import judge as hold
from ..calibration import verdict as verdicts_of
from ..errors import InputError, StoreError, check_name, unknown_name
from ..store.xarray_blocks import element_blocks, sample_blocks
from .outputs import read_outputs
from .thresholds import Rule, Settings, rule_named

if TYPE_CHECKING:
    import xarray as xr

    from ..store.scan_result import Scan

_STATES = {"pass": "pass", "fail": "FAIL", "inconclusive": "inconclusive"}


@dataclass(frozen=True)
class Finding:
    """A threshold applied to one model, by so many samples, on some of which the model failed."""

    rule: Rule
    model: str
    verdict: Verdict
    samples: int
    failed: int = 0

    @property
    def outcome(self) -> str:
        """Whether the model keeps the threshold: "pass", "fail" or "inconclusive"."""
        return self.verdict.outcome

    def line(self) -> str:
        """Describe the finding in one line, with all its numbers."""
        numbers = str(self.verdict).partition(": ")[2].replace(", limit", ", threshold")
        failed = f", {self.failed} with failures" if self.failed else ""
        return (
            f"{_STATES[self.outcome]} {self.model}: {self.rule.what} {numbers} "
            f"({self.rule.name}, {counted(self.samples, 'sample')}{failed})"
        )


def judge(
    scan: Scan,
    limits: Mapping[str, float],
    settings: Settings | None = None,
    models: list[str] | None = None,
) -> list[Finding]:
    """Apply each threshold to each model of a finished scan."""
    if not scan.complete:
        raise StoreError(
            f"scan: expected a finished one, got one that is {scan.share_done:.0%} done; finish "
            "it first"
        )
    for name in models or []:
        check_name("model", name, scan.models)
    size, failures = scan.data.sizes["sample"], scan.failures
    return [
        Finding(rule, model, found, size, len(failures[model]))
        for rule, limit in ((rule_named(name), limit) for name, limit in limits.items())
        for model, found in _of_scan(scan, rule, limit, settings or Settings()).items()
        if not models or model in models
    ]


def judge_outputs(
    path: Path, limits: Mapping[str, float], settings: Settings | None = None
) -> list[Finding]:
    """Apply each threshold to the saved outputs of one model."""
    chosen = settings or Settings()
    outputs = read_outputs(path)
    rules = {rule_named(name): limit for name, limit in limits.items()}
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
    draws = {name: getattr(chosen, name) for name in ("bins", "level", "resamples")}
    only = {rule.quantity for rule in rules}
    table: Any = regression_table if "mean" in outputs else classification_table
    found = table(**outputs, **draws, only=only)
    for rule in rules:
        if rule.quantity not in found:
            raise InputError(
                rule.name, problem=f"cannot be computed of the outputs in {str(path)!r}"
            )
    size = len(next(iter(outputs.values())))
    return [
        Finding(
            replace(rule, what=MEASURES[rule.quantity].title),
            path.stem,
            hold(*_ends(found[rule.quantity]), **rule.limit(limit), level=chosen.level),
            size,
        )
        for rule, limit in rules.items()
    ]


def _ends(found: Any) -> tuple[float, float, float]:
    return float(found.value), float(found.low), float(found.high)


def _of_scan(scan: Scan, rule: Rule, limit: float, settings: Settings) -> dict[str, Verdict]:
    if rule.quantity == "changed":
        return dict(_of_changes(scan, rule, limit, settings.level))
    entry = MEASURES.get(rule.quantity)
    if entry is None or (rule.quantity in _VARIABLES and entry not in scan_measures(scan)):
        return dict(_of_means(scan, rule, limit, settings.level))
    draws: dict[str, Any] = {"level": settings.level, "resamples": settings.resamples}
    options = entry.accepted({"bins": settings.bins})
    try:
        return verdicts_of(scan, entry, place=rule.place, **rule.limit(limit), **draws, **options)
    except InputError as error:
        raise error.about(rule.name) from error


def _of_changes(
    scan: Scan, rule: Rule, limit: float, level: float
) -> Iterator[tuple[str, Verdict]]:
    """Judge the share of samples whose prediction changes somewhere on the orbit."""
    from ..nero.changes import answer_names, consistency
    from ..store import arrays_of

    if not answer_names(arrays_of(scan)):
        raise InputError(
            rule.name,
            "answers that are classes, texts or boxes",
            f"a scan of {scan.record.task.name}",
            remedy="use max_gap, or orbical.nero.consistency with a tolerance",
        )
    found = consistency(scan, level=level)
    for number, model in enumerate(scan.models):
        ends = (float(found[f"changed{end}"][number]) for end in ("", "_low", "_high"))
        yield model, hold(*ends, **rule.limit(limit), level=level)


def _of_means(scan: Scan, rule: Rule, limit: float, level: float) -> Iterator[tuple[str, Verdict]]:
    """Judge a mean over samples; at the worst of K elements, each end at the corrected level."""
    worst = rule.place == "worst"
    positions = len(scan.group) if worst else 1
    side = rule.limit(limit)
    extreme = (np.fmax if "maximum" in side else np.fmin).reduce  # of what is known
    for number, model in enumerate(scan.models):
        terms = _terms(scan, rule, number)
        each = [_mean_ends(column, 1 - (1 - level) / positions, rule) for column in terms]
        ends = (float(extreme(part)) for part in np.array(each).T)
        yield model, hold(*ends, **side, level=level, positions=positions)


def _mean_ends(terms: np.ndarray, level: float, rule: Rule) -> tuple[float, float, float]:
    """Return the mean of what is known, and its interval."""
    known = terms[~np.isnan(terms)].astype(float)
    if not len(known):
        return np.nan, np.nan, np.nan
    # Differences of right and wrong that are all equal still leave doubt (Agresti and Min, 2005).
    given = np.append(known, [1.0, -1.0]) if rule.quantity == "accuracy_drop" else known
    values = torch.from_numpy(given)
    found = mean_interval(values, values, torch.zeros_like(values), level)
    low, high = (min(float(found.low), known.mean()), max(float(found.high), known.mean()))
    if rule.quantity.endswith("gap"):  # a root mean square
        value, low, high = (np.sqrt(max(0.0, end)) for end in (known.mean(), low, high))
        return value, low, high
    return float(known.mean()), low, high


def _terms(scan: Scan, rule: Rule, model: int) -> Iterator[np.ndarray]:
    """Yield what is averaged over samples: one column `[N]`, or one for each element."""
    of_atoms = rule.quantity.partition("_gap")[0]
    if rule.quantity == f"{of_atoms}_gap":
        if f"{of_atoms}_vs_consensus" not in scan.data:
            raise InputError(rule.name, f"a scan with {of_atoms}", "one without")
        apart = scan.data[f"{of_atoms}_vs_consensus"].isel(model=model)
        # A single answer is its own consensus: nothing is known about its gap.
        alone = apart.notnull().sum("element").values < min(2, len(scan.group))
        means = _orbit_means(apart.astype(float) ** 2, scan.group.weights)
        yield np.where(alone, np.nan, means)
        return
    values = _variable(scan, _VARIABLES[rule.quantity], model)
    at_identity = {"element": scan.group.identity}
    if rule.quantity == "gap":
        yield np.square(values.values.astype(float))
    elif rule.place == "identity":
        yield values.isel(at_identity).values.astype(float)
    elif rule.place == "mean":
        yield _orbit_means(values, scan.group.weights)
    else:
        drop = rule.quantity == "accuracy_drop"
        before = values.isel(at_identity).values.astype(float) if drop else None
        for _, (columns,) in element_blocks(values):
            for column in columns:
                yield column if before is None else before - column


def _orbit_means(values: xr.DataArray, weights: np.ndarray) -> np.ndarray:
    """Return the mean `[N]` of each sample over the elements at which it has a value."""
    found = np.empty(values.sizes["sample"])
    for rows, (part,) in sample_blocks(values):
        known = np.ma.masked_invalid(part.astype(float))
        found[rows] = np.ma.filled(np.ma.average(known, 1, weights), np.nan)
    return found


def _variable(scan: Scan, name: str, model: int) -> xr.DataArray:
    if name not in scan.data:
        raise InputError("thresholds", "labeled data", f"a scan without {name!r}")
    return scan.data[name].isel(model=model)


_VARIABLES = {
    "gap": "invariance_gap",
    "accuracy_drop": "correct",
    "accuracy": "correct",
    "score": "score",
}
"""What is averaged over samples."""
