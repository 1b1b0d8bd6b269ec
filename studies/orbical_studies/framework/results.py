"""Tidy tables of results, one CSV file each."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .paths import existing_file

if TYPE_CHECKING:
    from pandas import DataFrame

Row = Mapping[str, Any]


class Results:
    """The result tables of a study; `results["angles"]` reads `angles.csv` when first asked for.

    Args:
        folder: Of the CSV files; made on the first write.
        work: Folder of large files that steps hand to each other, such as packed data and
            predictions; default a folder `work` inside `folder`.

    Example:
        >>> import tempfile
        >>> results = Results(Path(tempfile.mkdtemp()))
        >>> _ = results.write("errors", [{"group": "C4", "n": 4, "error": 0.25}, {"group": "C1"}])
        >>> results["errors"]["error"].tolist(), "other" in results
        ([0.25, nan], False)
    """

    def __init__(self, folder: Path, work: Path | None = None) -> None:
        self.folder, self.work = folder, work or folder / "work"
        self._read: dict[str, DataFrame] = {}

    def __getitem__(self, name: str) -> DataFrame:
        """Read a table; empty cells are missing values. Callers must not change it in place."""
        if name not in self._read:
            import pandas as pd

            self._read[name] = pd.read_csv(
                existing_file(self._path(name), "results", "run the study first"),
                keep_default_na=False,  # a method may be called "None" or "NA"
                na_values=["", "nan"],
            )
        return self._read[name]

    def __contains__(self, name: str) -> bool:
        return self._path(name).is_file()

    def write(self, name: str, rows: DataFrame | Iterable[Row]) -> Path:
        """Write a table: floats with six significant digits, missing values empty.

        Args:
            name: Of the table.
            rows: A data frame, whose index is not written, or one mapping a row.

        Returns:
            The file that was written.
        """
        frame: Any = rows if hasattr(rows, "columns") else None
        lines = [dict(row) for row in (rows if frame is None else frame.to_dict("records"))]
        names = list(dict.fromkeys(name for line in lines for name in line))
        if frame is not None:  # whose missing values are NaN
            lines = [{k: v for k, v in line.items() if v == v} for line in lines]
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, names, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows({k: _text(v) for k, v in line.items()} for line in lines)
        self._read.pop(name, None)
        return path

    def add(self, name: str, rows: Iterable[Row], key: Sequence[str] = ("key",)) -> Path:
        """Write rows beside those of a table, in the place of those with the same key.

        >>> import tempfile
        >>> results = Results(Path(tempfile.mkdtemp()))
        >>> _ = results.add("errors", [{"key": "C1", "error": 0.1}, {"key": "C4", "error": 0.4}])
        >>> _ = results.add("errors", [{"key": "C1", "error": 0.2}])
        >>> results["errors"]["error"].tolist()
        [0.4, 0.2]
        """
        new = list(rows)
        replaced = {tuple(row[column] for column in key) for row in new}
        old = self[name].to_dict("records") if name in self else []
        kept = [row for row in old if tuple(row[column] for column in key) not in replaced]
        return self.write(name, [*({k: v for k, v in row.items() if v == v} for row in kept), *new])

    def apart(self, folder: str) -> Results:
        """Return the same tables, with large files in a folder of their own."""
        return Results(self.folder, self.work / folder)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.csv"


def rows_of(head: Row, columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Make one row of each place of some arrays, every row beginning with the same cells.

    >>> import numpy as np
    >>> rows_of({"network": "plain"}, {"angle": np.array([0, 90])})
    [{'network': 'plain', 'angle': 0}, {'network': 'plain', 'angle': 90}]
    """
    places = zip(*(values.tolist() for values in columns.values()), strict=True)
    return [{**head, **dict(zip(columns, place, strict=True))} for place in places]


def where(rows: DataFrame, **values: Any) -> DataFrame:
    """Choose the rows of a table that have some values in some columns.

    >>> import pandas as pd
    >>> errors = pd.DataFrame({"group": ["C4", "C4", "C1"], "seed": [0, 1, 0]})
    >>> where(errors, group="C4", seed=1).index.tolist()
    [1]
    """
    return rows[(rows[[*values]] == [*values.values()]).all(axis=1)]


def _text(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value
