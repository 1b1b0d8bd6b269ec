"""Test spectra, and what trained networks answered to them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from orbical.training.heads import Evidence

from ..pages import Row
from ..trials import FILE, read_lines
from .packing import Pack
from .settings import BEST, LAST, PENALTY, SQUARES, Trial, is_kind
from .training import scale_of


class Truth(NamedTuple):
    """Test spectra: scaled `[n, points]`, and the mean `[points]` and the width that undo it."""

    values: Tensor
    centre: Tensor
    width: Tensor

    @property
    def physical(self) -> Tensor:
        """Amplitudes in (km/mol per cm^-1)^1/2."""
        return self.centre + self.width * self.values


class Answers(NamedTuple):
    """A trained network: what is said of its training, and its answers to the test molecules."""

    row: Row
    test: Evidence
    example: Evidence

    @property
    def is_main(self) -> bool:
        """Whether it was trained as the paper's networks were, with the penalty."""
        return is_kind(self.row, PENALTY)


def truth_of(data: Pack) -> Truth:
    """The test spectra, in units of the training spectra."""
    centre, width = scale_of(data)
    values = (data.targets[data.rows("test")].double() - centre) / width
    return Truth(values, centre, width)


def read_answers(folder: Path) -> list[Answers]:
    """Read every finished training of a folder; where means were learnt by squares, twice.

    What the paper trains is taken where validation likelihood was best, and there only.
    """
    found = []
    for row in read_lines(folder / FILE, option="out"):
        names = ("network", "penalty", "seed", "means", "parts")
        trial = Trial(**{name: row[name] for name in names})
        found.append(_read(folder / trial.file(BEST), row | {"taken": BEST}))
        if trial.means == SQUARES:
            ends = {name: row[f"{name}_last"] for name in ("train_nll", "train_mse")}
            found.append(_read(folder / trial.file(LAST), row | {"taken": LAST, **ends}))
    return found


def _read(path: Path, row: Row) -> Answers:
    with np.load(path) as file:
        four = torch.from_numpy(file["test"]).double()
        row["validation_last"] = float(file["curve"][-1, 1])
    return Answers(row, Evidence(*four[:, :-1]), Evidence(*four[:, -1]))


def physical(truth: Truth, gamma: Tensor) -> Tensor:
    """Answers in the unit of `Truth.physical`."""
    return truth.centre + truth.width * gamma


def squared_error(truth: Truth, found: Evidence) -> Tensor:
    """Squared error of every entry, `[n, points]`."""
    return (found.gamma - truth.values).square()


def middle(values: Tensor) -> float:
    """The median of all entries: between the two in the middle where their number is even.

    >>> middle(torch.tensor([1.0, 2.0]))
    1.5
    """
    return float(values.flatten().quantile(0.5))
