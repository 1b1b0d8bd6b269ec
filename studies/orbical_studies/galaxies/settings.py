"""What the galaxy study varies: the data, the group, the blur and the seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..framework import TrainingSettings, option

FAMILIES = ("cyclic", "dihedral")
# Widths of the added blur in pixels; generated galaxies come with a blur of their own.
BLURS = {"efigi": (0.0, 1.25, 2.5), "galaxyzoo2": (0.0, 1.25, 2.5), "generated": (0.0,)}
# The cost of mirrors on generated galaxies needs no larger group, and no wide network.
GENERATED_ORDERS = (1, 2)
# The wide plain network has five times the fields, and so about the parameters of D_12.
WIDE = 5


@dataclass(frozen=True)
class Settings(TrainingSettings):
    """What is trained."""

    data: tuple[str, ...] = option(tuple(BLURS), "data sets", choices=tuple(BLURS))
    seeds: tuple[int, ...] = option((0, 1, 2), "seeds of each network", least=0)
    orders: tuple[int, ...] = option((1, 2, 3, 4, 6, 8, 12), "orders n of C_n and D_n", least=1)
    epochs: int = option(40, "epochs of each training", least=1)
    worlds: int = option(200, "simulated worlds of the coverage", least=1)


@dataclass(frozen=True)
class Trial:
    """One training; its text is its name."""

    data: str
    group: str
    blur: float
    seed: int
    epochs: int
    width: int = 1

    def __str__(self) -> str:
        return f"{self.data}/{self.network}/blur {self.blur:g}/seed {self.seed}"

    @property
    def network(self) -> str:
        """The group, and the width if it is not 1."""
        return self.group if self.width == 1 else f"{self.group} x {self.width}"

    @property
    def order(self) -> int:
        """The order n of the group C_n or D_n."""
        return int(self.group.split(":")[1])


def trials(settings: Settings) -> Iterator[Trial]:
    """List all trainings: those of one seed before the next, the largest groups first.

    >>> len(list(trials(Settings())))
    282
    """
    orders = sorted(settings.orders, reverse=True)
    networks = [(f"{family}:{order}", 1) for order in orders for family in FAMILIES]
    for seed in settings.seeds:
        for group, width in [*networks, ("cyclic:1", WIDE)]:
            for name in settings.data:
                for blur in BLURS[name]:
                    trial = Trial(name, group, blur, seed, settings.epochs, width)
                    if name != "generated" or (width == 1 and trial.order in GENERATED_ORDERS):
                        yield trial
