"""The study's results as four tidy CSV files, without loss beyond six digits, and back.

`results.csv` has one line a training run, `curves.csv` one a point of its curve over epochs,
`shifts.csv` one a shifted test set, `cost.csv` one a timed loss.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orbical.errors import InputError

from .results import Row

PARTS = ("validation", "test", "test_ts", "test_vs")
TEXT = {"key", "data", "loss", "shift", "device"}
WHOLE = {"seed", "batch", "epochs", "epoch", "images"}


def write(folder: Path, rows: Sequence[Row]) -> None:
    """Write the four files.

    Args:
        folder: where to.
        rows: of a results file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    runs = [row for row in rows if "test" in row]
    _table(folder / "results.csv", [_flat(row) for row in runs])
    for name in ("curve", "shifts"):
        points = [{"key": row["key"], **point} for row in runs for point in row.get(name, [])]
        _table(folder / f"{name.rstrip('s')}s.csv", points)
    _table(folder / "cost.csv", [row for row in rows if "step_ms" in row])


def read(folder: Path) -> list[Row]:
    """Read what `write` wrote.

    Args:
        folder: with the four files.

    Returns:
        The rows, as `write` was given them.
    """
    runs = {row["key"]: _nested(row) for row in _lines(folder / "results.csv")}
    for name in ("curve", "shifts"):
        for point in _lines(folder / f"{name.rstrip('s')}s.csv"):
            runs[point.pop("key")].setdefault(name, []).append(point)
    return [*runs.values(), *_lines(folder / "cost.csv")]


def _flat(row: Row) -> dict[str, Any]:
    flat = {k: v for k, v in row.items() if k not in (*PARTS, "curve", "shifts")}
    for part in PARTS:
        flat |= {f"{part}.{name}": value for name, value in row[part].items()}
    return flat


def _nested(flat: dict[str, Any]) -> Row:
    row: Row = {}
    for name, value in flat.items():
        part, _, score = name.partition(".")
        if score:
            row.setdefault(part, {})[score] = value
        else:
            row[name] = value
    return row


def _table(path: Path, lines: Sequence[dict[str, Any]]) -> None:
    names = list(dict.fromkeys(name for line in lines for name in line))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, restval="", lineterminator="\n")
        writer.writeheader()
        for line in lines:
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in line.items()})


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        raise InputError(f"results: there is no file {str(path)!r}")
    with path.open(newline="") as file:
        return [
            {name: _value(name, text) for name, text in line.items() if text != ""}
            for line in csv.DictReader(file)
        ]


def _value(name: str, text: str) -> Any:
    if name in TEXT:
        return text
    return int(text) if name in WHOLE else float(text)
