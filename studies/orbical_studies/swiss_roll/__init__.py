"""What a wrong invariance costs on the Swiss roll: accuracy ceiling and ECE interval.

Points of two spirals at two heights are classified by a network that cannot see the height, and by
one that can. 244 trainings take about a quarter of an hour on one core.

Section 4.7.1 and Fig. 3 of Berman et al., "On Uncertainty Calibration for Equivariant Functions".
"""

from __future__ import annotations

from ..framework import Study
from .training import Settings

STEPS = {
    "run": "training:run",
    "extrinsic": "extrinsic:run",
    "train-width": "papers_width:train_width",
    "collect-width": "papers_width:collect_width",
}
study = Study.of_package(__name__, "swiss-roll", Settings(), STEPS)
