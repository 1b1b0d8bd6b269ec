"""What the particle-flow study scans."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from orbical.errors import InputError

PAGE = Path("docs/studies/piv.md")
GROUP = "dihedral:4*time_reversal"
MODELS = ("farneback", "dis", "directed", "symmetric")
SEED = 3


@dataclass(frozen=True)
class Settings:
    """What is scanned.

    Attributes:
        pairs: generated pairs of each kind of flow (the paper tests on 120 of six kinds).
        size: their side in pixels.
        angles: rotations of the second part.
        turned: generated pairs of each kind in the second part.
        real: whether to scan the pairs of Cai et al., where they are found.
    """

    pairs: int = 10
    size: int = 128
    angles: int = 24
    turned: int = 2
    real: bool = True

    def __post_init__(self) -> None:
        for name in ("pairs", "angles", "turned"):
            if getattr(self, name) < 1:
                raise InputError(f"{name}: got {getattr(self, name)}, expected at least 1")
        if self.size < 32 or self.size % 16:
            raise InputError(f"size: got {self.size}, expected a multiple of 16 from 32")
