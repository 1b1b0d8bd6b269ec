"""The spectra study's page: CSV files from the answers, tables and figures from the files alone."""

from __future__ import annotations

from pathlib import Path

import torch

from ..pages import fewer_colours, read_csv, write_csv, write_page
from . import measures
from .answers import read_answers, truth_of
from .figures import regions_figure, samples_figure, shares_figure, signals_figure
from .limits import limits
from .numbers import Data, squares_done
from .packing import unpack
from .remedy_figures import learning_figure, remedy_figure
from .settings import BEST
from .tables import TABLES

FILES = ("results", "wavenumbers", "explained", "signals", "samples", "limits")


def measured(pack: Path, out: Path, folder: Path) -> list[Path]:
    """Write the CSV files from the packed molecules and the results' folder."""
    data = unpack(pack, torch.device("cpu"))
    everyone = read_answers(out)
    truth = truth_of(data)
    everyone.sort(key=lambda one: str(one.row["name"]))
    shown = [one for one in everyone if one.row["parts"] == 1 and one.row["taken"] == BEST]
    tables = {
        "results": [measures.scores(truth, one) for one in everyone],
        "wavenumbers": [
            row for one in shown for row in measures.by_wavenumber(truth, one, data.wavenumbers)
        ],
        "explained": [row for one in shown for row in measures.explained_rows(truth, one)],
        "signals": [row for one in shown for row in measures.bins_of_signal(truth, one)],
        "samples": measures.samples(data, truth, everyone),
        "limits": [limits(data)],
    }
    return [write_csv(folder / f"{name}.csv", tables[name]) for name in FILES]


def read(folder: Path) -> Data:
    """Read the CSV files of a folder."""
    return {name: read_csv(folder / f"{name}.csv") for name in FILES}


def tables_of(folder: Path) -> dict[str, str]:
    """Write all tables of the page from the CSV files of a folder."""
    data = read(folder)
    return {name: table(data) for name, table in TABLES.items()}


def report(page: Path) -> list[Path]:
    """Write tables and figures from the CSV files; return what was written."""
    from orbical.figures import save

    folder = page.with_suffix("")
    data = read(folder)
    figures = {
        "samples": samples_figure(data),
        "wavenumbers": regions_figure(data),
        "explained": shares_figure(data),
        "signals": signals_figure(data),
        **(
            {"remedy": remedy_figure(data), "learning": learning_figure(data)}
            if squares_done(data)
            else {}
        ),
    }
    return [
        write_page(page, tables_of(folder)),
        *(fewer_colours(save(fig, folder / f"{name}.png"), 64) for name, fig in figures.items()),
    ]
