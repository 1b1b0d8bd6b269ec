"""The detection study's page: its tables, CSV files and figures, from stored results."""

from __future__ import annotations

from pathlib import Path

from orbical.datasets.coco_folder import KeyObjects

from ..pages import write_csv, write_page
from . import figures
from .findings import class_table, consensus_table, dark_table, findings, level_table, period_table
from .numbers import (
    Results,
    class_rows,
    consensus_rows,
    dark_rows,
    level_rows,
    map_rows,
    period_rows,
)


def report(results: Path, page: Path, data: KeyObjects | None = None) -> list[Path]:
    """Write the page's tables, CSV files and figures; return what was written.

    Args:
        results: where `train` wrote.
        page: the page.
        data: the key objects; those of the data set where they are not given.
    """
    from orbical.figures import save

    found = Results.read(results, data)
    folder = page.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    levels, classes, dark = level_rows(found), class_rows(found), dark_rows(found)
    consensus, period = consensus_rows(found), period_rows(found)
    tables = {
        "findings": findings(levels, consensus, dark, period),
        "levels": level_table(levels),
        "classes": class_table(classes),
        "dark": dark_table(dark),
        "period": period_table(period),
        "consensus": consensus_table(consensus),
    }
    rows = {
        "levels": levels,
        "classes": classes,
        "shifts": map_rows(found),
        "dark-spots": dark,
        "period": period,
        "consensus": consensus,
    }
    return [
        write_page(page, tables),
        *(write_csv(folder / f"{name}.csv", some) for name, some in rows.items()),
        save(figures.aggregate_figure(found), folder / "aggregate.png"),
        save(figures.section_figure(found), folder / "section.png"),
        save(figures.individual_figure(found), folder / "individual.png"),
        save(figures.consensus_figure(found), folder / "consensus.png"),
    ]
