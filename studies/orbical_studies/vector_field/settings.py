"""What the vector-field study trains and measures, and in which worlds."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path

from orbical.errors import InputError
from orbical_studies.data.planar_fields import DOMAINS, FIELDS

PAGE = Path("docs/studies/vector-field.md")


@dataclass(frozen=True)
class Settings:
    """What is trained and measured.

    Attributes:
        seeds: trainings of each network on each field, with data of their own.
        train: training points (2,000).
        epochs: when to measure; training ends at the last.
        batch: points a step (64).
        rate: Adam's, at first; it falls to 0.
        side: points on a side of the test set.
        angles: rotations in the plane along which errors are measured.
        arrows: points on a side of the drawn fields.
    """

    seeds: int = 3
    train: int = 2000
    epochs: tuple[int, ...] = (50, 100, 300)
    batch: int = 64
    rate: float = 5e-3
    side: int = 40
    angles: int = 32
    arrows: int = 12

    def __post_init__(self) -> None:
        for name in ("seeds", "train", "batch", "side", "angles", "arrows"):
            if getattr(self, name) < 1:
                raise InputError(f"{name}: got {getattr(self, name)}, expected at least 1")
        if self.side % 2:
            raise InputError(f"side: got {self.side}, expected an even number: none at the origin")
        if not self.epochs or min(self.epochs) < 1:
            raise InputError(f"epochs: got {self.epochs}, expected whole numbers from 1")
        if not self.rate > 0:
            raise InputError(f"rate: got {self.rate}, expected a positive number")


WORLDS = tuple(product(FIELDS, DOMAINS))
