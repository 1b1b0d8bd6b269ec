"""What the four CSV files of the digit study say."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from ..pages import Row, read_csv
from .settings import SMOOTHING

PLAIN, SMOOTH = SMOOTHING
DIGITS = range(10)


@dataclass(frozen=True)
class Results:
    """The rows of the four CSV files."""

    groups: list[Row]
    confusions: list[Row]
    collisions: list[Row]
    quantised: list[Row]

    @classmethod
    def read(cls, folder: Path) -> Results:
        """Read the files of a folder."""
        names = ("groups", "confusions", "collisions", "quantised")
        return cls(*(read_csv(folder / f"{name}.csv") for name in names))

    def summaries(self, images: str = PLAIN) -> dict[str, Row]:
        """The summary of each group, in the order of the study."""
        return {row["group"]: row for row in self.groups if row["images"] == images}

    def confused(self, group: str, images: str = PLAIN) -> dict[tuple[int, int], int]:
        """How often each digit's neighbour is each digit."""
        return {
            (row["digit"], row["neighbour"]): row["times"]
            for row in self.confusions
            if (row["group"], row["images"]) == (group, images)
        }

    def pairs(self, group: str) -> dict[tuple[int, int], int]:
        """How often two digits are taken for each other, most often first."""
        found: dict[tuple[int, int], int] = {}
        for (a, b), times in self.confused(group).items():
            if a != b:
                key = (min(a, b), max(a, b))
                found[key] = found.get(key, 0) + times
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))

    def digit_error(self, group: str, digit: int) -> float:
        """The share of one digit's images whose neighbour is another digit."""
        own = {b: n for (a, b), n in self.confused(group).items() if a == digit}
        return 1 - own.get(digit, 0) / sum(own.values())


def wilson(wrong: int, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share.

    >>> low, high = wilson(5, 100)
    >>> round(low, 4), round(high, 4)
    (0.0215, 0.1118)
    """
    z = 1.959964
    share, shrink = wrong / count, 1 + z * z / count
    middle = (share + z * z / (2 * count)) / shrink
    reach = z / shrink * math.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2)
    return middle - reach, middle + reach


def least_error(nearest_error: float, labels: int = 10) -> float:
    """The least error that a nearest-neighbour error leaves possible, with unlimited data.

    Cover and Hart: with R* the best error there is, the nearest neighbour's R satisfies
    `R* <= R <= R* (2 - C / (C - 1) R*)`; this is the second inequality solved for R*.

    >>> round(least_error(0.0942, labels=10), 4)
    0.0484
    """
    shape = labels / (labels - 1)
    return (1 - math.sqrt(max(0.0, 1 - shape * nearest_error))) / shape
