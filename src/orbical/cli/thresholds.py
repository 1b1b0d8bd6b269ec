"""The thresholds of `orbical check` and of the pytest fixture: their names, and where they are set.

They are set by keyword, or in the table `[tool.orbical.check]` of `pyproject.toml`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ..errors import InputError, unknown_name

SHORTCUTS = {
    "max_gap": "Largest invariance gap.",
    "max_changed": "Largest share of samples whose prediction changes somewhere on the orbit.",
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


@dataclass(frozen=True)
class Rule:
    """A threshold that can be set: a measure, "score" or a quantity of the orbit, at a place."""

    name: str
    quantity: str
    place: str
    what: str

    def limit(self, value: float) -> dict[str, Any]:
        """Return the limit as `orbical.calibration.verdict` takes it."""
        return {"maximum" if self.name.startswith("max_") else "minimum": value}


@dataclass(frozen=True)
class Settings:
    """How thresholds are judged.

    `level` is the coverage of the intervals, `resamples` the number of draws of each; `strict`
    counts inconclusive checks as failures.
    """

    bins: int = 15
    level: float = 0.95
    resamples: int = 200
    strict: bool = False


def rule_named(name: str) -> Rule:
    """Return the rule of a name such as `max_ece`, `max_worst_ks` or `max_pooled_smooth_ece`.

    After `max_` or `min_` stand "gap", "energy_gap" (or another quantity of atoms), "changed",
    "accuracy_drop", "score", or any registered measure, the last two with "worst_", "identity_" or
    "pooled_" before them for another place than the mean over the orbit.
    """
    from ..calibration import MEASURES, PLACES, list_measures

    side, _, rest = name.partition("_")
    if side in ("max", "min") and rest in _WHOLE:
        return Rule(name, rest, "worst" if rest == "accuracy_drop" else "mean", _WHOLE[rest])
    place, _, measure = rest.partition("_")
    if rest in MEASURES or place not in PLACES:
        place, measure = "mean", rest
    measure = _ALIASES.get(measure, measure)
    known = {*MEASURES} | ({"score"} if place != "pooled" else set())
    if side not in ("max", "min") or measure not in known:
        side = side if side in ("max", "min") else "max"
        kinds = ("pair", "outputs", "regression", "aleatoric")
        names = *_WHOLE, *(entry.name for entry in list_measures(*kinds))
        named = {f"{side}_{one}" for one in names}
        error = unknown_name("threshold", name, named | {*SHORTCUTS})
        own = "your own measure is known once its module is imported (see the option import)"
        raise error.about("threshold", remedy=f"{error.remedy}; {own}".removeprefix("; "))
    title = MEASURES[measure].title if measure in MEASURES else measure
    return Rule(name, measure, place, f"{title}, {PLACES[place]}")


def table_from(path: Path) -> dict[str, Any]:
    """Read the table `[tool.orbical.check]` of a TOML file, empty if there is none."""
    try:
        table: Any = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # of TOML, Unicode or numbers
        raise InputError(path, problem=f"cannot be read as TOML ({error})") from error
    for name in ("tool", "orbical", "check"):
        table = table.get(name, {})
        if not isinstance(table, dict):
            raise InputError(path, "the table [tool.orbical.check]", f"{name} = {table!r}")
    return {str(name).replace("-", "_"): value for name, value in table.items()}


def settings_from(table: Mapping[str, Any], **given: Any) -> Settings:
    """Return the settings of a table; what is given takes precedence, None is not given.

    >>> settings_from({"bins": 10, "max_gap": 0.1}, level=0.9, resamples=None)
    Settings(bins=10, level=0.9, resamples=200, strict=False)
    """
    from ..calibration.intervals.interval_ends import checked_level
    from ..errors import real_number, whole_number

    names = {field.name for field in fields(Settings)}
    chosen = {name: value for name, value in table.items() if name in names}
    chosen |= {name: value for name, value in given.items() if value is not None}
    for name in ("bins", "resamples"):
        if name in chosen:
            chosen[name] = whole_number(name, chosen[name], 1)
    found = Settings(**chosen)
    checked_level(real_number("level", found.level))
    if not isinstance(found.strict, bool):
        raise InputError("strict", "true or false", repr(found.strict))
    return found


def limits_from(given: Mapping[str, float | None], table: Mapping[str, Any]) -> dict[str, float]:
    """Merge thresholds that are given and those of a table; the former take precedence.

    >>> limits_from({"max_gap": 0.1, "max_ece": None}, {"max_gap": 1, "max_ece": 0.05})
    {'max_gap': 0.1, 'max_ece': 0.05}
    """
    from ..errors import real_number

    names = {field.name for field in fields(Settings)}
    chosen = {name: value for name, value in table.items() if name not in names}
    chosen |= {name: value for name, value in given.items() if value is not None}
    if not chosen:
        raise InputError(
            "thresholds",
            "at least one",
            "none",
            remedy="set some such as max_gap = 0.02 or min_accuracy = 0.9",
        )
    for name, value in chosen.items():
        rule_named(name)
        real_number(name, value)
    return {name: float(value) for name, value in chosen.items()}
