"""What `orbical calibration` prints: tables for people, for programs and for papers."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..calibration.intervals import Interval

NAMES = {
    "accuracy": "accuracy",
    "nll": "NLL",
    "brier": "Brier",
    "ece": "ECE",
    "ece_mass": "ECE, equal mass",
    "smooth_ece": "smooth ECE",
    "sb_ece": "SB-ECE",
    "ks": "KS",
    "esd": "ESD",
    "mmce": "MMCE",
    "skce": "SKCE",
    "classwise_ece": "class-wise ECE",
    "gaussian_nll": "NLL",
    "gaussian_crps": "CRPS",
    "ence": "ENCE",
    "uce": "UCE",
    "quantile_calibration": "quantile calibration",
    "mahalanobis_calibration": "Mahalanobis calibration",
    "gence": "GENCE",
    "gence_sq": "GENCE, squared",
    "gence_fibre": "GENCE, by fibre",
    "gence_sq_fibre": "GENCE, squared, by fibre",
    "regression_esd": "regression ESD",
    "regression_esd_normalised": "regression ESD, normalised",
}
_FIELDS = ("value", "low", "high", "calibrated", "calibrated_low", "calibrated_high")


def numbers(table: Mapping[str, Interval]) -> dict[str, dict[str, float]]:
    """Turn a table of intervals into plain numbers."""
    return {
        name: {field: float(getattr(found, field)) for field in _FIELDS}
        for name, found in table.items()
    }


def print_csv(rows: list[dict[str, Any]]) -> None:
    """Print rows as CSV, their keys first."""
    writer = csv.DictWriter(sys.stdout, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def short(value: float) -> str:
    """Write a number in four digits."""
    if value == 0:
        return "0"
    return f"{value:.4f}" if abs(value) >= 1e-3 else f"{value:.1e}"


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
    """Keep brackets as they are; a console would read them as its own markup."""
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
        shown.caption = "if calibrated: its mean for a model whose confidence is right"
        for title in ("measure", "value", f"{level:.0%} interval", "if calibrated", "its range"):
            shown.add_column(title, justify="left" if title == "measure" else "right")
        for measure, row in table.items():
            beyond = row["value"] > row["calibrated_high"] and measure != "accuracy"
            value = short(row["value"])
            shown.add_row(
                NAMES.get(measure, measure),
                _cell(value, "bold" if beyond else ""),
                _cell(span(row["low"], row["high"])),
                short(row["calibrated"]),
                _cell(span(row["calibrated_low"], row["calibrated_high"])),
            )
        console.print(shown)
        console.print()
    if comparisons:
        console.print(_comparison_table(comparisons, level))


def _comparison_table(comparisons: list[dict[str, Any]], level: float) -> Any:
    shown = _plain_table("Differences on the same samples")
    for title in ("a", "b", "measure", "a - b", f"{level:.0%} interval", "p"):
        name = title in ("a", "b")
        left = name or title == "measure"
        shown.add_column(
            title, justify="left" if left else "right", overflow="fold", no_wrap=not name
        )
    for row in comparisons:
        apart = row["low"] > 0 or row["high"] < 0
        difference = short(row["difference"])
        shown.add_row(
            _cell(row["a"]),
            _cell(row["b"]),
            NAMES[row["measure"]],
            _cell(difference, "bold" if apart else ""),
            _cell(span(row["low"], row["high"])),
            "< 0.001" if row["p_value"] < 5e-4 else f"{row['p_value']:.3f}",
        )
    return shown


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
        shown.add_row(NAMES.get(measure, measure), *cells)
    Console().print(shown)


def latex_table(cells: Mapping[str, Mapping[str, str]], corner: str) -> str:
    r"""Write a table with a row for each method and a column for each measure.

    >>> print(latex_table({"esd_a": {"ece": "$0.01$"}}, "method"))
    \begin{tabular}{lr}
    \hline
    method & ECE \\
    \hline
    esd\_a & $0.01$ \\
    \hline
    \end{tabular}
    """
    measures = list(dict.fromkeys(key for row in cells.values() for key in row))
    lines = [
        f"\\begin{{tabular}}{{l{'r' * len(measures)}}}",
        "\\hline",
        " & ".join([corner, *(NAMES.get(key, _escaped(key)) for key in measures)]) + r" \\",
        "\\hline",
        *(
            " & ".join([_escaped(name), *(row.get(key, "--") for key in measures)]) + r" \\"
            for name, row in cells.items()
        ),
        "\\hline",
        "\\end{tabular}",
    ]
    return "\n".join(lines)


def _escaped(text: str) -> str:
    for sign in "&%$#_{}":
        text = text.replace(sign, f"\\{sign}")
    return text


def print_orbit(rows: list[dict[str, Any]]) -> None:
    """Print what a measure is at the identity, over the orbit and at its worst."""
    from rich.console import Console

    shown = _plain_table("Along the orbit")
    titles = ("model", "measure", "at the identity", "mean over the orbit", "worst", "where")
    for title in titles:
        left = title in ("model", "measure", "where")
        shown.add_column(title, justify="left" if left else "right")
    for row in rows:
        values = (short(row[key]) for key in ("identity", "orbit", "worst"))
        where = _cell(row["worst_element"])
        shown.add_row(_cell(row["model"]), NAMES[row["measure"]], *values, where)
    Console().print(shown)
