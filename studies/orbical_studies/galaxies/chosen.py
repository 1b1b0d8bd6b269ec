"""Contrasts on photographs: of each setting, the mean of each catalogue, how they are written."""

from __future__ import annotations

from collections.abc import Sequence

from ..pages import Row
from .kinds import kinds
from .numbers import Numbers, points, thousandths, with_interval

TO_LARGEST = {"plain": "gain", "wide": "over wide"}
"""The contrast that leads from a plain network to the largest group."""


def by_setting(numbers: Numbers, contrast: str, measure: str) -> list[Row]:
    """Rows of each catalogue, family and blur."""
    rows = numbers.contrast(contrast, measure)
    return [r for r in rows if r["data"] in numbers.photographs and r["family"] != "both"]


def by_catalogue(numbers: Numbers, contrast: str, measure: str) -> list[Row]:
    """Rows of the mean over families and blurs, one a catalogue."""
    rows = numbers.contrast(contrast, measure, family="both")
    return [row for row in rows if row["data"] in numbers.photographs]


def value_range(rows: Sequence[Row]) -> str:
    """Write the least and the largest value."""
    values = [row["value"] for row in rows]
    return f"{points(min(values))} to {points(max(values))} points"


def named(rows: Sequence[Row]) -> str:
    """Write the mean over families and blurs of each catalogue.

    >>> named([{"data": "efigi", "measure": "ece", "value": 0.01, "low": 0.0, "high": 0.02}])
    'EFIGI +1.0 [0.0, +2.0]'
    >>> named([])
    'of neither sign throughout'
    """
    if not rows:
        return "of neither sign throughout"
    return ", ".join(
        f"{Numbers.title(r['data'])} "
        + with_interval(r, thousandths if r["measure"] == "esd" else points)
        for r in rows
    )


def signed_rows(numbers: Numbers, contrast: str, reference: str) -> list[Row]:
    """Give the contrast of confidence less accuracy where a lower one is a better one.

    That is where both networks, in the mean over blurs, are too confident rather than too unsure.
    """
    kept = {}
    for change in by_catalogue(numbers, TO_LARGEST[reference], "overconfidence"):
        before = kinds(numbers, change["data"])[reference].overconfidence
        kept[change["data"]] = min(before, before + change["value"]) >= 0
    rows = by_catalogue(numbers, contrast, "overconfidence")
    return [row for row in rows if kept[row["data"]]]
