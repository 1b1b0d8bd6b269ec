"""The Swiss roll study's page: its tables and figures, from its CSV file alone."""

from __future__ import annotations

from pathlib import Path

from ..pages import read_csv, write_page
from .figures import bias_figure, main_figure, worlds_figure
from .findings import findings, trend
from .tables import accuracy_table, bias_table, ece_table, epochs_table, settings_table

TABLES = {
    "settings": settings_table,
    "findings": findings,
    "accuracy": accuracy_table,
    "ece": ece_table,
    "bias": bias_table,
    "epochs": epochs_table,
    "trend": trend,
}


def tables_of(folder: Path) -> dict[str, str]:
    """Write all tables of the page from the CSV file of a folder."""
    rows = read_csv(folder / "results.csv")
    return {name: table(rows) for name, table in TABLES.items()}


def report(page: Path) -> list[Path]:
    """Write the page's tables and figures from its CSV file; return what was written."""
    from orbical.figures import save

    folder = page.with_suffix("")
    rows = read_csv(folder / "results.csv")
    return [
        write_page(page, tables_of(folder)),
        save(worlds_figure(), folder / "worlds.png"),
        save(main_figure(rows), folder / "accuracy-and-ece.png"),
        save(bias_figure(rows), folder / "bias.png"),
    ]
