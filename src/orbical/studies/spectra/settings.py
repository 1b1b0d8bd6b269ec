"""What the spectra study varies: the network, the penalty, the seed; and on which molecules."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PAGE = Path("docs/studies/spectra.md")

MOST_HEAVY = 7
"""Molecules with up to so many atoms other than hydrogen are labelled."""

EXAMPLE = "C#CC12CC(C1)C1CC21"
"""The molecule of the paper's Fig. 9. It has nine heavy atoms: no molecule of the study is as
large, so that it tells how networks answer beyond what they have seen."""

TEST, VALIDATION = 0.2, 0.1
"""Shares of the molecules: the first are for the test, the next for choosing when to stop."""

FEWEST = 100
"""Labelled molecules without which there is nothing to study."""

BONDS, DISTANCES, STEERABLE = "bonds", "distances", "steerable"
NETWORKS = (BONDS, DISTANCES, STEERABLE)
"""By what they see: GIN on bonds, InvariantMPNN on distances, SteerableMPNN on directions."""

SEEDS = (0, 1, 2)
PENALTY = 0.1
"""The paper's weight of `|y - gamma| (2 nu + alpha)`, its smaller one."""

PAPER_BLEED = 17.613
"""The paper's bleed on spectra."""

EPOCHS = 250
BATCH = 64


@dataclass(frozen=True)
class Trial:
    """One training; its text is its name.

    Attributes:
        network: one of `NETWORKS`.
        penalty: weight of the evidence penalty beside the likelihood; 0 for likelihood alone.
        seed: of weights and batches.
        epochs: passes over the training molecules; the rate ends at 0.
        seconds: after which training ends, and the rate is at 0, even before the last epoch.
    """

    network: str
    penalty: float = PENALTY
    seed: int = 0
    epochs: int = EPOCHS
    seconds: float = float("inf")

    def __str__(self) -> str:
        return f"{self.network}/penalty {self.penalty:g}/seed {self.seed}"

    @property
    def stem(self) -> str:
        """The name of its file."""
        return str(self).replace("/", "-").replace(" ", "")


def trials(
    seeds: tuple[int, ...] = SEEDS, epochs: int = EPOCHS, seconds: float = float("inf")
) -> list[Trial]:
    """List all trainings, the slowest first: with the penalty each seed, without it the first.

    >>> len(trials())
    12
    >>> str(trials()[0])
    'steerable/penalty 0.1/seed 0'
    """
    return [
        Trial(network, penalty, seed, epochs, seconds)
        for network in reversed(NETWORKS)
        for penalty, chosen in ((PENALTY, seeds), (0.0, seeds[:1]))
        for seed in chosen
    ]
