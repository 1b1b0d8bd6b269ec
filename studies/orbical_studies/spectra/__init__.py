"""Infrared spectra of molecules: where along a spectrum uncertainty bleeds, and into which part.

Three networks predict spectra with evidential outputs. Labeling the molecules takes some hours of
one core (--label-minutes ends it sooner; the same command resumes), the 42 trainings some
minutes of a large GPU or days of a laptop; --epochs, --seeds and --only choose fewer. To train on
another machine, which needs torch and e3nn only: run `pack` here, `train` there, and then
`collect`, `compare` and `compare-more` here.

Section 6.1.2, appendix E and Fig. 9 of Berman et al., "On Uncertainty Calibration for Equivariant
Functions".
"""

from __future__ import annotations

from ..framework import Study
from .settings import Settings

STEPS = {
    "pack": "packing:pack",
    "train": "training:train",
    "collect": "collecting:collect",
    "compare": "collecting:compare",
    "compare-more": "collecting:compare_more",
}
study = Study.of_package(__name__, "spectra", Settings(), STEPS, palette=64)
