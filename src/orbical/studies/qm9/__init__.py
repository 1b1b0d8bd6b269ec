"""Properties of molecules: does a correct symmetry change calibration, and where doubt goes?

python -m orbical.studies.qm9 pack FOLDER                  # QM9 in one small file
python -m orbical.studies.qm9 train --pack ... --out ...    # one line of results a network
orbical study qm9 report --pack ... --results ...           # the page, from the results
"""

from .commands import main

__all__ = ["main"]
