"""What the detection study trains, at which levels, and what it keeps of a scan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orbical.actions import Window
from orbical.tasks import Detection

from ..pages import Row

PAGE = Path("docs/studies/detection.md")
RESULTS = Path("results/detection")
WINDOW, RADIUS = 128, 32
JITTERS = (0, 25, 50, 75, 100)
SEEDS = 3
WHOLE = 0
"""The seed whose weights and scans are kept whole, for plots of single objects."""

STEPS = 3_500
BATCH = 128
SCENES = 4_000
SCENE_STEPS = 8_000
STEP = 2
STORED = (
    "iou",
    "match_confidence",
    "box_score",
    "box_correct",
    "score_vs_consensus",
    "consensus",
    "consensus_vs_truth",
    "invariance_gap",
)
TASK = Detection(Window(WINDOW), score="iou_confidence")


@dataclass(frozen=True)
class Trial:
    """One training; its text is its name.

    Attributes:
        jitter: how far the key object is moved away from the centre at most, percent of `RADIUS`.
        seed: of weights, order, shifts and light.

    >>> str(Trial(50, 1)), Trial(50, 1).archive
    ('jitter-050-seed-1', 'jitter-050.tar')
    """

    jitter: int
    seed: int

    def __str__(self) -> str:
        return f"{self.level}-seed-{self.seed}"

    @property
    def level(self) -> str:
        """Name of the level."""
        return f"jitter-{self.jitter:03d}"

    @property
    def archive(self) -> str:
        """Name of the file with the level's weights and whole scan."""
        return f"{self.level}.tar"

    @property
    def summary(self) -> str:
        """Name of the file with what the tables need."""
        return f"{self}.npz"


def trials(seeds: int = SEEDS) -> list[Trial]:
    """List all trainings, those of one seed before the next.

    >>> len(trials())
    15
    """
    return [Trial(jitter, seed) for seed in range(seeds) for jitter in JITTERS]


def complete_seeds(rows: Sequence[Row]) -> list[int]:
    """List the seeds of which all levels are there.

    >>> rows = [{"jitter": jitter, "seed": 0} for jitter in JITTERS] + [{"jitter": 0, "seed": 1}]
    >>> complete_seeds(rows)
    [0]
    """
    found = {(row["jitter"], row["seed"]) for row in rows}
    seeds = sorted({seed for _, seed in found})
    return [seed for seed in seeds if all((jitter, seed) in found for jitter in JITTERS)]
