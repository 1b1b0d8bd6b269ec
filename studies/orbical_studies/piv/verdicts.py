"""What the particle-flow study's numbers decide: each question with its threshold."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..pages import Row
from .settings import MODELS
from .tables import chosen, kinds_of, mean, root_mean_square, sets_of

Number = Callable[[Sequence[Row]], float]

ROUNDING = 1e-3
"""Pixels: a gap up to here is that of single precision."""
NEARLY = 0.1
"""A gap below this share of the error is nearly none."""
CONVENTION = 0.25
"""How far, relatively, a time difference may lie from the mean of |u . grad u|."""
TELLING = 0.02
"""A relative change of the error from which two times of the truth are told apart."""
NEAR = 2.0
"""A gap up to so many times Farneback's is near it."""
ALIKE = 0.75
"""The correlation from which two plots are alike."""
TOLD = 0.5
"""The rank correlation with the neighbours on a map from which place tells the spread."""
NEIGHBOURS = 3
GATHERED = (1 + math.log(10)) / 10
"""The worst tenth's share of the square of a plane Gaussian error of one size everywhere, 33 %."""


def average(column: str) -> Number:
    """Give the mean of a column as a function of rows."""
    return lambda rows: mean(rows, column)


def square(column: str) -> Number:
    """Give the root mean square of a column as a function of rows."""
    return lambda rows: root_mean_square(rows, column)


@dataclass(frozen=True)
class Samples:
    """The rows of `samples.csv`, asked for numbers that hold in every set of pairs."""

    rows: Sequence[Row]

    @property
    def sets(self) -> list[str]:
        """The sets of pairs."""
        return sets_of(self.rows)

    def each(self, function: Number, model: str, **wanted: object) -> list[float]:
        """One number a set of pairs."""
        return [function(chosen(self.rows, set=name, model=model, **wanted)) for name in self.sets]

    def below(self, function: Number, model: str, others: Sequence[str]) -> bool:
        """Whether a model's number is below that of all others, in every set."""
        own = self.each(function, model)
        return all(
            value < other
            for name in others
            for value, other in zip(own, self.each(function, name), strict=True)
        )

    def shares(self, **wanted: object) -> list[float]:
        """What the worst tenth of the pixels holds, by set, kind and model."""
        rows = chosen(self.rows, **wanted)
        return [
            mean(chosen(rows, set=name, kind=kind, model=model), "hard_share")
            for name in sets_of(rows)
            for kind in kinds_of(rows, name)
            for model in MODELS
        ]


def turned_farneback(samples: Samples) -> str:
    """Whether Farneback's answers turn and mirror along: `exact`, `nearly` or `not`."""
    rows = chosen(samples.rows, model="farneback")
    if max(row["gap_plane"] for row in rows) <= ROUNDING:
        return "exact"
    gaps = samples.each(square("gap_plane"), "farneback")
    errors = samples.each(square("rmse"), "farneback")
    near = all(gap <= NEARLY * error for gap, error in zip(gaps, errors, strict=True))
    return "nearly" if near else "not"


def reversed_farneback(samples: Samples) -> str:
    """Farneback's time difference beside that of perfect forward flow: `alike`, `more`, `less`.

    `mixed` where the sets of pairs do not agree.
    """
    found = set()
    for difference, perfect in zip(
        samples.each(average("time_difference"), "farneback"),
        samples.each(average("self_advection"), "farneback"),
        strict=True,
    ):
        if abs(difference - perfect) <= CONVENTION * perfect:
            found.add("alike")
        else:
            found.add("more" if difference > perfect else "less")
    return found.pop() if len(found) == 1 else "mixed"


def time_of(samples: Samples, model: str) -> str:
    """Whose truth a model's answers are nearer to in every set: `middle`, `first` or `unclear`."""
    changes = [
        carried / given - 1
        for given, carried in zip(
            samples.each(average("error"), model),
            samples.each(average("error_forward_truth"), model),
            strict=True,
        )
    ]
    if min(changes) >= TELLING:
        return "middle"
    return "first" if max(changes) <= -TELLING else "unclear"


