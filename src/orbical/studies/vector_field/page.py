"""The vector-field study's page: its tables and figures, from its CSV files alone."""

from __future__ import annotations

from pathlib import Path

from ..pages import write_page
from .figures import angles_figure, fields_figure, profile_figure
from .findings import sentences
from .tables import TABLES, Data, read


def tables_of(data: Data) -> dict[str, str]:
    """Make all tables and findings of the page."""
    return {**{name: table(data) for name, table in TABLES.items()}, "sentences": sentences(data)}


def report(page: Path) -> list[Path]:
    """Write the page's tables and figures from its CSV files; return what was written."""
    from orbical.figures import save

    folder = page.with_suffix("")
    data = read(folder)
    return [
        write_page(page, tables_of(data)),
        save(fields_figure(data), folder / "fields.png"),
        save(angles_figure(data), folder / "angles.png"),
        save(profile_figure(data), folder / "profile.png"),
    ]
