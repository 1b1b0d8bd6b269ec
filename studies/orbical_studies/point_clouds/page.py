"""The point-cloud study's page: its tables and figures, from its CSV files alone."""

from __future__ import annotations

from pathlib import Path

from ..pages import fewer_colours, write_page
from .figures import angle_figure, individual_figure, orbit_figure, tilt_figure
from .findings import claims, findings
from .numbers import Numbers
from .tables import (
    accuracy_table,
    axes_table,
    calibration_table,
    classes_table,
    settings_table,
    tilt_table,
)

TABLES = {
    "settings": settings_table,
    "findings": findings,
    "accuracy": accuracy_table,
    "calibration": calibration_table,
    "axes": axes_table,
    "tilt": tilt_table,
    "classes": classes_table,
    "claims": claims,
}


def tables_of(folder: Path) -> dict[str, str]:
    """Write all tables of the page from the CSV files of a folder."""
    numbers = Numbers(folder)
    return {name: table(numbers) for name, table in TABLES.items()}


def report(page: Path) -> list[Path]:
    """Write the page's tables and figures from its CSV files.

    The pictures of single clouds need the public files; they are left as they are without these.
    """
    from orbical.errors import InputError
    from orbical.figures import save

    folder = page.with_suffix("")
    numbers = Numbers(folder)
    first = numbers.data_sets[0]
    figures = {
        "slices": orbit_figure(numbers, "slices", first, "accuracy"),
        "ball": orbit_figure(numbers, "ball", first, "accuracy"),
        "ece": orbit_figure(numbers, "slices", first, "ece"),
        "angle": angle_figure(numbers),
        "tilt": tilt_figure(numbers),
    }
    for data_set in numbers.data_sets[1:]:
        figures[f"slices-{data_set}"] = orbit_figure(numbers, "slices", data_set, "accuracy")
    try:
        for name in numbers.chosen:
            figures[f"individual-{name}"] = individual_figure(numbers, name)
    except InputError as error:
        print(f"single clouds not drawn: {error}")
    written = [
        fewer_colours(save(figure, folder / f"{name}.png"), 256) for name, figure in figures.items()
    ]
    return [write_page(page, tables_of(folder)), *written]
