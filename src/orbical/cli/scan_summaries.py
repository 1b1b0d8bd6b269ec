"""What the commands print of a scan at its end: a summary, and the audit of molecules."""

from __future__ import annotations

import math
from operator import attrgetter
from typing import TYPE_CHECKING

from .._lazy import xr
from .._text import counted, number, percent
from .printing import Cell, Columns, Number, Sheet, print_results

if TYPE_CHECKING:
    from ..store import Scan

_MOST_FAILURES = 10
_SHARES = {
    "accuracy": "accuracy",
    "confidence": "confidence",
    "auroc": "AUROC",
    "sensitivity": "sensitivity",
    "specificity": "specificity",
    "changed": "predictions that change on the orbit",
    "changed_pairs": "pairs of elements that disagree",
}


def print_summary(scan: Scan) -> None:
    """Print a column a model: how good it is at the identity, over the orbit and at its worst."""
    from .._console import Console
    from ..groups import PLACES
    from ..nero import summary
    from ..tasks import CLASS_PROBABILITY

    table = summary(scan)
    rows: list[list[Cell]] = []
    shown = [name for name in ("score", *_SHARES) if name in table and "place" in table[name].dims]
    if scan.record.score.meaning == CLASS_PROBABILITY and "confidence" in shown:
        shown.remove("score")  # it adds little to accuracy and confidence
    for name in shown:
        words = table[name].attrs["meaning"] if name == "score" else _SHARES[name]
        for place in map(str, table["place"].values):
            values = table[name].sel(place=place).values
            rows.append([f"{words}, {PLACES[place]}", *(_in_cell(value, name) for value in values)])
    rows.append(["worst element", *map(str, table["worst_name"].values)])
    rows.append(["invariance gap", *map(number, table["invariance_gap"].values)])
    for name in ("changed", "changed_pairs"):
        if name in table:
            rows.append([_SHARES[name], *(_in_cell(share, name) for share in table[name].values)])
    if (enough := _enough_elements_in_summary(scan)) is not None:
        rows.append(["elements that are enough for the mean", *enough])
    defect = number(table["action_defect"])
    rows.append(["action defect (of the data)", *[defect] * table.sizes["model"]])
    if table.attrs["headline"]:
        Console(soft_wrap=True, markup=False, highlight=False).print(table.attrs["headline"])
    title = f"{counted(scan.record.data.samples, 'sample')}, {scan.group.spec}"
    print_results("text", None, [Sheet(title, ["", *map(str, table["model"].values)], rows)])


def _enough_elements_in_summary(scan: Scan) -> list[Cell] | None:
    """Return how many elements each model needs; None for groups whose spectrum is not known."""
    from ..errors import InputError
    from ..nero import enough_elements

    try:
        numbers = enough_elements(scan)["enough"].values.tolist()
    except InputError:
        return None
    return [str(count) if count > 0 else f"more than {len(scan.group)}" for count in numbers]


def _in_cell(value: float, name: str) -> str:
    if math.isnan(value):
        return "none"  # no detection at all, say
    return percent(value, 1) if name in _SHARES else number(value)


def print_positions(scan: Scan) -> None:
    """Print for each model how often each position is chosen, and what is right there."""
    from ..nero import position_bias

    print_results("text", None, position_summary_sheets(position_bias(scan)))


def position_summary_sheets(table: xr.Dataset) -> list[Sheet]:
    """Return a sheet for each model: a row a position, with intervals."""
    sheets = []
    for model in map(str, table["model"].values):
        about = table.sel(model=model)
        columns = _POSITION_COLUMNS.copy()
        caption = ""
        if about["log_bias"].notnull().all():  # needs probabilities
            columns["log bias"] = lambda row: Number(float(row["log_bias"]))
            caption = "log bias: what the model adds to the logit of a position"
        if "accuracy" in about:
            columns["accuracy, right answer here"] = _accuracy
        rows = [about.isel(position=place) for place in range(about.sizes["position"])]
        title = f"{model}: positions of answers under {table.attrs['group']}"
        sheets.append(Sheet.of(title, rows, columns, caption=caption))
    return sheets


def _accuracy(row: xr.Dataset) -> str:
    return share_with_interval(row, "accuracy")


_POSITION_COLUMNS: Columns = {
    "position": lambda row: str(row["position"].values),
    "chosen": lambda row: percent(row["chosen"], 1),
    "fair": lambda row: percent(row["fair"], 1),
    "chosen - fair": lambda row: share_with_interval(row, "bias"),
}


def share_with_interval(row: xr.Dataset, name: str, error: float = 0.0) -> str:
    """Write a share in percent with its ends, and with its standard error if that shows."""
    value, low, high = (percent(row[f"{name}{end}"], 1) for end in ("", "_low", "_high"))
    return f"{value}{f' ± {percent(error, 1)}' if error >= 5e-4 else ''} [{low}, {high}]"


def _number_or_nothing(value: float | None) -> Cell:
    return "" if value is None else Number(value)


_SIZES: Columns = {
    "model": lambda row: row.model,
    "quantity": lambda row: f"{row.quantity}, {row.unit}",
    "largest": lambda row: Number(row.largest),
    "root mean square": lambda row: Number(row.usual),
    "size": lambda row: _number_or_nothing(row.size),
}
_ERRORS: Columns = {"mean absolute error": lambda row: _number_or_nothing(row.error)}
_WHERE = ("model", "quantity", "molecule", "atom", "rotation")
_PLACES: Columns = {name: attrgetter(name) for name in _WHERE}


def print_audit(scan: Scan) -> None:
    """Print the largest violation of each model in each quantity, and the failures."""
    from .._console import Console
    from ..nero import molecule_name, violations

    rows = violations(scan)
    title = f"Largest violations of equivariance under {scan.group.spec}"
    known = any(row.error is not None for row in rows)
    sheets = [
        Sheet.of(title, rows, _SIZES | _ERRORS if known else _SIZES),
        Sheet.of("Where they are largest", rows, _PLACES),  # one table is too wide for 80 columns
    ]
    print_results("text", None, sheets)
    console = Console(soft_wrap=True, markup=False, highlight=False)
    for row in rows:
        console.print(str(row))
    for model in scan.models:
        if model not in {row.model for row in rows}:
            console.print(f"{model}: not decided, no molecule has results at two elements")
    for model, failed in scan.failures.items():
        if failed:
            numbers = scan.data["numbers"].sel(model=model).values
            lines: list[list[Cell]] = []
            for one in failed[:_MOST_FAILURES]:
                name = molecule_name(scan, one["sample"], numbers[one["sample"]])
                lines.append([name, f"{one['places']} of {len(scan.group)}", one["error"]])
            if len(failed) > _MOST_FAILURES:
                lines.append([f"and {len(failed) - _MOST_FAILURES} more", "", ""])
            title = f"{model} failed on {len(failed)} molecules"
            print_results("text", None, [Sheet(title, ["molecule", "rotations", "error"], lines)])
