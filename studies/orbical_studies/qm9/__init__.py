"""Properties of molecules: does a correct symmetry change calibration, and where doubt goes?

orbical study qm9                                           # all of it, step by step
python -m orbical_studies.qm9 train --pack ... --out ...    # where torch is all there is
"""

from .commands import main

__all__ = ["main"]
