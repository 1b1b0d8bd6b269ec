"""Data sets that come inside packages, and readers of public files that a user may have.

Every image is a float32 tensor in 0..1 with its channel axis, and every label an int64 tensor,
so that the pair can go to `orbical.scan` as it is.

    images, labels = orbical.datasets.mnist()

`BUILT_IN` names the ones that need no file: these names are what `orbical scan --data` knows.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from .cifar10_images import cifar10
from .coco_folder import coco, coco_five
from .digit_images import digits
from .dipole_vectors import dipoles
from .folders import data_folder
from .furniture_clouds import furniture
from .galaxy_images import efigi, galaxy_zoo, point_spread
from .galaxy_shapes import galaxies
from .generated_scenes import scenes
from .image_folders import image_folder
from .infrared_spectra import spectra
from .mnist_images import full_mnist, mnist
from .molecule_files import molecules
from .particle_images import piv
from .particle_seeding import particle_pairs
from .planar_fields import vector_fields
from .point_clouds import modelnet10, padded, sweethome3d
from .qm9_molecules import qm9

BUILT_IN: dict[str, Callable[[], tuple[Tensor, Tensor]]] = {"digits": digits, "mnist": mnist}

__all__ = [
    "BUILT_IN",
    "cifar10",
    "coco",
    "coco_five",
    "data_folder",
    "digits",
    "dipoles",
    "efigi",
    "full_mnist",
    "furniture",
    "galaxies",
    "galaxy_zoo",
    "image_folder",
    "mnist",
    "modelnet10",
    "molecules",
    "padded",
    "particle_pairs",
    "piv",
    "point_spread",
    "qm9",
    "scenes",
    "spectra",
    "sweethome3d",
    "vector_fields",
]
