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
from .scans import laboratory, pixels, run
from .settings import Settings
from .six_kinds import evaluate
from .trainings import collect, pack, train

steps = {
    "run": run,
    "pixels": pixels,
    "pack": pack,
    "train": train,
    "collect": collect,
    "laboratory": laboratory,
    "six-kinds": evaluate,
}
study = Study("piv", __doc__, Settings(), steps, report=f"{__name__}.report")
