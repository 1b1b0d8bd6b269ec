"""Point clouds under rotation: trained with and without rotations, and invariant by construction.

Five networks classify furniture, and are evaluated at every rotation of two samples of SO(3).
Without data on the training machine: `pack` here, `train` there with the same work folder,
`collect` and `worst` here.

Section 3.3 and Fig. 11 of Zhao et al., "Evaluating Machine Learning Models with NERO".
"""

from __future__ import annotations

from ..framework import Study
from .collecting import collect
from .training import Settings, pack, train
from .transformer import collect_transformer, train_transformer
from .worst_cases import worst

study = Study(
    name="point-clouds",
    description=__doc__,
    settings=Settings(),
    steps={
        **{"pack": pack, "train": train, "collect": collect, "worst": worst},
        **{"transformer": train_transformer, "collect-transformer": collect_transformer},
    },
    report=f"{__name__}.report",
    palette=256,
)
