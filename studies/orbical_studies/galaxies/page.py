"""The galaxy study's page: tables and figures, from its CSV files alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from ..pages import fewer_colours, write_page
from .findings import sentences
from .kinds import kinds_table
from .numbers import Numbers, read
from .tables import (
    bounds_table,
    circle_table,
    contrasts_table,
    neighbours_table,
    refit_table,
    scores_table,
    settings_table,
)
from .texts import (
    budget_text,
    coverage_text,
    exactness_text,
    fit_text,
    marginal_text,
    matching_text,
    refit_text,
    summary,
)

TABLES: dict[str, Callable[[Numbers], str]] = {
    "settings": settings_table,
    "efigi": partial(scores_table, "efigi"),
    "galaxyzoo2": partial(scores_table, "galaxyzoo2"),
    "generated": partial(scores_table, "generated"),
    "contrasts": partial(contrasts_table, ("accuracy", "overconfidence")),
    "contrasts-errors": partial(contrasts_table, ("ece", "esd")),
    "circle": circle_table,
    "refit": refit_table,
    "bounds": bounds_table,
    "neighbours": neighbours_table,
    "kinds": kinds_table,
    "fit": fit_text,
    "sentences": sentences,
    "summary": summary,
    "exactness": exactness_text,
    "budget": budget_text,
    "coverage": coverage_text,
    "refit-text": refit_text,
    "matching-text": matching_text,
    "marginal": marginal_text,
}


def tables_of(folder: Path) -> dict[str, str]:
    """Write all tables of the page from the CSV files of a folder."""
    numbers = read(folder)
    return {name: table(numbers) for name, table in TABLES.items()}


def report(page: Path) -> list[Path]:
    """Write the page's tables and figures from its CSV files; return what was written."""
    from orbical.figures import save

    from .figures import invariance_figure, mirror_figure, nero_figure, orders_figure

    folder = page.with_suffix("")
    numbers = read(folder)
    figures = {name: orders_figure(numbers, name) for name in numbers.photographs}
    figures |= {"nero": nero_figure(numbers), "invariance": invariance_figure(numbers)}
    if numbers.bounds:
        figures["mirrors"] = mirror_figure(numbers)
    return [
        write_page(page, tables_of(folder)),
        *(fewer_colours(save(fig, folder / f"{name}.png"), 256) for name, fig in figures.items()),
    ]
