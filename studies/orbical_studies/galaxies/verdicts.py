"""Verdicts on statements, from the intervals of differences.

A statement that something changes and one that nothing does are judged alike: where every interval
holds 0 both stay *open*, with the largest change that the intervals leave possible.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..pages import Row
from .numbers import signs

WORDS = {
    "accuracy": ("points of accuracy", 1e2, 1),
    "ece": ("points of ECE", 1e2, 1),
    "esd": ("thousandths of ESD", 1e3, 2),
    "overconfidence": ("points of confidence less accuracy", 1e2, 1),
}
"""A measure's unit, how many of it are 1, and the digits shown."""


def by_measure(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Sort rows by their measure.

    >>> [*by_measure([{"measure": "ece"}, {"measure": "esd"}, {"measure": "ece"}])]
    ['ece', 'esd']
    """
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["measure"], []).append(row)
    return found


def unseen(rows: Sequence[Row]) -> str:
    """Say that no change is seen, and the largest that an interval leaves possible.

    >>> unseen([{"measure": "ece", "low": -0.012, "high": 0.02}])
    'no change is seen, at most 2.0 points of ECE'
    """
    limits = []
    for measure, some in by_measure(rows).items():
        unit, scale, digits = WORDS[measure]
        most = scale * max(max(-row["low"], row["high"]) for row in some)
        limits.append(f"{most:.{digits}f} {unit}")
    *most_of_them, last = limits
    listed = f"{', '.join(most_of_them)} and {last}" if most_of_them else last
    return f"no change is seen, at most {listed}"


def counted(rows: Sequence[Row]) -> str:
    """Say in how many settings an interval lies above 0, and below it.

    >>> counted([{"low": 0.1, "high": 0.2}, {"low": -0.1, "high": 0.2}])
    'above 0 in 1, below in 0'
    """
    above, below, _ = signs(rows)
    return f"above 0 in {above}, below in {below}"


def verdict(rows: Sequence[Row]) -> str:
    """Judge the statement that a number is above 0, from its interval on each data set.

    >>> some = {"measure": "ece", "low": 0.1, "high": 0.2}
    >>> verdict([some, some | {"low": -0.1}])
    'confirmed on 1 of 2 data sets, open on the rest'
    >>> verdict([some | {"low": -0.1}])
    'open: no change is seen, at most 20.0 points of ECE'
    >>> verdict([some | {"low": -0.2, "high": -0.1}])
    'contradicted'
    """
    above, below, _ = signs(rows)
    if not (above or below):
        return f"open: {unseen(rows)}"
    if above == len(rows):
        return "confirmed"
    if below == len(rows):
        return "contradicted"
    if above and below:
        return f"mixed: for it on {above}, against it on {below} of {len(rows)} data sets"
    word, count = ("confirmed", above) if above else ("contradicted", below)
    return f"{word} on {count} of {len(rows)} data sets, open on the rest"


def no_improvement(rows: Sequence[Row]) -> str:
    """Judge the statement that nothing improves, by each measure; below 0 is an improvement.

    >>> ece = {"measure": "ece", "low": -0.01, "high": 0.02}
    >>> no_improvement([ece])
    'open: no change is seen, at most 2.0 points of ECE'
    >>> no_improvement([ece, {"measure": "esd", "low": -0.002, "high": -0.001}]).split("; ")[0]
    'not so here: ESD is better on 1 of 1 data sets'
    >>> no_improvement([ece | {"low": 0.01}])
    'confirmed: ECE is worse on 1 of 1 data sets'
    """
    counts = {name: (signs(some), some) for name, some in by_measure(rows).items()}
    better = [
        _where(name, "better", below, some)
        for name, ((_, below, _), some) in counts.items()
        if below
    ]
    worse = [
        _where(name, "worse", above, some)
        for name, ((above, _, _), some) in counts.items()
        if above
    ]
    rest = [row for (above, below, _), some in counts.values() if not above + below for row in some]
    if not (better or worse):
        return f"open: {unseen(rows)}"
    if not better:
        return "confirmed: " + ", ".join(worse)
    parts = ["not so here: " + ", ".join(better), *worse]
    return "; ".join([*parts, *([f"else {unseen(rest)}"] if rest else [])])


def worsening(rows: Sequence[Row]) -> str:
    """Judge the statement that calibration worsens, by each measure; above 0 is worse.

    >>> ece = {"measure": "ece", "low": -0.01, "high": 0.02}
    >>> worsening([ece])
    'open: no change is seen, at most 2.0 points of ECE'
    >>> worsening([ece, {"measure": "esd", "low": 0.001, "high": 0.002}]).split("; ")[0]
    'confirmed: ESD is worse on 1 of 1 data sets'
    """
    above, below, _ = signs(rows)
    words = no_improvement(rows)
    if above and not below:
        rest = [row for row in rows if row["low"] <= 0]
        return "; ".join([words, *([f"else {unseen(rest)}"] if rest else [])])
    return words.replace("not so here: ", "mixed: " if above else "contradicted: ")


def _where(measure: str, word: str, count: int, rows: Sequence[Row]) -> str:
    name = WORDS[measure][0].split(" of ")[1]
    return f"{name} is {word} on {count} of {len(rows)} data sets"


def negated(rows: Sequence[Row]) -> list[Row]:
    """Turn the sign of values and intervals.

    >>> negated([{"value": 1.0, "low": 0.0, "high": 3.0}])
    [{'value': -1.0, 'low': -3.0, 'high': -0.0}]
    """
    return [
        row | {"value": -row["value"], "low": -row["high"], "high": -row["low"]} for row in rows
    ]
