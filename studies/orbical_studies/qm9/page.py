"""The molecule study's page: tables and figures, from its CSV files alone."""

from __future__ import annotations

from pathlib import Path

from ..pages import write_page
from . import figures
from .findings import FINDINGS
from .numbers import read
from .tables import TABLES


def tables_of(folder: Path) -> dict[str, str]:
    """Write all tables of the page from the CSV files of a folder."""
    data = read(folder)
    return {name: write(data) for name, write in (TABLES | FINDINGS).items()}


def report(page: Path) -> list[Path]:
    """Write the page's tables and figures from its CSV files; return what was written."""
    from orbical.figures import save

    folder = page.with_suffix("")
    data = read(folder)
    return [
        write_page(page, tables_of(folder)),
        save(figures.errors_figure(data), folder / "errors.png"),
        save(figures.bleed_figure(data), folder / "bleed.png"),
        save(figures.calibration_figure(data), folder / "calibration.png"),
        save(figures.dipole_figure(data), folder / "dipole.png"),
        save(figures.curves_figure(data), folder / "curves.png"),
    ]
