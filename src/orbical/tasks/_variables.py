"""Declarations of what a scan stores: dimensions, meanings, units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict, Unpack


@dataclass(frozen=True)
class Variable:
    """A result of a scan: its dimensions after `model`, what it means, and how it is read.

    Args:
        dims: the dimensions, such as `("sample", "element")`.
        meaning: a phrase for legends and tables.
        optional: whether it is stored only if `keep=` names it.
        unit: `"share"` for values in 0..1, a unit such as `"px"`, or nothing.
        higher_is_better: the direction of a quality; None where there is none.
        averaged: of the score of a consensus, whether `OrbitAverage` makes a model that has it.
    """

    dims: tuple[str, ...]
    meaning: str
    optional: bool = False
    unit: str = ""
    higher_is_better: bool | None = None
    averaged: bool | None = None

    @property
    def attributes(self) -> dict[str, object]:
        """The attributes of the stored array."""
        known = {"higher_is_better": self.higher_is_better, "averaged": self.averaged}
        return {
            "meaning": self.meaning,
            "units": self.unit,
            **{name: value for name, value in known.items() if value is not None},
        }


class About(TypedDict, total=False):
    """What is said of a variable besides its meaning."""

    optional: bool
    unit: str
    higher_is_better: bool
    averaged: bool


def per_element(meaning: str, *dims: str, **about: Unpack[About]) -> Variable:
    """Declare a variable that each sample has at each element, with further dimensions."""
    return Variable(("sample", "element", *dims), meaning, **about)


def per_sample(meaning: str, *dims: str, **about: Unpack[About]) -> Variable:
    """Declare a variable that each sample has once, with further dimensions."""
    return Variable(("sample", *dims), meaning, **about)


SHARE: About = {"unit": "share", "higher_is_better": True}
"""How a share that should be large is read."""

ACTION_DEFECT = per_element(
    "relative loss of the transformation itself, there and back", higher_is_better=False
)
