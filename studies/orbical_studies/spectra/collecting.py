"""From the predictions of the trained networks to the CSV files of the page."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import torch

from orbical.training import Evidence

from ..framework import Results
from ..framework.training import read_arrays, read_rows
from . import measures
from .contrasts import contrast_rows
from .packing import FILE, unpack
from .settings import PAPER, REMEDY
from .training import restored


def collect(settings: Any, results: Results) -> None:
    """Measure the networks that were trained in the paper's way or with the remedy."""
    data, everyone = unpack(results.work / FILE), read_answers(results)
    truth = measures.truth_of(data)
    tables: dict[str, list[measures.Row]] = defaultdict(list)
    for one in everyone:
        if one.row["training"] not in (PAPER, REMEDY):
            continue
        tables["results"].append(measures.scores(truth, one))
        if one.row["parts"] == 1:
            tables["wavenumbers"] += measures.by_wavenumber(truth, one, data.wavenumbers)
            tables["explained"] += measures.explained(truth, one)
            tables["signals"] += measures.bins_of_signal(truth, one)
    tables["samples"] = measures.samples(data, truth, everyone)
    tables["limits"] = [measures.limits(data)]
    for name, rows in tables.items():
        results.write(name, rows)


def compare(settings: Any, results: Results) -> None:
    """Compare the trainings, each part of the remedy alone too, in tables of their own.

    They may come from another work folder than those of `collect`.
    """
    _compare(results, "trainings", "training_limits", "contrasts")


def compare_more(settings: Any, results: Results) -> None:
    """Compare trainings on more molecules, from a work folder and in tables of their own."""
    _compare(results, "more_trainings", "more_limits", "more_contrasts")


def _compare(results: Results, trainings: str, limited: str, contrasts: str) -> None:
    """Write a row for each training, the limits of their data, and what each training changes."""
    data, everyone = unpack(results.work / FILE), read_answers(results)
    truth = measures.truth_of(data)
    rows = [measures.scores(truth, one) | measures.noise_range(one.test) for one in everyone]
    results.write(trainings, rows)
    results.write(limited, [measures.limits(data)])
    compared = [one for one in everyone if one.compared]
    results.write(contrasts, contrast_rows(truth, compared))


def read_answers(results: Results) -> list[measures.Answers]:
    """Read every finished training, in the order of names."""
    found = []
    for row in sorted(read_rows(results.work), key=lambda row: str(row["name"])):
        four = torch.from_numpy(restored(read_arrays(results.work, row["name"])["answers"]))
        found.append(measures.Answers(row, Evidence(*four[:, :-1]), Evidence(*four[:, -1])))
    return found
