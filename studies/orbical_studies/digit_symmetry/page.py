"""The digit study's page: its tables and figures, from its CSV files alone."""

from __future__ import annotations

from pathlib import Path

from ..pages import write_page
from .figures import collision_figure, error_figure, quantised_figure
from .findings import findings
from .numbers import Results
from .tables import digit_table, error_table, pair_table, quantised_table, settings_table

TABLES = {
    "settings": settings_table,
    "findings": findings,
    "errors": error_table,
    "digits": digit_table,
    "pairs": pair_table,
    "quantised": quantised_table,
}


def tables_of(folder: Path) -> dict[str, str]:
    """Write all tables of the page from the CSV files of a folder."""
    results = Results.read(folder)
    return {name: table(results) for name, table in TABLES.items()}


def report(page: Path) -> list[Path]:
    """Write the page's tables and figures from its CSV files; return what was written."""
    from orbical.figures import save

    folder = page.with_suffix("")
    results = Results.read(folder)
    return [
        write_page(page, tables_of(folder)),
        save(error_figure(results), folder / "errors.png"),
        save(collision_figure(results), folder / "collisions.png"),
        save(quantised_figure(results), folder / "quantised.png"),
    ]
