"""What the galaxy study varies: the data, the group, the blur and the seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ORDERS = (1, 2, 3, 4, 6, 8, 12)
FAMILIES = ("cyclic", "dihedral")
BLURS = {"efigi": (0.0, 1.25, 2.5), "galaxyzoo2": (0.0, 1.25, 2.5), "generated": (0.0,)}
"""Widths of the added blur in pixels; generated galaxies come with a blur of their own."""

DATA = tuple(BLURS)
GENERATED_ORDERS = (1, 2)
"""What generated galaxies show needs no larger group, and no wide network: their mirrors' cost."""

SEEDS = (0, 1, 2)
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
        return f"{self.data}/{self.network}/blur {self.blur:g}/seed {self.seed}"

    @property
    def network(self) -> str:
        """The group, and how many times wider than the others the network is, where it is."""
        return self.group if self.width == 1 else f"{self.group} x {self.width}"

    @property
    def file(self) -> str:
        """Name of the file of its answers."""
        return str(self).replace("/", "-").replace(" ", "").replace(":", "") + ".npz"


def trials(
    seeds: Sequence[int] = SEEDS,
    epochs: int = EPOCHS,
    data: Sequence[str] = DATA,
    orders: Sequence[int] = ORDERS,
) -> list[Trial]:
    """List all trainings: those of one seed before the next, the largest groups first.

    >>> len(trials())
    282
    """
    networks = [
        (f"{family}:{order}", 1) for order in sorted(orders, reverse=True) for family in FAMILIES
    ]
    return [
        Trial(name, group, blur, seed, epochs, width)
        for seed in seeds
        for group, width in [*networks, ("cyclic:1", WIDE)]
        for name in data
        if name != "generated" or (width == 1 and _order(group) in GENERATED_ORDERS)
        for blur in BLURS[name]
    ]


def _order(group: str) -> int:
    return int(group.split(":")[1])
