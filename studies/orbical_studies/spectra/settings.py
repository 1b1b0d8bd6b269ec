"""What the spectra study varies: network, loss, seed and number of molecules; and on which ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

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

LIKELIHOOD, SQUARES = "likelihood", "squares"
"""By what means are learnt: as the paper does, with all else by the likelihood; or by their squared
error, while the rest learns by the likelihood about means and features that it does not move."""

PARTS = (2, 4)
"""The learning curve: one of so many parts of the training molecules, for as many steps."""

BEST, LAST = "best", "last"
"""Where weights are taken: at the best validation likelihood, or at the end of the schedule."""

PAPER_R2 = 0.9
"""Above this lies the paper's R^2 on test molecules."""
PAPER_MOLECULES = 130_000
"""About as many has the paper."""

EPOCHS = 250
BATCH = 64


@dataclass(frozen=True)
class Trial:
    """One training; its text is its name.

    Attributes:
        network: one of `NETWORKS`.
        penalty: weight of the evidence penalty beside the likelihood; 0 for likelihood alone.
        seed: of weights and batches.
        epochs: passes over all training molecules; the rate ends at 0.
        seconds: after which training ends, and the rate is at 0, even before the last epoch.
        means: by what means are learnt, `LIKELIHOOD` or `SQUARES`.
        parts: it learns from one of so many parts of the training molecules, in as many steps.
    """

    network: str
    penalty: float = PENALTY
    seed: int = 0
    epochs: int = EPOCHS
    seconds: float = float("inf")
    means: str = LIKELIHOOD
    parts: int = 1

    def __str__(self) -> str:
        loss = f"penalty {self.penalty:g}" + (f"/{self.means}" if self.means == SQUARES else "")
        fewer = f"/1 of {self.parts}" if self.parts > 1 else ""
        return f"{self.network}/{loss}{fewer}/seed {self.seed}"

    def file(self, taken: str = BEST) -> str:
        """The name of the file with its answers, by where its weights are taken.

        >>> Trial("bonds").file(LAST)
        'bonds-penalty0.1-seed0-last.npz'
        """
        end = "" if taken == BEST else f"-{taken}"
        return str(self).replace("/", "-").replace(" ", "") + f"{end}.npz"


def trials(
    seeds: tuple[int, ...] = SEEDS, epochs: int = EPOCHS, seconds: float = float("inf")
) -> list[Trial]:
    """List all trainings, the slowest first.

    By likelihood, with the penalty each seed, and without it the first one; by squares with each
    seed, and with the first one on fewer molecules.

    >>> len(trials())
    27
    >>> str(trials()[0]), str(trials()[-1])
    ('steerable/penalty 0.1/seed 0', 'bonds/penalty 0.1/squares/1 of 4/seed 0')
    """
    every = []
    for network in reversed(NETWORKS):
        made = partial(Trial, network, epochs=epochs, seconds=seconds)
        every += [made(seed=seed) for seed in seeds]
        every += [made(penalty=0.0, seed=seed) for seed in seeds[:1]]
        every += [made(seed=seed, means=SQUARES) for seed in seeds]
        every += [made(seed=seeds[0], means=SQUARES, parts=parts) for parts in PARTS]
    return every


def is_kind(
    row: Mapping[str, Any],
    penalty: float,
    means: str = LIKELIHOOD,
    parts: int = 1,
    taken: str = BEST,
) -> bool:
    """Tell whether a row is of networks that were trained and taken in this way.

    >>> is_kind({"penalty": 0.1, "means": "squares", "parts": 1, "taken": "best"}, 0.1)
    False
    """
    own = tuple(row[name] for name in ("penalty", "means", "parts", "taken"))
    return own == (penalty, means, parts, taken)
