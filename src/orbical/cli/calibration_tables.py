"""What `orbical calibration` prints: tables for people, for programs and for papers."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..calibration.ends import Interval

NAMES = {
    "accuracy": "accuracy",
    "nll": "NLL",
    "brier": "Brier",
    "ece": "ECE",
    "brier_calibration": "Brier, calibration",
    "brier_refinement": "Brier, refinement",
    "ece_l2": "ECE, l2",
    "ece_max": "ECE, largest",
    "ece_mass": "ECE, equal mass",
    "smooth_ece": "smooth ECE",
    "sb_ece": "SB-ECE",
    "ks": "KS",
    "esd": "ESD",
    "mmce": "MMCE",
    "skce": "SKCE",
    **{
        f"classwise_{name.lower()}": f"class-wise {name}"
        for name in ("ECE", "KS", "ESD", "MMCE", "SKCE")
    },
    "squared_error": "squared error",
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
    "aleatoric_bleed": "aleatoric bleed",
}
_FIELDS = ("value", "low", "high", "calibrated", "calibrated_low", "calibrated_high")


def numbers(table: Mapping[str, Interval]) -> dict[str, dict[str, float]]:
    """Turn a table of intervals into plain numbers."""
    return {
        name: {field: float(getattr(found, field)) for field in _FIELDS}
        for name, found in table.items()
    }


def titled(measure: str) -> str:
    """Give the name that people know a measure by.

    >>> titled("aleatoric_bleed, component 2")
    'aleatoric bleed, component 2'
    """
    name, comma, rest = measure.partition(",")
    return NAMES.get(measure, NAMES.get(name, name) + comma + rest)


def print_csv(rows: list[dict[str, Any]]) -> None:
    """Print rows as CSV, their keys first; what a row does not have stays empty."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    writer = csv.DictWriter(sys.stdout, keys, lineterminator="\n")
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
                titled(measure),
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
            titled(row["measure"]),
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
        shown.add_row(titled(measure), *cells)
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
    titles = [corner, *(NAMES.get(key, key) for key in measures)]
    rows = [
        [_escaped(name), *(row.get(key, "--") for key in measures)] for name, row in cells.items()
    ]
    return _tabular(titles, rows, left=1)


def latex_numbers(plain: dict[str, dict[str, dict[str, float]]], corner: str, level: float) -> str:
    """Write a row for each measure of each model: value, interval, and the calibrated values."""
    rows = [
        [
            _escaped(name),
            _escaped(titled(measure)),
            f"${short(row['value'])}$",
            f"${span(row['low'], row['high'])}$",
            f"${short(row['calibrated'])}$",
            f"${span(row['calibrated_low'], row['calibrated_high'])}$",
        ]
        for name, table in plain.items()
        for measure, row in table.items()
    ]
    titles = [corner, "measure", "value", f"{level:.0%} interval", "if calibrated", "its range"]
    return _tabular(titles, rows, left=2)


def latex_orbit(rows: list[dict[str, Any]]) -> str:
    """Write a row for each measure of each model along the orbit, intervals behind the values."""
    places = ("identity", "orbit", "worst")
    cells = [
        [
            _escaped(row["model"]),
            _escaped(titled(row["measure"])),
            *(
                f"${short(row[place])}$ ${span(row[f'{place}_low'], row[f'{place}_high'])}$"
                for place in places
            ),
            f"${short(row['orbit_calibrated'])}$",
            _escaped(row["worst_element"]),
        ]
        for row in rows
    ]
    titles = ["model", "measure", "at the identity", "over the orbit", "worst", "if calibrated"]
    return _tabular([*titles, "where"], cells, left=2)


def latex_comparisons(comparisons: list[dict[str, Any]], level: float) -> str:
    """Write a row for each difference of two models."""
    rows = [
        [
            _escaped(row["a"]),
            _escaped(row["b"]),
            _escaped(titled(row["measure"])),
            f"${short(row['difference'])}$",
            f"${span(row['low'], row['high'])}$",
            "$< 0.001$" if row["p_value"] < 5e-4 else f"${row['p_value']:.3f}$",
        ]
        for row in comparisons
    ]
    return _tabular(["a", "b", "measure", "a - b", f"{level:.0%} interval", "p"], rows, left=3)


def _tabular(titles: list[str], rows: list[list[str]], left: int) -> str:
    """Write a table whose cells are LaTeX already; the first columns are set to the left."""
    lines = [
        f"\\begin{{tabular}}{{{'l' * left}{'r' * (len(titles) - left)}}}",
        "\\hline",
        " & ".join(_escaped(title) for title in titles) + r" \\",
        "\\hline",
        *(" & ".join(row) + r" \\" for row in rows),
        "\\hline",
        "\\end{tabular}",
    ]
    return "\n".join(lines)


def _escaped(text: str) -> str:
    for sign in "&%$#_{}":
        text = text.replace(sign, f"\\{sign}")
    return text


_FEW_COMPONENTS = 8


def print_orbit(rows: list[dict[str, Any]], level: float) -> None:
    """Print what a measure is at the identity, over the orbit and at its worst, with intervals.

    Of many components only those that bleed most are shown.
    """
    from rich.console import Console

    console = Console()
    for model in dict.fromkeys(row["model"] for row in rows):
        of_model = [row for row in rows if row["model"] == model]
        apart = [row for row in of_model if "component" in row["measure"]]
        most = sorted(apart, key=lambda row: -row["orbit"])[:_FEW_COMPONENTS]
        console.print(_orbit_table(model, [r for r in of_model if r not in apart or r in most]))
        if len(apart) > len(most):
            console.print(f"the {len(most)} of {len(apart)} components that bleed most")
        console.print()
    console.print(
        f"in brackets: {level:.0%} intervals; over the orbit the mean of the elements' intervals"
    )


def _orbit_table(model: str, rows: list[dict[str, Any]]) -> Any:
    shown = _plain_table(f"{model}, along the orbit")
    for title in ("measure", "at the identity", "over the orbit", "worst", "where"):
        shown.add_column(title, justify="left" if title in ("measure", "where") else "right")
    for row in rows:
        values = (
            _cell(f"{short(row[place])}\n{span(row[f'{place}_low'], row[f'{place}_high'])}")
            for place in ("identity", "orbit", "worst")
        )
        shown.add_row(titled(row["measure"]), *values, _cell(row["worst_element"]))
    return shown
