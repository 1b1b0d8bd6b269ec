"""The vector-field study's page: its tables and figures, from its CSV files alone."""

from __future__ import annotations

from pathlib import Path

from ..pages import fewer_colours, write_page
from .figures import angles_figure, fields_figure, profile_figure
from .findings import sentences
from .tables import TABLES, read


def tables_of(folder: Path) -> dict[str, str]:
    """Write all tables of the page from the CSV files of a folder."""
    data = read(folder)
    return {**{name: table(data) for name, table in TABLES.items()}, "sentences": sentences(data)}


def report(page: Path) -> list[Path]:
    """Write the page's tables and figures from its CSV files; return what was written."""
    from orbical.figures import save

    folder = page.with_suffix("")
    data = read(folder)
    figures = {
        "fields": fields_figure(data),
        "angles": angles_figure(data),
        "profile": profile_figure(data),
    }
    return [
        write_page(page, tables_of(folder)),
        *(fewer_colours(save(fig, folder / f"{name}.png"), 256) for name, fig in figures.items()),
    ]
