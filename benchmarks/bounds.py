"""Bounds at scale, on one thread: a million orbits, and a million points to match.

    python benchmarks/bounds.py                   every row
    python benchmarks/bounds.py matching          some rows
    python benchmarks/bounds.py neighbors         minutes long, on MNIST, and so only if asked for
    python benchmarks/bounds.py --json out.json   and a file

No other library computes these; the yardsticks are one sort plus one pass, and our own smaller run.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

import numpy as np
from timing import Row, at_most, extra_megabytes, processor_seconds, run, seconds

from orbical import actions, datasets, groups
from orbical.bounds import OrbitTable, classification, match_orbits, neighbor_ceiling


def million_orbits() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Masses of 1e6 orbits x 10 labels, real-valued confidences, predictions."""
    rng = np.random.default_rng(0)
    mass = rng.random((1_000_000, 10))
    return mass / mass.sum(), rng.random(1_000_000), rng.integers(0, 10, 1_000_000)


def classification_bounds() -> Iterator[Row]:
    mass, confidence, predicted = million_orbits()
    table = OrbitTable(mass, confidence, predicted)
    yardstick = seconds(lambda: np.sort(confidence)) + seconds(lambda: mass.sum(1))
    against = "one sort + one pass"
    for bins, limit in ((None, 2), (15, 3)):
        fibers = "each confidence a fiber" if bins is None else f"{bins} bins"
        spent = seconds(lambda bins=bins: classification(copy(table), bins=bins))  # nothing is kept
        yield at_most(f"classification, 1e6 x 10, {fibers}", spent, against, yardstick, limit)
    whole = seconds(lambda: classification(OrbitTable(mass, confidence, predicted), bins=15))
    yield at_most("the same, 15 bins, with making the table", whole, against, yardstick, 3)


def points(size: int) -> tuple[np.ndarray, groups.Group]:
    """Points of space in orbits of a group of eight, about eight on each."""
    turns = groups.dihedral(4).linear("plane")
    space = np.zeros((8, 3, 3))
    space[:, :2, :2], space[:, 2, 2] = turns, 1
    rng = np.random.default_rng(0)
    start = rng.normal(size=(size // 8, 3))[rng.integers(0, size // 8, size)]
    x = np.einsum("nij,nj->ni", space[rng.integers(0, 8, size)], start)
    return x, groups.from_matrices(space=space)


def matching() -> Iterator[Row]:
    times = {}
    for size in (100_000, 1_000_000):
        x, group = points(size)
        times[size] = seconds(lambda x=x, group=group: match_orbits(x, group), runs=2)
    small, large = times.values()
    yield at_most("matching 1e6 points in space, 8 elements", large, "1e5 points", small, 15)


def neighbors(size: int = 10_000) -> Iterator[Row]:
    """The nearest of all samples to each of them, over all rotations: 5 minutes and 2 GB.

    The samples are the first training images of MNIST from the data folder (`ORBICAL_DATA`).
    """
    images, labels = datasets.full_mnist(split="train")
    x, label = images[:size].numpy(), labels[:size].numpy()
    spent, searched = [], []

    def search() -> None:
        found = neighbor_ceiling(x, label, "rotations:72", action=actions.Images(), progress=True)
        searched.append(found.samples)

    megabytes = extra_megabytes(lambda: spent.append(processor_seconds(search)))
    work = f"neighbors of {searched[0]:,} of {size:,} digits x 72 rotations"
    yield at_most(work, spent[0], "limit", 300, 1)
    memory = megabytes / 1024
    yield Row(
        f"{work}, memory", f"{memory:.3g} GB", "limit", "2 GB", memory / 2, "<= 1", memory < 2
    )


ROWS = [classification_bounds, matching]
ON_REQUEST = [neighbors]

if __name__ == "__main__":
    run(ROWS, __doc__, ON_REQUEST)
