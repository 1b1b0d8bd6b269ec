"""Point clouds under rotation: trained with and without rotations, and invariant by construction.

Five networks classify furniture, and are evaluated at every rotation of two samples of SO(3).
Without data on the training machine: `pack` here, `train` there with the same work folder,
`collect` and `worst` here.

Section 3.3 and Fig. 11 of Zhao et al., "Evaluating Machine Learning Models with NERO".
"""

from __future__ import annotations

from ..framework import Study
from .training import Settings

STEPS = {
    "pack": "training:pack",
    "train": "training:train",
    "collect": "collecting:collect",
    "worst": "collecting:worst",
    "transformer": "transformer:train_transformer",
    "collect-transformer": "transformer:collect_transformer",
}
study = Study.of_package(__name__, "point-clouds", Settings(), STEPS, palette=256)