def best_still(samples: Samples) -> bool:
    """Whether the directed network is the most accurate on the pairs as they are."""
    others = [model for model in MODELS if model != "directed"]
    return samples.below(average("error"), "directed", others)


def worst_moved(samples: Samples) -> bool:
    """Whether the directed network is the worst at the worst of the 16 elements."""
    others = [model for model in MODELS if model != "directed"]
    return all(samples.below(average("error_worst"), model, ["directed"]) for model in others)


def within(samples: Samples, model: str, **wanted: object) -> bool:
    """Whether a model's gap is near Farneback's in every set."""
    function = average("gap") if wanted else square("gap")
    return all(
        gap <= NEAR * reference
        for gap, reference in zip(
            samples.each(function, model, **wanted),
            samples.each(function, "farneback", **wanted),
            strict=True,
        )
    )


def far_off(samples: Samples) -> bool:
    """Whether the directed network's gap is beyond what is near Farneback's, in every set."""
    return all(
        gap > NEAR * reference
        for gap, reference in zip(
            samples.each(square("gap"), "directed"),
            samples.each(square("gap"), "farneback"),
            strict=True,
        )
    )


def worse_consensus(samples: Samples) -> list[str]:
    """Name the models whose consensus is worse than the pair as it is, in some set."""
    return [
        model
        for model in MODELS
        if any(
            consensus > still
            for consensus, still in zip(
                samples.each(average("consensus_error"), model),
                samples.each(average("error"), model),
                strict=True,
            )
        )
    ]


def stand_ins(samples: Samples) -> list[str]:
    """Name the models whose plots against consensus and truth are alike in every set."""
    return [
        model
        for model in MODELS
        if all(value >= ALIKE for value in samples.each(average("consensus_likeness"), model))
    ]


def gap_makes_error(samples: Samples) -> list[str]:
    """Name the models whose gap is as large as their error in every set."""
    return [
        model
        for model in MODELS
        if all(
            gap >= error
            for gap, error in zip(
                samples.each(square("gap"), model), samples.each(square("rmse"), model), strict=True
            )
        )
    ]


def gathered(shares: Sequence[float]) -> str:
    """Whether the errors gather in some places: `all`, `some` or `none` of the shares given."""
    above = [share > GATHERED for share in shares]
    return "all" if all(above) else "some" if any(above) else "none"


def gain(samples: Samples, kind: str) -> list[float]:
    """How many times Farneback's error is the directed network's in a kind of flow, by set."""
    return [
        classical / learned
        for classical, learned in zip(
            samples.each(average("error"), "farneback", kind=kind),
            samples.each(average("error"), "directed", kind=kind),
            strict=True,
        )
    ]


def told_by_place(samples: Samples, model: str, column: str) -> list[float]:
    """How well the place on the map tells a number of a pair, one value a set of pairs.

    It is the rank correlation of the number with its mean over the pair's neighbours there; NaN
    where the pairs were not placed or all have one number.
    """
    return [
        _with_neighbours(chosen(samples.rows, set=name, model=model), column)
        for name in samples.sets
    ]


def _with_neighbours(rows: Sequence[Row], column: str) -> float:
    if len(rows) <= NEIGHBOURS or any("map_1" not in row for row in rows):
        return math.nan
    place = np.array([[row["map_1"], row["map_2"]] for row in rows])
    numbers = np.array([row[column] for row in rows])
    apart = np.linalg.norm(place[:, None] - place, axis=2)
    np.fill_diagonal(apart, np.inf)
    around = numbers[apart.argsort(1)[:, :NEIGHBOURS]].mean(1)
    if min(np.ptp(numbers), np.ptp(around)) < ROUNDING * NEARLY:
        return math.nan
    first, second = (values.argsort().argsort() for values in (numbers, around))
    return float(np.corrcoef(first, second)[0, 1])
