"""Flow in particle images along D4 x time reversal: classical methods against learned ones.

Section 3.2 of Zhao et al., "Evaluating Machine Learning Models with NERO" (Farneback against
PIV-LiteFlowNet-en), with generated pairs, the networks that ship with the package, the 20 pairs of
Cai et al. if they are at hand, any rotation in a view that stays inside, the consensus, and the
caveat of time reversal.

The steps `pack`, `train` and `collect` train both networks several times, for a GPU elsewhere: it
needs only torch, NumPy and SciPy, and what `pack` wrote into the folder --work.
"""

from __future__ import annotations

from ..framework import Study
from .settings import Settings

STEPS = {
    "run": "scans:run",
    "pixels": "scans:pixels",
    "pack": "trainings:pack",
    "train": "trainings:train",
    "collect": "trainings:collect",
    "laboratory": "scans:laboratory",
    "six-kinds": "six_kinds:evaluate",
}
study = Study.of_package(__name__, "piv", Settings(), STEPS)
