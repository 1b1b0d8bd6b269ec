"""What a wrong invariance costs on the Swiss roll: accuracy ceiling and ECE interval.

Points of two spirals at two heights are classified by a network that cannot see the height, and by
one that can. 244 trainings take about a quarter of an hour on one core.

Section 4.7.1 and Fig. 3 of Berman et al., "On Uncertainty Calibration for Equivariant Functions".
"""

from __future__ import annotations

from ..framework import Study
from . import extrinsic
from .papers_width import collect_width, train_width
from .training import Settings, run

study = Study(
    name="swiss-roll",
    description=__doc__,
    settings=Settings(),
    steps={
        **{"run": run, "extrinsic": extrinsic.run},
        **{"train-width": train_width, "collect-width": collect_width},
    },
    report=f"{__name__}.report",
)
