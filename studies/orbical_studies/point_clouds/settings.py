"""What the point-cloud study trains and asks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from orbical.errors import InputError

PAGE = Path("docs/studies/point-clouds.md")
RESULTS = Path("results/point-clouds")
DATA_SETS = ("sweethome3d", "modelnet10")
GROUPS = {"slices": "slices3d:72:13", "ball": "rotations3d:2000"}
TEST_SHARE = 0.3
SPLIT_SEED = 0


@dataclass(frozen=True)
class Settings:
    """What is trained and asked.

    Attributes:
        seeds: trainings of each network on each data set, seeded 0, 1, ...
        steps: of each training, 64 clouds each.
        drawn: points drawn of a cloud at each step.
        points: the most points of a test cloud.
        most: the most test clouds of a class.
        widths: of the point network.
        groups: name to the text of a group.
        batch: clouds in one forward pass.
    """

    seeds: int = 3
    steps: int = 3000
    drawn: int = 512
    points: int = 1024
    most: int = 64
    widths: tuple[int, ...] = (64, 128, 256)
    groups: tuple[tuple[str, str], ...] = tuple(GROUPS.items())
    batch: int = 1024

    def __post_init__(self) -> None:
        for name in ("seeds", "steps", "drawn", "points", "most", "batch"):
            if getattr(self, name) < 1:
                raise InputError(f"{name}: got {getattr(self, name)}, expected at least 1")
