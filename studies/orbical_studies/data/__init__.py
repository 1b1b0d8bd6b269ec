"""Data sets that only the studies use.

Importing one costs what it needs: RDKit and tblite are loaded by the molecules alone.
"""

from __future__ import annotations

from .cifar10_images import cifar10, cifar100
from .coco_images import coco_five
from .furniture_files import modelnet10, sweethome3d
from .galaxy_images import efigi, galaxy_zoo, hubble_types, point_spread
from .galaxy_shapes import galaxies
from .infrared_spectra import spectra
from .planar_fields import vector_fields
from .qm9_molecules import qm9

__all__ = [
    "cifar10", "cifar100", "coco_five", "efigi", "galaxies", "galaxy_zoo", "hubble_types",
    "modelnet10", "point_spread", "qm9", "spectra", "sweethome3d", "vector_fields",
]  # fmt: skip
