"""The thresholds of `orbical check` and of the pytest fixture: their names, and how each is judged.

They are set by keyword, or in the table `[tool.orbical.check]` of `pyproject.toml`.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError, StoreError, unknown_name

if TYPE_CHECKING:
    from ..store.scan_result import Scan

SHORTCUTS = {
    "max_gap": "Largest invariance gap.",
    "min_accuracy": "Smallest accuracy, mean over the orbit.",
    "min_worst_accuracy": "Smallest accuracy at the worst element.",
    "max_accuracy_drop": "Largest loss of accuracy from the identity to the worst element.",
    "max_ece": "Largest calibration error, mean over the orbit.",
    "max_worst_ece": "Largest calibration error at the worst element.",
    "max_pooled_ece": "Largest calibration error, pooled over the orbit.",
    "max_ks": "Largest KS calibration error, mean over the orbit.",
    "max_mahalanobis": "Largest Mahalanobis calibration error, mean over the orbit.",
    "max_worst_mahalanobis": "Largest Mahalanobis calibration error at the worst element.",
    "max_bleed": "Largest aleatoric bleed of noise-free targets.",
    "min_score": "Smallest score, mean over the orbit.",
    "max_score": "Largest score, mean over the orbit.",
}
"""Thresholds that have an option of their own; `--max` and `--min` take all others."""

_ALIASES = {"mahalanobis": "mahalanobis_calibration", "bleed": "aleatoric_bleed"}
_VARIABLES = {"accuracy": "correct", "score": "score"}


@dataclass(frozen=True)
class Rule:
    """A threshold that can be set: what it is of, and how that is measured for each model."""

    name: str
    what: str
    measure: Callable[[Scan, int], dict[str, float]]

    @property
    def upper(self) -> bool:
        """Whether the threshold is the largest value allowed."""
        return self.name.startswith("max_")


@dataclass(frozen=True)
class Verdict:
    """A rule applied to one model."""

    rule: Rule
    model: str
    value: float
    limit: float

    @property
    def passed(self) -> bool:
        """Whether the value is within the threshold; NaN never is."""
        return self.value <= self.limit if self.rule.upper else self.value >= self.limit

    def line(self) -> str:
        """Describe the verdict in one line."""
        sign = "<=" if self.rule.upper else ">="
        state = "ok  " if self.passed else "FAIL"
        return (
            f"{state} {self.model}: {self.rule.what} {self.value:.4g}, threshold {sign} "
            f"{self.limit:g} ({self.rule.name})"
        )


def rule_named(name: str) -> Rule:
    """Return the rule of a name such as `max_ece`, `max_worst_ks` or `max_pooled_smooth_ece`.

    After `max_` or `min_` stand "gap", "accuracy_drop", "score", or any registered measure, the
    last two with "worst_", "identity_" or "pooled_" before them for another place than the mean
    over the orbit.
    """
    from ..calibration import MEASURES, PLACES, measures

    side, _, rest = name.partition("_")
    if side in ("max", "min") and rest == "gap":
        return Rule(name, "invariance gap", _gap)
    if side in ("max", "min") and rest == "accuracy_drop":
        return Rule(name, "loss of accuracy from the identity to the worst element", _drop)
    place, _, measure = rest.partition("_")
    if rest in MEASURES or place not in PLACES:
        place, measure = "mean", rest
    measure = _ALIASES.get(measure, measure)
    variables = _VARIABLES if place != "pooled" else {}
    if side not in ("max", "min") or measure not in {*MEASURES, *variables}:
        side = side if side in ("max", "min") else "max"
        known = {f"{side}_{entry.name}" for entry in measures("pair", "regression", "aleatoric")}
        raise unknown_name("threshold", name, known | {*SHORTCUTS})
    title = MEASURES[measure].title if measure in MEASURES else measure
    what = f"{title} {PLACES[place]}" if place != "mean" else f"{title}, {PLACES[place]}"
    if measure in variables:
        return Rule(name, what, partial(_aggregate, place=place, metric=variables[measure]))
    return Rule(name, what, partial(_calibration, place=place, name=measure))


def _by_model(values: Any) -> dict[str, float]:
    return dict(zip(map(str, values["model"].values), map(float, values.values), strict=True))


def _gap(scan: Scan, bins: int) -> dict[str, float]:
    from ..nero import invariance_gap

    return _by_model(invariance_gap(scan)["total"])


def _aggregate(scan: Scan, bins: int, *, place: str, metric: str) -> dict[str, float]:
    """Measure a metric of `orbical.nero` at one place."""
    from ..nero import aggregate

    if metric not in scan.data:
        raise InputError(f"thresholds: expected labeled data, got a scan without {metric!r}")
    return placed(aggregate(scan, metric=metric).compute(), place, scan)


def _calibration(scan: Scan, bins: int, *, place: str, name: str) -> dict[str, float]:
    """Measure a registered measure at one place."""
    from ..calibration import MEASURES, along_orbit, pooled_over_orbit, scan_measures

    entry = MEASURES[name]
    if entry not in scan_measures(scan):
        kinds = {"pair": "classification", "outputs": "classification, by its outputs"}
        kind = kinds.get(entry.kind, "regression with uncertainty")
        raise InputError(f"thresholds: expected a labeled scan of {kind} for {name}")
    options = entry.accepted({"bins": bins})
    if place == "pooled":
        return _by_model(pooled_over_orbit(scan, entry, **options))
    return placed(along_orbit(scan, entry, **options), place, scan)


def placed(curve: Any, place: str, scan: Scan) -> dict[str, float]:
    """Return the value of a curve along the orbit at one place, for each model."""
    if place == "identity":
        return _by_model(curve.isel(element=scan.group.identity))
    if place == "mean":
        return _by_model(curve.weighted(curve["weight"]).mean("element"))
    better = curve.attrs.get("higher_is_better", True)
    return _by_model(curve.min("element") if better else curve.max("element"))


def _drop(scan: Scan, bins: int) -> dict[str, float]:
    upright, worst = (
        _aggregate(scan, bins, place=place, metric="correct") for place in ("identity", "worst")
    )
    return {model: upright[model] - worst[model] for model in upright}


def settings_from(path: Path) -> dict[str, Any]:
    """Read the table `[tool.orbical.check]` of a TOML file, empty if there is none."""
    try:
        table: Any = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as TOML ({error})") from error
    for name in ("tool", "orbical", "check"):
        table = table.get(name, {})
        if not isinstance(table, dict):
            raise InputError(
                f"{path}: expected the table [tool.orbical.check], got {name} = {table!r}"
            )
    return {str(name).replace("-", "_"): value for name, value in table.items()}


def limits_from(given: Mapping[str, float | None], settings: Mapping[str, Any]) -> dict[str, float]:
    """Merge thresholds that are given and those of the settings; the former take precedence.

    >>> limits_from({"max_gap": 0.1, "max_ece": None}, {"max_gap": 1, "max_ece": 0.05})
    {'max_gap': 0.1, 'max_ece': 0.05}
    """
    chosen = {name: value for name, value in settings.items() if name != "bins"}
    chosen |= {name: value for name, value in given.items() if value is not None}
    if not chosen:
        raise InputError(
            "thresholds: expected at least one, got none; set some such as max_gap = 0.02 or "
            "min_accuracy = 0.9"
        )
    for name, value in chosen.items():
        rule_named(name)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value):
            raise InputError(f"{name}: expected a finite number, got {value!r}")
    return {name: float(value) for name, value in chosen.items()}


def judge(
    scan: Scan, limits: Mapping[str, float], bins: int = 15, models: list[str] | None = None
) -> list[Verdict]:
    """Apply each threshold to each model of a finished scan."""
    if not scan.complete:
        raise StoreError(
            f"scan: expected a finished one, got one that is {scan.share_done:.0%} done; finish "
            "it first"
        )
    for name in models or []:
        if name not in scan.models:
            raise unknown_name("model", name, scan.models)
    rules = [(rule_named(name), limit) for name, limit in limits.items()]
    return [
        Verdict(rule, model, value, limit)
        for rule, limit in rules
        for model, value in rule.measure(scan, bins).items()
        if not models or model in models
    ]
