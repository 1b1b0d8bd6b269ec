"""Group order and blur on galaxies: what a correct symmetry does to accuracy and calibration.

300 trainings take a quarter of an hour on a large GPU and days on a laptop; --orders, --seeds,
--epochs and --only choose fewer. --data generated needs no files. To train on another machine:
`pack` here, copy the work folder, `train` there, copy it back, then `collect` here.

Section 4.7.2, appendices D and F and Figs 4 and 11 to 13 of Berman et al., "On Uncertainty
Calibration for Equivariant Functions".
"""

from __future__ import annotations

from ..framework import Study
from .collecting import collect, sizes
from .kinds import write_kinds
from .packing import pack
from .papers_size import collect_paper, pack_paper, train_paper
from .settings import Settings
from .simulation import coverage
from .training import train

steps = {
    **{"pack": pack, "train": train, "collect": collect},
    **{"sizes": sizes, "kinds": write_kinds, "coverage": coverage},
    **{"pack-paper": pack_paper, "train-paper": train_paper, "collect-paper": collect_paper},
}
study = Study("galaxies", __doc__, Settings(), steps, report=f"{__name__}.report", palette=256)
