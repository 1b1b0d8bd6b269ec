"""The output of `orbical calibration`: tables on the console and in LaTeX, CSV and JSON."""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from .._text import csv_text
from .sheets import Cell, Number, Span, latex_sheet, print_sheet

if TYPE_CHECKING:
    from ..calibration.intervals.interval_ends import Interval

Plain = dict[str, dict[str, dict[str, float]]]
"""Numbers by model and measure."""

_CAPTION = "if calibrated: mean and range of a calibrated model with the same predictions; "
_CAPTION += "bold: a value outside that range"
_FIELDS = ("value", "low", "high", "calibrated", "calibrated_low", "calibrated_high")
_FEW_COMPONENTS = 8
_ERRORS = ("ece", "mahalanobis_calibration")
"""Measures whose finding is said, the first that a table has."""


def numbers(table: Mapping[str, Interval]) -> dict[str, dict[str, float]]:
    """Turn a table of intervals into plain numbers."""
    return {
        name: {field: float(getattr(found, field)) for field in _FIELDS}
        for name, found in table.items()
    }


def print_csv(rows: list[dict[str, Any]]) -> None:
    """Print rows as CSV, their keys first; what a row does not have stays empty."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    sys.stdout.write(csv_text([keys, *([row.get(key) for key in keys] for row in rows)]))


def print_json(answer: Any) -> None:
    """Print JSON that every parser reads: numbers that are not finite become null."""
    sys.stdout.write(json.dumps(_finite(answer), indent=2, allow_nan=False) + "\n")


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def show_measures(plain: Plain, level: float, latex_corner: str | None = None) -> None:
    """Print a table of the measures of each model; in LaTeX one table for all of them."""
    headings = ["measure", "value", f"{level:.0%} interval", "if calibrated", "its range"]
    if latex_corner is not None:
        rows = [[name, *row] for name, table in plain.items() for row in _measure_rows(table)]
        typer.echo(latex_sheet([latex_corner, *headings], rows, words=2))
        return
    for name, table in plain.items():
        print_sheet(name, headings, _measure_rows(table), _CAPTION + _finding(table))


def _finding(table: dict[str, dict[str, float]]) -> str:
    """Describe the error of calibration that the data show, or the largest they could not show."""
    name = next((name for name in _ERRORS if name in table), None)
    if name is None:
        return ""
    from ..calibration import error_finding

    said = error_finding(*(table[name][end] for end in ("value", "low", "high")))
    return said and f". {_titled(name)}: {said}"


def _measure_rows(table: dict[str, dict[str, float]]) -> list[list[Cell]]:
    return [
        [
            _titled(measure),
            Number(row["value"], bold=_beyond(measure, row)),
            Span(row["low"], row["high"]),
            Number(row["calibrated"]),
            Span(row["calibrated_low"], row["calibrated_high"]),
        ]
        for measure, row in table.items()
    ]


def _titled(measure: str) -> str:
    from ..calibration.registry import titled

    return titled(measure)


def _beyond(measure: str, row: dict[str, float]) -> bool:
    """Check whether a value is outside a calibrated model's range: above for an error, or for a
    mean on either side.
    """
    from ..calibration import MEASURES

    mean = measure in MEASURES and MEASURES[measure].interval == "bootstrap"
    below = mean and row["value"] < row["calibrated_low"]
    return below or row["value"] > row["calibrated_high"]


def show_comparisons(comparisons: list[dict[str, Any]], level: float, latex: bool) -> None:
    """Print the differences of every two models, if there are any."""
    headings = ["measure", "difference", f"{level:.0%} interval", "p"]
    by_pair = itertools.groupby(comparisons, key=lambda row: (row["a"], row["b"]))
    sheets = {pair: [_difference(row) for row in rows] for pair, rows in by_pair}
    if latex and sheets:
        rows = [[*pair, *row] for pair, sheet in sheets.items() for row in sheet]
        typer.echo(latex_sheet(["a", "b", "measure", "a - b", *headings[2:]], rows, words=3))
    elif sheets:
        typer.echo("Differences on the same samples, bold if 0 is outside the interval\n")
        for (a, b), sheet in sheets.items():
            print_sheet(f"{a} minus {b}", headings, sheet)


def _difference(row: dict[str, Any]) -> list[Cell]:
    apart = row["low"] > 0 or row["high"] < 0
    small = row["p_value"] < 5e-4
    return [
        _titled(row["measure"]),
        Number(row["difference"], bold=apart),
        Span(row["low"], row["high"]),
        "< 0.001" if small else f"{row['p_value']:.3f}",
    ]


def latex_by_method(cells: Mapping[str, Mapping[str, Number]], corner: str) -> str:
    """Write a row for each method and a column for each measure, in LaTeX."""
    listed = list(dict.fromkeys(key for row in cells.values() for key in row))
    rows = [[name, *(row.get(key, "--") for key in listed)] for name, row in cells.items()]
    return latex_sheet([corner, *map(_titled, listed)], rows)


def print_groups(cells: Mapping[str, Mapping[str, Number]], seeds: Mapping[str, int]) -> None:
    """Print mean and standard deviation over seeds, a column for each group."""
    listed = dict.fromkeys(key for row in cells.values() for key in row)
    rows = [[_titled(key), *(row.get(key, "-") for row in cells.values())] for key in listed]
    headings = ["measure", *(f"{name} ({seeds[name]})" for name in cells)]
    print_sheet("Mean and standard deviation over seeds", headings, rows)


def show_orbit(rows: list[dict[str, Any]], level: float, latex: bool) -> None:
    """Print each measure at the identity, over the orbit and at its worst, with intervals.

    On the console, of many components only those with the most bleed are shown.
    """
    from ..calibration import PLACES

    if latex:
        cells = [[row["model"], *_orbit_row(row)] for row in rows]
        typer.echo(latex_sheet(["model", "measure", *PLACES.values()], cells, words=2))
        return
    headings = ["measure", *("\nthe ".join(t.rsplit(" the ", 1)) for t in PLACES.values())]
    for model in dict.fromkeys(row["model"] for row in rows):
        of_model = [row for row in rows if row["model"] == model]
        apart = [row for row in of_model if "component" in row["measure"]]
        most = sorted(apart, key=lambda row: -row["mean"])[:_FEW_COMPONENTS]
        shown = [_orbit_row(row) for row in of_model if row not in apart or row in most]
        print_sheet(f"{model}, along the orbit", headings, shown)
        if len(apart) > len(most):
            typer.echo(f"the {len(most)} of {len(apart)} components with the most bleed\n")
    typer.echo(
        f"In brackets: {level:.0%} intervals. Mean: mean of the measure over the elements, with\n"
        "the mean of their intervals. Pooled: the measure of the outputs of all elements\n"
        "together; its interval is known for the ECE only. Worst: the interval of that\n"
        "element, which does not account for its selection."
    )


def _orbit_row(row: dict[str, Any]) -> list[Cell]:
    from ..calibration import PLACES

    values = [
        Number(
            row[place],
            interval=(row[f"{place}_low"], row[f"{place}_high"]),
            note=row["worst_element"] if place == "worst" else "",
        )
        for place in PLACES
    ]
    return [_titled(row["measure"]), *values]
