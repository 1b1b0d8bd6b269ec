"""What the galaxy study varies: the group, the blur, the data and the seed."""

from __future__ import annotations

from dataclasses import dataclass

ORDERS = (1, 2, 3, 4, 6, 8, 12)
FAMILIES = ("cyclic", "dihedral")
BLURS = (0.0, 1.25, 2.5)
SEEDS = (0, 1, 2)
DATA = ("efigi", "galaxyzoo2")
SIZE = 64
ANGLES = 36
EPOCHS = 40


@dataclass(frozen=True)
class Trial:
    """One training; its text is its name."""

    data: str
    group: str
    blur: float
    seed: int
    epochs: int = EPOCHS

    def __str__(self) -> str:
        return f"{self.data}/{self.group}/blur {self.blur:g}/seed {self.seed}"


def trials(seeds: tuple[int, ...] = SEEDS, epochs: int = EPOCHS) -> list[Trial]:
    """List all trainings: those of one seed before the next, the largest groups first.

    >>> len(trials())
    252
    """
    return [
        Trial(data, f"{family}:{order}", blur, seed, epochs)
        for seed in seeds
        for order in sorted(ORDERS, reverse=True)
        for family in FAMILIES
        for data in DATA
        for blur in BLURS
    ]
