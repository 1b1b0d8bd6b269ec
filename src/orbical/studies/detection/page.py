"""The detection study's page: CSV files from stored results, tables from these, and figures."""

from __future__ import annotations

from pathlib import Path

from orbical.datasets.coco_folder import KeyObjects

from ..pages import fewer_colours, read_csv, write_csv, write_page
from . import figures, findings, numbers, tables
from .scans import Results, WholeScans

COLOURS = 256


def tables_of(folder: Path) -> dict[str, str]:
    """Write all tables of the page from the CSV files of a folder."""
    names = ("trainings", "levels", "classes", "dark-spots", "period", "consensus")
    trained, levels, classes, dark, period, consensus = (
        read_csv(folder / f"{name}.csv") for name in names
    )
    how = (
        findings.training_sentence(trained),
        findings.counting_sentence(consensus),
        findings.resolution_sentence(levels),
    )
    return {
        "findings": findings.findings(levels, consensus, dark, period),
        "levels": tables.level_table(levels),
        "detections": tables.detections_table(levels),
        "classes": tables.class_table(classes),
        "dark": tables.dark_table(dark),
        "period": tables.period_table(period),
        "consensus": tables.consensus_table(consensus),
        "training": "\n".join(how),
    }


def report(results: Path, page: Path, data: KeyObjects | None = None) -> list[Path]:
    """Write the page's CSV files, tables and figures; return what was written.

    Args:
        results: where `train` wrote.
        page: the page.
        data: the key objects; those of the data set where they are not given.
    """
    from orbical.figures import save

    found = Results.read(results)
    whole = WholeScans.read(results, found.group, data)
    folder = page.with_suffix("")
    levels = numbers.level_rows(found)
    rows = {
        "trainings": found.trained,
        "levels": levels,
        "classes": numbers.class_rows(found),
        "shifts": numbers.map_rows(found),
        "dark-spots": numbers.dark_rows(found),
        "period": numbers.period_rows(found),
        "consensus": numbers.consensus_rows(found),
        "objects": numbers.object_rows(found),
    }
    written = [write_csv(folder / f"{name}.csv", some) for name, some in rows.items()]
    drawn = {
        "aggregate": figures.aggregate_figure(found),
        "section": figures.section_figure(found, levels),
        "individual": figures.individual_figure(whole),
        "consensus": figures.consensus_figure(found, whole),
    }
    return [
        write_page(page, tables_of(folder)),
        *written,
        *(fewer_colours(save(fig, folder / f"{name}.png"), COLOURS) for name, fig in drawn.items()),
    ]
