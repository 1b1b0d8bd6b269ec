"""From stored results to the page's CSV files, and to its pictures of single objects."""

from __future__ import annotations

from pathlib import Path

from orbical.datasets.key_objects import KeyObjects

from ..pages import fewer_colours, write_csv
from . import figures, numbers
from .scans import Results, WholeScans

COLOURS = 256


def collect(results: Path, folder: Path, data: KeyObjects | None = None) -> list[Path]:
    """Write the CSV files, and the figures that need photographs; return what was written.

    Args:
        results: where `train` wrote.
        folder: of the page's CSV files and figures.
        data: the key objects; those of the data set where they are not given.
    """
    from orbical.figures import save

    found = Results.read(results)
    whole = WholeScans.read(results, found.group, data)
    rows = {
        "trainings": found.trained,
        "levels": numbers.level_rows(found),
        "classes": numbers.class_rows(found),
        "shifts": numbers.map_rows(found),
        "section": numbers.section_rows(found),
        "dark-spots": numbers.dark_rows(found),
        "period": numbers.period_rows(found),
        "consensus": numbers.consensus_rows(found),
        "certainty": numbers.certainty_rows(whole),
        "objects": numbers.object_rows(found),
    }
    return [
        *(write_csv(folder / f"{name}.csv", some) for name, some in rows.items()),
        save(figures.individual_figure(whole), folder / "individual.png"),
        fewer_colours(
            save(figures.consensus_figure(found, whole), folder / "consensus.png"), COLOURS
        ),
    ]
