"""Two networks side by side over all properties: who is lower, how often, by how much."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..pages import mean
from .measures import rank_correlation
from .numbers import Data, limit, networks_of, values
from .paper import SYMBOLS, TABLE, learnt
from .settings import ALL, COMPARED, PROPERTIES, SHOWN

ALIKE = 1.25
"""Numbers that differ by less than this factor count as alike."""


class Contest(NamedTuple):
    """Two networks on one measure.

    Attributes:
        first: the number of properties on which every seed of the first is below the second's.
        second: the other way round.
        ratio: the geometric mean over properties of the first over the second.
        least: the least such mean of a seed of the first and one of the second.
        most: the largest.
    """

    first: int
    second: int
    ratio: float
    least: float
    most: float

    @property
    def text(self) -> str:
        """Write how often each is lower.

        >>> Contest(3, 1, 0.5, 0.4, 0.6).text
        'lower on 3, higher on 1 of 11'
        """
        return f"lower on {self.first}, higher on {self.second} of {len(PROPERTIES)}"

    @property
    def range(self) -> str:
        """Write between which ratios pairs of seeds lie.

        >>> Contest(0, 0, 0.8, 0.5, 1.1).range
        'pairs of seeds from 2.0 times smaller to 1.1 times larger'
        """
        return f"pairs of seeds from {times(self.least)} to {times(self.most)}"

    @property
    def alike(self) -> bool:
        """Whether the two hardly differ on the whole.

        >>> Contest(0, 0, 1.1, 0.5, 2.0).alike, Contest(0, 0, 2.0, 0.5, 2.2).alike
        (True, False)
        """
        return 1 / ALIKE < self.ratio < ALIKE

    @property
    def surely_alike(self) -> bool:
        """Whether they hardly differ whichever seeds are taken.

        >>> Contest(0, 0, 1.1, 0.9, 1.2).surely_alike, Contest(0, 0, 1.1, 0.5, 2).surely_alike
        (True, False)
        """
        return self.least > 1 / ALIKE and self.most < ALIKE


def contest(
    data: Data, column: str, first: str, second: str, frames: tuple[str, str] = ("given", "given")
) -> Contest:
    """Compare two networks, or one network in two frames, property by property."""
    lower = higher = 0
    ratios = []
    pairs = []
    for name in PROPERTIES:
        a, b = (
            values(data, column, name, network, frame=frame)
            for network, frame in zip((first, second), frames, strict=True)
        )
        lower += max(a) < min(b)
        higher += max(b) < min(a)
        ratios.append(math.log(mean(a) / mean(b)))
        pairs.append([math.log(one / other) for one in a for other in b])
    by_seeds = [math.exp(mean(found)) for found in zip(*pairs, strict=True)]
    return Contest(lower, higher, math.exp(mean(ratios)), min(by_seeds), max(by_seeds))


def times(ratio: float) -> str:
    """Write a ratio in words.

    >>> times(0.5), times(3.0), times(1.01)
    ('2.0 times smaller', '3.0 times larger', 'the same within 5 %')
    """
    if 1 / 1.05 < ratio < 1.05:
        return "the same within 5 %"
    return f"{ratio:.1f} times larger" if ratio > 1 else f"{1 / ratio:.1f} times smaller"


def untrained_rows(data: Data) -> dict[str, list[str]]:
    """Sort the paper's rows by what their two networks learnt."""
    found: dict[str, list[str]] = {"worse": [], "hardly": [], "one": [], "both": []}
    for name in TABLE:
        bound = limit(data, name)
        words = [
            learnt(bound[f"paper_{network.lower()}_mae"], bound["mean_mae"]) for network in COMPARED
        ]
        known = words.count("learnt")
        unlearnt = "worse" if "no better than the mean" in words else "hardly"
        found["both" if known == 2 else "one" if known == 1 else unlearnt].append(SYMBOLS[name])
    return found


def better_bleeds_less(data: Data) -> tuple[int, float]:
    """Count properties where the more accurate network bleeds less; correlate error and bleed."""
    agree = 0
    errors, bleeds = [], []
    for name in PROPERTIES:
        mae = [mean(values(data, "mae", name, network)) for network in COMPARED]
        bleed = [mean(values(data, "bleed_99", name, network)) for network in COMPARED]
        agree += (mae[0] < mae[1]) == (bleed[0] < bleed[1])
        errors += mae
        bleeds += bleed
    return agree, rank_correlation(np.array(errors), np.array(bleeds))


def epochs_of(data: Data, network: str) -> int:
    """Give how many epochs a network was trained for all properties."""
    rows = (r for r in data["results"] if (r["network"], r["target"]) == (network, ALL))
    return max(int(row["epochs"]) for row in rows)


def share_against_error(data: Data) -> float:
    """Rank correlation of the aleatoric share and the error, over networks and properties."""
    errors, found = (
        [mean(values(data, column, name, n)) for name in PROPERTIES for n in networks_of(data)]
        for column in ("mae", "share")
    )
    return rank_correlation(np.array(errors), np.array(found))


def tail(data: Data, part: str, network: str) -> float:
    """Give the 99 % quantile over the median of a part of the shown property's variance."""
    high, middle = (mean(values(data, f"{part}_{q}", SHOWN, network)) for q in ("99", "50"))
    return high / middle


def agreement(data: Data, part: str) -> float:
    """Rank correlation of a part of the variance between the two networks, mean over seeds."""
    return mean(agreements(data, part, *COMPARED))


def agreements(data: Data, part: str, first: str, second: str) -> list[float]:
    """Rank correlations over molecules of a part of the variance, one for each pair of seeds.

    >>> row = {"first": "GIN", "second": "GIN", "aleatoric": 0.9}
    >>> agreements({"agreement": [row]}, "aleatoric", "GIN", "GIN")
    [0.9]
    """
    rows = (row for row in data["agreement"] if (row["first"], row["second"]) == (first, second))
    return [float(row[part]) for row in rows]


def shares(data: Data, network: str, **chosen: str) -> list[float]:
    """Give the median aleatoric shares of all properties and seeds."""
    return [v for name in PROPERTIES for v in values(data, "share", name, network, **chosen)]
