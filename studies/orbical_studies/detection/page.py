"""The detection study's page: its tables, and its figures of all objects, from its CSV files."""

from __future__ import annotations

from pathlib import Path

from ..pages import fewer_colours, read_csv, write_page
from . import findings, tables
from .collecting import COLOURS
from .figures import aggregate_figure, section_figure


def tables_of(folder: Path) -> dict[str, str]:
    """Write all tables of the page from the CSV files of a folder."""
    names = ("trainings", "levels", "classes", "dark-spots", "period", "consensus", "certainty")
    trained, levels, classes, dark, period, consensus, certainty, objects = (
        read_csv(folder / f"{name}.csv") for name in (*names, "objects")
    )
    how = (
        findings.training_sentence(trained),
        findings.counting_sentence(consensus),
        findings.resolution_sentence(levels, objects),
    )
    return {
        "findings": findings.findings(levels, consensus, dark, period, certainty),
        "levels": tables.level_table(levels),
        "detections": tables.detections_table(levels),
        "classes": tables.class_table(classes),
        "dark": tables.dark_table(dark),
        "period": tables.period_table(period),
        "consensus": tables.consensus_table(consensus),
        "training": "\n".join(how),
    }


def report(page: Path) -> list[Path]:
    """Write the page's tables and its figures of all objects from its CSV files.

    Args:
        page: the page; its CSV files lie in the folder of the same name.

    Returns:
        What was written.
    """
    from orbical.figures import save

    folder = page.with_suffix("")
    filled = tables_of(folder)
    shifts, section, levels = (
        read_csv(folder / f"{name}.csv") for name in ("shifts", "section", "levels")
    )
    drawn = {"aggregate": aggregate_figure(shifts), "section": section_figure(section, levels)}
    return [
        write_page(page, filled),
        *(fewer_colours(save(fig, folder / f"{name}.png"), COLOURS) for name, fig in drawn.items()),
    ]
