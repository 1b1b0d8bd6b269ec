"""The page of the digits' NERO plots: its tables, from its CSV files alone."""

from __future__ import annotations

from pathlib import Path

from ..pages import write_page
from .findings import TABLES, Numbers


def report(page: Path) -> Path:
    """Write the page's tables from its CSV files."""
    numbers = Numbers(page.with_suffix(""))
    return write_page(page, {name: table(numbers) for name, table in TABLES.items()})
