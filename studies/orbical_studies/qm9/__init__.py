"""Molecules: what a correct symmetry does to errors and to the reported uncertainty.

Its trainings took about ten minutes of a large GPU with --workers 15 and 92 epochs. Without data on
the training machine: `pack` here, `train` there with the same work folder, `collect` here.

Section 6.1.2, appendix E, Table 1 and Fig. 8 of Berman et al., "On Uncertainty Calibration for
Equivariant Functions".
"""

from __future__ import annotations

from ..framework import Study
from .collecting import collect
from .packing import pack
from .penalty import collect_penalty, pack_penalty, train_penalty
from .settings import Settings
from .training import train

study = Study(
    name="qm9",
    description=__doc__,
    settings=Settings(),
    steps={
        **{"pack": pack, "train": train, "collect": collect},
        **{"pack-penalty": pack_penalty, "train-penalty": train_penalty},
        "collect-penalty": collect_penalty,
    },
    report=f"{__name__}.report",
)
