"""Molecules: what a correct symmetry does to errors and to the reported uncertainty.

Its trainings took about ten minutes of a large GPU with --workers 15 and 92 epochs. Without data on
the training machine: `pack` here, `train` there with the same work folder, `collect` here.

Section 6.1.2, appendix E, Table 1 and Fig. 8 of Berman et al., "On Uncertainty Calibration for
Equivariant Functions".
"""

from __future__ import annotations

from ..framework import Study
from .settings import Settings

STEPS = {
    "pack": "packing:pack",
    "train": "training:train",
    "collect": "collecting:collect",
    "pack-penalty": "penalty:pack_penalty",
    "train-penalty": "penalty:train_penalty",
    "collect-penalty": "penalty:collect_penalty",
}
study = Study.of_package(__name__, "qm9", Settings(), STEPS)
