"""Draw the groups of the guide.

    python docs/figures/groups.py

writes docs/guide/img/groups.png in seconds.
"""

from __future__ import annotations

from pathlib import Path

import orbical as ob

PICTURE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "img" / "groups.png"
GROUPS = (
    *("dihedral:4", "translations:32:16", "scales:0.5:2:9", "homographies:20:5:100"),
    *("tetrahedral", "octahedral", "octahedral:full", "icosahedral"),
    *("pointgroup:6/mmm", "so3_quadrature:4", "sphere:8", "hue:12"),
)

if __name__ == "__main__":
    print(ob.figures.save(ob.figures.group_picture(*GROUPS), PICTURE))
