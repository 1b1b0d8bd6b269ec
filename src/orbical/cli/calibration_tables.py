"""The output of `orbical calibration`: tables on the console, CSV and JSON."""

from __future__ import annotations

import csv
import itertools
import json
import math
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..calibration._interval import Interval

_CAPTION = "if calibrated: mean and range of a calibrated model with the same predictions; "
_CAPTION += "bold: a value outside that range"
_FIELDS = ("value", "low", "high", "calibrated", "calibrated_low", "calibrated_high")


def numbers(table: Mapping[str, Interval]) -> dict[str, dict[str, float]]:
    """Turn a table of intervals into plain numbers."""
    return {
        name: {field: float(getattr(found, field)) for field in _FIELDS}
        for name, found in table.items()
    }


def titled(measure: str) -> str:
    """Return the title of a measure.

    >>> titled("aleatoric_bleed, component 2")
    'aleatoric bleed, component 2'
    """
    from ..calibration import registry

    return registry.titled(measure)


def print_csv(rows: list[dict[str, Any]]) -> None:
    """Print rows as CSV, their keys first; what a row does not have stays empty."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    writer = csv.DictWriter(sys.stdout, keys, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def short(value: float) -> str:
    """Write a number in at most four decimals or five digits, and few where it is far from 1.

    >>> [short(value) for value in (0.57079, 427.36812, 16292.7, 3.2e-6, -1.24e7, 0.0)]
    ['0.5708', '427.37', '16293', '3.2e-06', '-1.2e+07', '0']
    """
    size = abs(value)
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if size < 1e-3 or size >= 1e5:
        return f"{value:.1e}"
    return f"{value:.{max(0, min(4, 4 - math.floor(math.log10(size))))}f}"


def span(low: float, high: float) -> str:
    """Write an interval; a dash where there is none, as around an infinite value."""
    if low != low or high != high:
        return "-"
    return f"[{short(low)}, {short(high)}]"


def print_json(answer: Any) -> None:
    """Print JSON that every parser reads: numbers that are not finite become null."""
    sys.stdout.write(json.dumps(_finite(answer), indent=2, allow_nan=False) + "\n")


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain_table(title: str) -> Any:
    """Make a table without frames: 80 columns hold every interval on one line."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    return Table(
        title=Text(title),
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=0,
    )


def _cell(text: str, style: str = "") -> Any:
    """Return a cell whose brackets the console does not read as markup."""
    from rich.text import Text

    return Text(text, style=style)


def print_tables(
    plain: dict[str, dict[str, dict[str, float]]], comparisons: list[dict[str, Any]], level: float
) -> None:
    """Print a table for each set of outputs, and one of their differences."""
    from rich.console import Console

    console = Console()
    for name, table in plain.items():
        shown = _plain_table(name)
        shown.caption = _CAPTION
        for title in ("measure", "value", f"{level:.0%} interval", "if calibrated", "its range"):
            shown.add_column(title, justify="left" if title == "measure" else "right")
        for measure, row in table.items():
            shown.add_row(
                titled(measure),
                _cell(short(row["value"]), "bold" if _beyond(measure, row) else ""),
                _cell(span(row["low"], row["high"])),
                short(row["calibrated"]),
                _cell(span(row["calibrated_low"], row["calibrated_high"])),
            )
        console.print(shown)
        console.print()
    if comparisons:
        console.print("Differences on the same samples, bold if 0 is outside the interval")
        console.print()
    by_pair = itertools.groupby(comparisons, key=lambda row: f"{row['a']} minus {row['b']}")
    for title, rows in by_pair:
        console.print(_comparison_table(title, list(rows), level))
        console.print()


def _beyond(measure: str, row: dict[str, float]) -> bool:
    """Check whether a value is outside a calibrated model's range: above for an error, or for a
    mean on either side.
    """
    from ..calibration import MEASURES

    mean = measure in MEASURES and MEASURES[measure].interval == "bootstrap"
    below = mean and row["value"] < row["calibrated_low"]
    return below or row["value"] > row["calibrated_high"]


def _comparison_table(title: str, comparisons: list[dict[str, Any]], level: float) -> Any:
    shown = _plain_table(title)
    for name in ("measure", "difference", f"{level:.0%} interval", "p"):
        shown.add_column(name, justify="left" if name == "measure" else "right")
    for row in comparisons:
        apart = row["low"] > 0 or row["high"] < 0
        shown.add_row(
            titled(row["measure"]),
            _cell(short(row["difference"]), "bold" if apart else ""),
            _cell(span(row["low"], row["high"])),
            small_probability(row["p_value"]),
        )
    return shown


def small_probability(value: float) -> str:
    """Write a p-value in three decimals.

    >>> small_probability(0.04), small_probability(1e-9)
    ('0.040', '< 0.001')
    """
    return "< 0.001" if value < 5e-4 else f"{value:.3f}"


def print_groups(
    found: dict[str, dict[str, tuple[float, float | None]]], seeds: dict[str, int]
) -> None:
    """Print mean and standard deviation over seeds, a column for each group."""
    from rich.console import Console

    shown = _plain_table("Mean and standard deviation over seeds")
    shown.add_column("measure")
    for name in found:
        shown.add_column(_cell(f"{name} ({seeds[name]})"), justify="right")
    for measure in dict.fromkeys(key for table in found.values() for key in table):
        cells = []
        for table in found.values():
            mean, spread = table.get(measure, (float("nan"), None))
            cells.append(short(mean) if spread is None else f"{short(mean)} ± {short(spread)}")
        shown.add_row(titled(measure), *cells)
    Console().print(shown)


_FEW_COMPONENTS = 8


def print_orbit(rows: list[dict[str, Any]], level: float) -> None:
    """Print each measure at the identity, over the orbit and at its worst, with intervals.

    Of many components only those with the most bleed are shown.
    """
    from rich.console import Console

    console = Console()
    for model in dict.fromkeys(row["model"] for row in rows):
        of_model = [row for row in rows if row["model"] == model]
        apart = [row for row in of_model if "component" in row["measure"]]
        most = sorted(apart, key=lambda row: -row["mean"])[:_FEW_COMPONENTS]
        console.print(_orbit_table(model, [r for r in of_model if r not in apart or r in most]))
        if len(apart) > len(most):
            console.print(f"the {len(most)} of {len(apart)} components with the most bleed")
        console.print()
    console.print(
        f"In brackets: {level:.0%} intervals. Mean: of the measure at each element, with the mean "
        "of the elements' intervals. Pooled: the measure of all elements' outputs together. Worst: "
        "the interval of that element, which does not account for its selection."
    )


def _orbit_table(model: str, rows: list[dict[str, Any]]) -> Any:
    from ..calibration import PLACES

    shown = _plain_table(f"{model}, along the orbit")
    shown.add_column("measure")
    for title in PLACES.values():
        first, _, rest = title.rpartition(" the ")
        shown.add_column(f"{first}\nthe {rest}", justify="right", no_wrap="worst" not in rest)
    for row in rows:
        values = (
            f"{short(row[place])}\n{span(row[f'{place}_low'], row[f'{place}_high'])}"
            for place in PLACES
        )
        *others, worst = values
        cells = map(_cell, (*others, f"{worst}\n{row['worst_element']}"))
        shown.add_row(titled(row["measure"]), *cells)
    return shown
