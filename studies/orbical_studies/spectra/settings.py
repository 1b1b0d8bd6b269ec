"""What the spectra study varies: network, loss, seed and number of molecules."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

from ..framework import TrainingSettings, option

NETWORKS = ("steerable", "distances", "bonds")
"""By what they see: SteerableMPNN on directions, InvariantMPNN on distances, GIN on bonds."""
PENALTY = 0.1
"""The paper's weight of `|y - gamma| (2 nu + alpha)`, its smaller one."""
LIKELIHOOD, SQUARES = "likelihood", "squares"
"""How means are learned: as in the paper, with all else by the likelihood; or by their squared
error, while the rest is learned by the likelihood about means and features that it does not move.
"""
BEST, LAST = "best", "last"
"""Where weights are taken: at the best validation likelihood, or at the end of the schedule."""


@dataclass(frozen=True)
class Settings(TrainingSettings):
    """What is labeled and trained."""

    cache: str | None = option(None, "folder of the data sets' own cache", kind=str)
    label_minutes: float = option(math.inf, "stop labeling after this time")
    count: int | None = option(None, "label at most this many molecules", kind=int)
    epochs: int = option(250, "of each training", least=1)
    seconds: float = option(math.inf, "end each training after this time")
    seeds: tuple[int, ...] = option((0, 1, 2), "which seeds")
    parts: tuple[int, ...] = (2, 4)  # the learning curve: a half and a quarter of the molecules
    fewest: int = 100  # labeled molecules without which there is nothing to study


@dataclass(frozen=True)
class Trial:
    """One training; its text is its name.

    Attributes:
        network: One of `NETWORKS`.
        penalty: Weight of the evidence penalty beside the likelihood; 0 for likelihood alone.
        seed: Of weights and batches.
        epochs: Passes over all training molecules; the rate ends at 0.
        seconds: When training ends, with the rate at 0, even before the last epoch.
        means: How means are learned, `LIKELIHOOD` or `SQUARES`.
        parts: Train on one of this many parts of the training molecules, in as many steps.
    """

    network: str
    penalty: float = PENALTY
    seed: int = 0
    epochs: int = 250
    seconds: float = math.inf
    means: str = LIKELIHOOD
    parts: int = 1

    def __str__(self) -> str:
        loss = f"penalty {self.penalty:g}" + (f"/{self.means}" if self.means == SQUARES else "")
        fewer = f"/1 of {self.parts}" if self.parts > 1 else ""
        return f"{self.network}/{loss}{fewer}/seed {self.seed}"


def trials(settings: Settings) -> list[Trial]:
    """List all trainings, the slowest first.

    By likelihood, every seed with the penalty and the first one without it; by squares, every seed,
    and the first one on fewer molecules.

    >>> names = [str(trial) for trial in trials(Settings())]
    >>> len(names), names[0], names[-1]
    (27, 'steerable/penalty 0.1/seed 0', 'bonds/penalty 0.1/squares/1 of 4/seed 0')
    """
    every, first = [], settings.seeds[0]
    for network in NETWORKS:
        make = partial(Trial, network, epochs=settings.epochs, seconds=settings.seconds)
        every += [make(seed=seed) for seed in settings.seeds] + [make(penalty=0.0, seed=first)]
        every += [make(seed=seed, means=SQUARES) for seed in settings.seeds]
        every += [make(seed=first, means=SQUARES, parts=parts) for parts in settings.parts]
    return every
