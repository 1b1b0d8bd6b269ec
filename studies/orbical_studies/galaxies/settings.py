"""What the galaxy study varies: the data, the group, the size of a plain network, blur and seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..framework import TrainingSettings, option

FAMILIES = ("cyclic", "dihedral")
PLAIN = "cyclic:1"
# Widths of the added blur in pixels; generated galaxies come with a blur of their own.
BLURS = {"efigi": (0.0, 1.25, 2.5), "galaxyzoo2": (0.0, 1.25, 2.5), "generated": (0.0,)}
PHOTOGRAPHS = {"efigi": "galaxyzoo2", "galaxyzoo2": "efigi"}
"""The catalogs of photographs, each with the other one."""
# The cost of mirrors on generated galaxies needs no larger group.
GENERATED_ORDERS = (1, 2)
FIELDS = 8
"""Fields of the first convolution; the second has twice, the third four times as many."""
EQUALS = {"cyclic:12": 24, "dihedral:12": 35}
"""Fields of the plain network that has as many parameters as a large group's, within 2 percent."""
ORDERS, SIZES = "orders", "sizes"


@dataclass(frozen=True)
class Settings(TrainingSettings):
    """What is trained."""

    data: tuple[str, ...] = option(tuple(BLURS), "data sets", choices=tuple(BLURS))
    parts: tuple[str, ...] = option(
        (ORDERS, SIZES), "groups of all orders, networks of equal size", choices=(ORDERS, SIZES)
    )
    seeds: tuple[int, ...] = option((0, 1, 2), "seeds of each network", least=0)
    orders: tuple[int, ...] = option((1, 2, 3, 4, 6, 8, 12), "orders n of C_n and D_n", least=1)
    epochs: int = option(40, "epochs of each training", least=1)
    paper_epochs: int = option(100, "epochs of each training at the paper's size", least=1)
    worlds: int = option(200, "simulated worlds of the coverage", least=1)


@dataclass(frozen=True)
class Trial:
    """One training; its text is its name."""

    data: str
    group: str
    blur: float
    seed: int
    epochs: int
    fields: int = FIELDS

    def __str__(self) -> str:
        return f"{self.data}/{self.network}/blur {self.blur:g}/seed {self.seed}"

    @property
    def network(self) -> str:
        """The group, and the fields if they are not those of the groups."""
        return self.group if self.fields == FIELDS else f"plain:{self.fields}"

    @property
    def order(self) -> int:
        """The order n of the group C_n or D_n."""
        return int(self.group.split(":")[1])


def trials(settings: Settings) -> Iterator[Trial]:
    """List all trainings: those of one seed before the next, the largest groups first.

    >>> len(list(trials(Settings()))), len(list(trials(Settings(parts=(SIZES,)))))
    (300, 90)
    """
    orders = sorted(settings.orders, reverse=True)
    groups = [(f"{family}:{order}", FIELDS) for order in orders for family in FAMILIES]
    equals = [(PLAIN, fields) for fields in EQUALS.values()]
    compared = [*((group, FIELDS) for group in reversed(EQUALS)), *equals, (PLAIN, FIELDS)]
    networks = {ORDERS: groups, SIZES: compared}
    wanted = dict.fromkeys(one for part in settings.parts for one in networks[part])
    for seed in settings.seeds:
        for group, fields in wanted:
            for name in settings.data:
                for blur in BLURS[name]:
                    trial = Trial(name, group, blur, seed, settings.epochs, fields)
                    small = fields == FIELDS and trial.order in GENERATED_ORDERS
                    if name in PHOTOGRAPHS or (small and ORDERS in settings.parts):
                        yield trial
