"""What the Swiss roll study trains and measures, and in which worlds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from orbical.errors import InputError

PAGE = Path("docs/studies/swiss-roll.md")
INVARIANT, PLAIN = "height-invariant", "perceptron"
BATCH, LEARNING_RATE = 128, 1e-3


@dataclass(frozen=True)
class Settings:
    """What is trained and measured; the paper's choices where nothing else is said.

    Attributes:
        seeds: trainings of each network in each world, seeded 0, 1, ...
        train: training points (200).
        points: indices of each spiral (100,000).
        thinning: the test set is every so-manieth index of both spirals, and no other point is
            ever tested; training points come from the rest.
        epochs: when to measure; training ends at the last.
        width: hidden width of the invariant network; the perceptron's makes it of like size.
        plain_width: hidden width of the perceptron.
        bins: of the ECE (100).
        small: size of a small test set (200).
        draws: how many small test sets to draw.
    """

    seeds: int = 5
    train: int = 200
    points: int = 100_000
    thinning: int = 10
    epochs: tuple[int, ...] = (100, 300, 1000)
    width: int = 128
    plain_width: int = 181
    bins: int = 100
    small: int = 200
    draws: int = 200

    def __post_init__(self) -> None:
        for name in ("seeds", "train", "bins", "small", "draws", "width", "plain_width"):
            if getattr(self, name) < 1:
                raise InputError(f"{name}: got {getattr(self, name)}, expected at least 1")
        if self.thinning < 2 or self.points % (16 * self.thinning):
            raise InputError(
                f"points, thinning: got {self.points} and {self.thinning}; expected a thinning of "
                "at least 2 and points that are a multiple of 16 times the thinning"
            )
        if not self.epochs or min(self.epochs) < 1:
            raise InputError(f"epochs: got {self.epochs}, expected whole numbers from 1")


WORLDS: tuple[tuple[float, float], ...] = (*((e / 8, 1 - e / 8) for e in range(9)), (0.0, 0.0))
"""Shares of correct and incorrect invariance: Fig. 3's line, then the all-extrinsic world."""
