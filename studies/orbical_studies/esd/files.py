"""The study's results as four tidy CSV files, without loss beyond six digits, and back.

`results.csv` has one line a training run, `curves.csv` one a point of its curve over epochs,
`shifts.csv` one a shifted test set, `cost.csv` one a timed loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..pages import read_csv, write_csv
from .results import Row

PARTS = ("validation", "test", "test_ts", "test_vs")


def write(folder: Path, rows: Sequence[Row]) -> None:
    """Write the four files.

    Args:
        folder: where to.
        rows: of a results file.
    """
    runs = [row for row in rows if "test" in row]
    write_csv(folder / "results.csv", [_flat(row) for row in runs])
    for name in ("curve", "shifts"):
        points = [{"key": row["key"], **point} for row in runs for point in row.get(name, [])]
        write_csv(folder / f"{name.rstrip('s')}s.csv", points)
    write_csv(folder / "cost.csv", [row for row in rows if "step_ms" in row])


def read(folder: Path) -> list[Row]:
    """Read what `write` wrote.

    Args:
        folder: with the four files.

    Returns:
        The rows, as `write` was given them.
    """
    runs = {row["key"]: _nested(row) for row in read_csv(folder / "results.csv")}
    for name in ("curve", "shifts"):
        for point in read_csv(folder / f"{name.rstrip('s')}s.csv"):
            runs[point.pop("key")].setdefault(name, []).append(point)
    return [*runs.values(), *read_csv(folder / "cost.csv")]


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
