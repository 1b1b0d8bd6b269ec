"""Group order and blur on galaxies: what a correct symmetry does to accuracy and calibration.

300 trainings take a quarter of an hour on a large GPU and days on a laptop; --orders, --seeds,
--epochs and --only choose fewer. --data generated needs no files. To train on another machine:
`pack` here, copy the work folder, `train` there, copy it back, then `collect` here.

Section 4.7.2, appendices D and F and Figs 4 and 11 to 13 of Berman et al., "On Uncertainty
Calibration for Equivariant Functions".
"""

from __future__ import annotations

from ..framework import Study
from .settings import Settings

STEPS = {
    "pack": "packing:pack",
    "train": "training:train",
    "collect": "collecting:collect",
    "sizes": "collecting:sizes",
    "kinds": "other_catalog:write_kinds",
    "coverage": "contrasts:coverage",
    "pack-paper": "papers_size:pack_paper",
    "train-paper": "papers_size:train_paper",
    "collect-paper": "papers_size:collect_paper",
}
study = Study.of_package(__name__, "galaxies", Settings(), STEPS, palette=256)
