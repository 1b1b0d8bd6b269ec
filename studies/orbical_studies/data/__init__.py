"""Data sets that only the studies use.

Importing one costs what it needs: RDKit and tblite are loaded by the molecules alone.
"""

from __future__ import annotations

from .cifar10_images import cifar10
from .galaxy_images import efigi, galaxy_zoo, point_spread
from .galaxy_shapes import galaxies
from .infrared_spectra import spectra
from .planar_fields import vector_fields
from .qm9_molecules import qm9

__all__ = [
    "cifar10",
    "efigi",
    "galaxies",
    "galaxy_zoo",
    "point_spread",
    "qm9",
    "spectra",
    "vector_fields",
]
