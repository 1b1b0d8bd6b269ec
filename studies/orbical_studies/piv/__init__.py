"""Flow in particle images along D4 x time reversal: classical methods against learned ones.

Section 3.2 of Zhao et al., "Evaluating Machine Learning Models with NERO" (Farneback against
PIV-LiteFlowNet-en), with generated pairs, the networks that ship with the package, the 20 pairs of
Cai et al. if they are at hand, any rotation in a view that stays inside, the consensus, and the
caveat of time reversal.
"""

from __future__ import annotations

from ..framework import Study
from .scans import Settings, run

study = Study("piv", __doc__, Settings(), {"run": run}, report=f"{__name__}.report")
