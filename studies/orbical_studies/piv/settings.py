"""Settings of the particle-flow study."""

from __future__ import annotations

import math
from dataclasses import dataclass

from orbical.errors import InputError

from ..framework import TrainingSettings, option

GROUP = "dihedral:4*time_reversal"
MODELS = ("farneback", "dis", "directed", "symmetric")
KINDS = 6
SEED = 3


@dataclass(frozen=True)
class Settings(TrainingSettings):
    """Settings of the particle-flow study."""

    pairs: int = option(10, "generated pairs of each kind of flow", least=1)
    size: int = option(128, "of a generated pair in pixels, a multiple of 16", least=32)
    angles: int = option(24, "rotations", least=1)
    turned: int = option(2, "generated pairs of each kind that are rotated", least=1)
    real: bool = option(True, "also scan the pairs of Cai et al., if they are at hand")
    seeds: int = option(3, "trainings of each network", least=1)
    steps: int = option(2000, "steps of each training", least=1)
    view: int = option(128, "side of a training pair in pixels", least=32)
    batch: int = option(16, "training pairs in one step", least=1)
    seconds: float = option(math.inf, "after which a training ends early", least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size % 16:
            raise InputError("size", "a multiple of 16", self.size)
