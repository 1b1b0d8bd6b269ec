"""Which networks, at how many angles, and where the scan and the page go."""

from __future__ import annotations

from pathlib import Path

PAGE = Path("docs/studies/digits-nero.md")
STORE = Path("results/digits-nero.zarr")
NETWORKS = ("plain", "augmented")
ANGLES = 72
SMALL_DEG = 15
"""Up to where a rotation counts as small."""
DETAIL_DEG = 170
"""Where a 6 and a 9 are looked at closely."""
