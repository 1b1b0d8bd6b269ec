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
WIDE = 5
"""The wide plain network has five times the fields, and so about the parameters of D_12."""


@dataclass(frozen=True)
class Trial:
    """One training; its text is its name."""

    data: str
    group: str
    blur: float
    seed: int
    epochs: int = EPOCHS
    width: int = 1

    def __str__(self) -> str:
        network = self.group if self.width == 1 else f"{self.group} x {self.width}"
        return f"{self.data}/{network}/blur {self.blur:g}/seed {self.seed}"


def trials(seeds: tuple[int, ...] = SEEDS, epochs: int = EPOCHS) -> list[Trial]:
    """List all trainings: those of one seed before the next, the largest groups first.

    >>> len(trials())
    270
    """
    networks = [
        (f"{family}:{order}", 1) for order in sorted(ORDERS, reverse=True) for family in FAMILIES
    ]
    return [
        Trial(data, group, blur, seed, epochs, width)
        for seed in seeds
        for group, width in [*networks, ("cyclic:1", WIDE)]
        for data in DATA
        for blur in BLURS
    ]
