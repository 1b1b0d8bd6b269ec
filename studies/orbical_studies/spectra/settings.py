"""What the spectra study varies: network, training, seed and number of molecules."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from ..framework import TrainingSettings, option

NETWORKS = ("steerable", "distances", "bonds")
"""By what they see: SteerableMPNN on directions, InvariantMPNN on distances, GIN on bonds."""
PENALTY = 0.1
"""The paper's weight of `|y - gamma| (2 nu + alpha)`, its smaller one."""


class Training(NamedTuple):
    """How a network is trained.

    Attributes:
        squares: Means are learned by their squared error; else, as all else, by the likelihood.
        apart: What is not a mean is learned on features that it does not move.
        longer: How many times as long.
    """

    squares: bool = False
    apart: bool = False
    longer: int = 1


PAPER, REMEDY = "paper", "remedy"
TRAININGS = {
    PAPER: Training(),
    REMEDY: Training(squares=True, apart=True),
    "squares": Training(squares=True),
    "apart": Training(apart=True),
    "longer": Training(longer=2),
}
"""The paper's training, the remedy, and each part of it alone."""
PARTS = tuple(TRAININGS)[2:]
PARTED = ("steerable", "bonds")
"""Networks that are trained with each part alone: the paper's kind, and the cheapest."""


@dataclass(frozen=True)
class Settings(TrainingSettings):
    """What is labeled and trained."""

    cache: str | None = option(None, "folder of the data sets' own cache", kind=str)
    label_minutes: float = option(math.inf, "stop labeling after this time")
    count: int | None = option(10_000, "label at most this many molecules", kind=int)
    epochs: int = option(250, "of each training", least=1)
    seconds: float = option(math.inf, "end each training after this time")
    seeds: tuple[int, ...] = option((0, 1, 2), "which seeds")
    fewer: int = 4  # the learning curve: a quarter of the molecules
    fewest: int = 100  # labeled molecules without which there is nothing to study


@dataclass(frozen=True)
class Trial:
    """One training; its text is its name.

    Attributes:
        network: One of `NETWORKS`.
        training: One of `TRAININGS`.
        penalty: Weight of the evidence penalty beside the likelihood; 0 for likelihood alone.
        seed: Of weights and batches.
        epochs: Passes over all training molecules; the rate ends at 0.
        seconds: When training ends, with the rate at 0, even before the last epoch.
        parts: Train on one of this many parts of the training molecules, in as many steps.
    """

    network: str
    training: str = PAPER
    penalty: float = PENALTY
    seed: int = 0
    epochs: int = 250
    seconds: float = math.inf
    parts: int = 1

    def __str__(self) -> str:
        fewer = f"/1 of {self.parts}" if self.parts > 1 else ""
        return f"{self.network}/{self.training}/penalty {self.penalty:g}{fewer}/seed {self.seed}"

    @property
    def how(self) -> Training:
        """How it is trained."""
        return TRAININGS[self.training]


def trials(settings: Settings) -> list[Trial]:
    """List all trainings, the slowest network first.

    The paper's training and the remedy with every seed; the first seed also without the penalty,
    and with the remedy on fewer molecules. Each part of the remedy with the networks of `PARTED`.

    >>> names = [str(trial) for trial in trials(Settings())]
    >>> len(names), names[0], names[-1]
    (42, 'steerable/longer/penalty 0.1/seed 0', 'bonds/remedy/penalty 0.1/1 of 4/seed 0')
    """
    every, first = [], settings.seeds[0]
    for network in NETWORKS:
        make = partial(Trial, network, epochs=settings.epochs, seconds=settings.seconds)
        alone = reversed(PARTS) if network in PARTED else ()
        for training in (*alone, PAPER, REMEDY):
            every += [make(training, seed=seed) for seed in settings.seeds]
        every.append(make(penalty=0.0, seed=first))
        every.append(make(REMEDY, seed=first, parts=settings.fewer))
    return every
