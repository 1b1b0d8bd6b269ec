"""What the study trains, and how lambda is chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from torch import Tensor

from orbical import losses
from orbical.errors import InputError
from orbical.training import Selection, select

from ..framework import TrainingSettings, option

LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "MMCE": losses.mmce,
    "SB-ECE": losses.sb_ece,
    "ESD": losses.esd,
    "S-AvUC": losses.s_avuc,
    "ECE": losses.ece,
}
BASELINE = "NLL"
GRID, BEYOND_GRID = (0.6, 2.0, 6.0), (0.2, 20.0)
WEIGHTS = (0.0, *GRID)
BATCH, SMALLER_BATCHES = 512, (256, 128, 64)
EPOCHS = {"mnist": 40, "cifar10": 60}
PAPERS = (0.2, 0.4, 0.6, 0.8, *map(float, range(1, 11)))
"""The paper's grid of lambda."""

INNER = {"MMCE": (0.4, 0.2, 0.6, 0.8), "SB-ECE": (0.01, 0.0001, 0.001, 0.1), "ESD": (0.0,)}
"""MMCE's kernel width, SB-ECE's temperature; the first is used, the others are tried (Fig. 2)."""

FIRST, FRESH = 0, (1, 2, 3, 4, 5)
"""The seed that chooses lambda, and those that decide."""

FRONTS = ("cifar10", "cifar100")
"""Data sets of the fronts, with all their images."""


@dataclass(frozen=True)
class Settings(TrainingSettings):
    """What is trained."""

    data: tuple[str, ...] = option(tuple(EPOCHS), "data sets", choices=tuple(EPOCHS))
    seeds: int = option(3, "trainings of each setting", least=1)
    epochs: int | None = option(None, "instead of 40 and 60 epochs", least=1, kind=int)
    fronts: tuple[str, ...] = option(FRONTS, "data sets of the fronts", choices=FRONTS)
    sweep: float = option(0.6, "share of the minutes in which weights are chosen", least=0)
    images: int | None = option(None, "use only the first images of each split", least=1, kind=int)


@dataclass(frozen=True)
class Trial:
    """One training; its text is its name."""

    data: str
    loss: str
    weight: float
    seed: int
    batch: int
    epochs: int

    def __str__(self) -> str:
        head = f"{self.data}/{self.loss}/lambda={self.weight:g}/batch={self.batch}"
        return f"{head}/epochs={self.epochs}/seed={self.seed}"


def grid(settings: Settings) -> Iterator[Trial]:
    """List the baseline and every loss with every weight, whole seeds first.

    >>> len(list(grid(Settings())))
    116
    """
    for data in settings.data:
        for seed in range(settings.seeds):
            weights: Sequence[float] = (*GRID, *BEYOND_GRID) if seed == 0 else GRID
            pairs = [(BASELINE, 0.0), *((loss, weight) for loss in LOSSES for weight in weights)]
            for loss, weight in pairs:
                yield Trial(data, loss, weight, seed, BATCH, settings.epochs or EPOCHS[data])


def smaller_batches(settings: Settings, runs: pd.DataFrame) -> list[Trial]:
    """List smaller batches on CIFAR-10 for ESD and ECE with their chosen weights, longest first."""
    epochs = settings.epochs or EPOCHS["cifar10"]
    found = selections(runs[runs["epochs"] == epochs], "cifar10")
    if not {"ESD", "ECE"} <= {*found}:
        raise InputError(
            "work",
            "finished CIFAR-10 trainings of ESD and ECE to choose lambda from",
            ", ".join(found) or "none",
            remedy="run the step 'train' with the same epochs first",
        )
    return [
        Trial("cifar10", loss, found[loss].choice, seed, batch, epochs)
        for batch in sorted(SMALLER_BATCHES)
        for seed in range(settings.seeds)
        for loss in ("ESD", "ECE")
    ]


def selections(runs: pd.DataFrame, data: str) -> dict[str, Selection[float]]:
    """Choose each loss's lambda by the paper's rule, from mean validation scores alone.

    Args:
        runs: One row a training.
        data: The data set.

    Returns:
        The selection of each loss with finished trainings; none without the baseline.
    """
    found = runs.query("data == @data and batch == @BATCH and weight in @WEIGHTS")
    scores = found.groupby(["loss", "weight"])[["validation.accuracy", "validation.ece"]].mean()
    if (BASELINE, 0.0) not in scores.index:
        return {}
    accuracy = scores["validation.accuracy"][BASELINE, 0.0]
    own = {loss: scores.loc[loss].reset_index() for loss in LOSSES if loss in scores.index}
    return {loss: selected(rows, accuracy) for loss, rows in own.items()}


def selected(
    rows: pd.DataFrame, accuracy: float, by: Sequence[str] = ("weight",), **limit: float
) -> Selection[Any]:
    """Choose a setting by the paper's rule, from validation scores.

    Args:
        rows: One row a setting.
        accuracy: Of the baseline.
        by: Columns that make a setting; one alone is the choice itself.
        limit: `tolerance`, the accuracy that may be lost.
    """
    scores = rows.set_index([*by])[["validation.accuracy", "validation.ece"]]
    return select(scores.T.to_dict("list"), baseline_accuracy=accuracy, **limit)
