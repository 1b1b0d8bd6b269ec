"""The page of the digits' NERO plots: its tables, from its CSV files alone."""

from __future__ import annotations

from pathlib import Path

from ..pages import write_page
from .findings import findings, interpolation
from .numbers import Numbers
from .tables import digits_table, maps_table, networks_table, six_nine_table

TABLES = {
    "networks": networks_table,
    "findings": findings,
    "digits": digits_table,
    "six-nine": six_nine_table,
    "maps": maps_table,
    "interpolation": interpolation,
}


def tables_of(folder: Path) -> dict[str, str]:
    """Write all tables of the page from the CSV files of a folder."""
    numbers = Numbers(folder)
    return {name: table(numbers) for name, table in TABLES.items()}


def report(page: Path) -> list[Path]:
    """Write the page's tables from its CSV files; return what was written."""
    return [write_page(page, tables_of(page.with_suffix("")))]
