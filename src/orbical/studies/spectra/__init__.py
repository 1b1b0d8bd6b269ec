"""Infrared spectra with evidential heads: where along a spectrum does uncertainty bleed?

python -m orbical.studies.spectra pack FOLDER                 # label molecules, one small file
python -m orbical.studies.spectra train --pack ... --out ...  # one line of results a network
python -m orbical.studies.spectra report --pack ... --out ... # tables, figures and page
"""

from .commands import main

__all__ = ["main"]
