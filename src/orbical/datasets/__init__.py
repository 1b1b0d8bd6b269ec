"""Data sets that come inside packages, and readers of public files that a user may have.

Every image is a float32 tensor in 0..1 with its channel axis, and every label an int64 tensor,
so that the pair can go to `orbical.scan` as it is.

    images, labels = orbical.datasets.mnist()

`BUILT_IN` names the ones that need no file: these names are what `orbical scan --data` knows.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from .coco_folder import coco, coco_five
from .digit_images import digits
from .folders import data_folder
from .furniture_clouds import furniture
from .generated_scenes import scenes
from .image_folders import image_folder
from .key_objects import AnnotatedImage, find_key_objects, surroundings, views_of
from .mnist_images import full_mnist, mnist
from .molecule_files import molecules
from .particle_images import piv
from .particle_seeding import particle_pairs
from .point_clouds import modelnet10, padded, sweethome3d

BUILT_IN: dict[str, Callable[[], tuple[Tensor, Tensor]]] = {"digits": digits, "mnist": mnist}

__all__ = [
    "BUILT_IN",
    "AnnotatedImage",
    "coco",
    "coco_five",
    "data_folder",
    "digits",
    "find_key_objects",
    "full_mnist",
    "furniture",
    "image_folder",
    "mnist",
    "modelnet10",
    "molecules",
    "padded",
    "particle_pairs",
    "piv",
    "scenes",
    "surroundings",
    "sweethome3d",
    "views_of",
]
