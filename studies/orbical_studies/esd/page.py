"""The ESD study's page: its files, tables and figures, from result lines alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from orbical.errors import InputError

from ..pages import Row, write_page
from ..trials import read_lines
from . import figures, files
from .settings import PAPER_TABLE_1
from .tables import TABLES, main_table


def tables_of(folder: Path) -> dict[str, str]:
    """Write all tables of the page from the CSV files of a folder."""
    rows = files.read(folder)
    return {name: table(rows) for name, table in TABLES.items()}


def latest(rows: Sequence[Row]) -> list[Row]:
    """One row a key, the last one, and of each data set the runs with most epochs.

    Args:
        rows: of one or several results files.
    """
    unique = list({row["key"]: row for row in rows}.values())
    longest: dict[str, int] = {}
    for row in unique:
        if "test" in row:
            longest[row["data"]] = max(longest.get(row["data"], 0), row["epochs"])
    return [row for row in unique if "test" not in row or row["epochs"] == longest[row["data"]]]


def report(results: Sequence[Path], page: Path) -> None:
    """Write CSV files and figures beside the page, and the page's tables; print the main ones.

    Args:
        results: results files (`.jsonl`), or one folder with the CSV files of an earlier report.
        page: the Markdown page with markers; files go to the folder of its name beside it.
    """
    if not page.is_file():
        raise InputError(f"page: there is no file {str(page)!r}; expected a page with markers")
    folder = page.with_suffix("")
    gathered = [
        row for path in results for row in (files.read(path) if path.is_dir() else read_lines(path))
    ]
    if not gathered:
        raise InputError(f"results: no rows in {', '.join(map(str, results))}")
    files.write(folder, latest(gathered))
    # Back from the files: what the page says is what the files say.
    rows = files.read(folder)
    for path in (write_page(page, tables_of(folder)), *figures.save_all(rows, folder)):
        print(f"wrote {path}")
    for data in PAPER_TABLE_1:
        print(f"\n{data}: ours over seeds [the paper's]\n{main_table(rows, data)}")
