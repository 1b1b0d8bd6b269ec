"""What a wrong invariance costs on the Swiss roll: accuracy ceiling and ECE interval.

Points of two spirals at two heights are classified by a network that cannot see the height, and by
one that can. 100 trainings take about six minutes on one core.

Section 4.7.1 and Fig. 3 of Berman et al., "On Uncertainty Calibration for Equivariant Functions".
"""

from __future__ import annotations

from ..framework import Study
from .training import Settings, run

study = Study(
    name="swiss-roll",
    description=__doc__,
    settings=Settings(),
    steps={"run": run},
    report=f"{__name__}.report",
)
