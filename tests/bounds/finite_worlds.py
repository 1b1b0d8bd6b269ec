"""Random finite worlds, and every bound written out by loops over orbits and fibers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from orbical.bounds import OrbitTable

CONFIDENCES = st.one_of(
    st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), st.floats(0, 1, allow_nan=False)
)


@st.composite
def tables(draw: st.DrawFn, labels: st.SearchStrategy[int] | None = None) -> OrbitTable:
    """Draw orbits with small whole-number masses (so ties and absent labels are common)."""
    orbits = draw(st.integers(1, 6))
    count = draw(labels if labels is not None else st.integers(2, 6))
    cells = draw(
        st.lists(st.integers(0, 5), min_size=orbits * count, max_size=orbits * count).filter(any)
    )
    mass = np.array(cells, float).reshape(orbits, count)
    distinct = draw(st.lists(CONFIDENCES, min_size=1, max_size=orbits))
    which = draw(st.lists(st.integers(0, len(distinct) - 1), min_size=orbits, max_size=orbits))
    predicted = draw(st.lists(st.integers(0, count - 1), min_size=orbits, max_size=orbits))
    return OrbitTable(mass / mass.sum(), np.array(distinct)[which], predicted)


@dataclass
class Fiber:
    """One fiber by brute force: its orbits, and what a classifier makes of them."""

    members: list[int]
    table: OrbitTable
    mass: float

    @property
    def confidence(self) -> float:
        return self._mean(lambda o: self.table.mass[o].sum() * self.table.confidence[o])

    @property
    def accuracy(self) -> float:
        return self._mean(lambda o: self.table.mass[o][self.table.predicted[o]])

    @property
    def accuracies(self) -> list[float]:
        """The accuracy of every invariant labeling of the fiber's orbits."""
        labels = range(self.table.mass.shape[1])
        return [
            sum(self.table.mass[o][y] for o, y in zip(self.members, choice, strict=True))
            / self.mass
            for choice in itertools.product(labels, repeat=len(self.members))
        ]

    def _mean(self, value: Callable[[int], float]) -> float:
        return sum(value(o) for o in self.members) / self.mass


def brute_fibers(table: OrbitTable, bins: int | None = None) -> list[Fiber]:
    """List the fibers with mass, by a loop over orbits."""
    keys: dict[float, list[int]] = {}
    for orbit, p in enumerate(table.confidence):
        key = p
        if bins is not None:
            key = next(j for j in range(bins) if p <= np.float64((j + 1) / bins) or j == bins - 1)
        keys.setdefault(key, []).append(orbit)
    fibers = [Fiber(o, table, sum(table.mass[i].sum() for i in o)) for o in keys.values()]
    return [fiber for fiber in fibers if fiber.mass > 0]


def brute_ece(table: OrbitTable, bins: int | None = None) -> float:
    return sum(f.mass * abs(f.accuracy - f.confidence) for f in brute_fibers(table, bins))
