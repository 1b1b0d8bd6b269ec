"""Data sets that ship with packages, generated data sets, and readers of common files.

Images are float32 tensors in 0..1 with a channel axis, and labels are int64 tensors, so that the
pair can be passed to `orbical.scan`.

    images, labels = orbical.datasets.mnist()

`BUILT_IN` contains the data sets that need no file, by their names in `orbical scan --data`.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from .digit_images import digits, full_mnist, mnist
from .example_files import (
    SHAPES,
    TISSUES,
    brain_template,
    coco_persons,
    data_file,
    data_folder,
    notes,
    nuclei,
    piv,
    voxel_shapes,
)
from .furniture_clouds import BUILDERS, PointClouds, furniture, in_unit_ball, padded
from .generated_scenes import scenes
from .key_objects import (
    AnnotatedImage,
    KeyObjects,
    checked_boxes,
    coco,
    find_key_objects,
    key_object_surroundings,
    key_object_views,
)
from .molecule_files import molecules
from .particle_images import particle_pairs, photograph

BUILT_IN: dict[str, Callable[[], tuple[Tensor, Tensor]]] = {"digits": digits, "mnist": mnist}
"""The data sets that need no file, by their names in `orbical scan --data`."""

__all__ = [
    "BUILT_IN", "SHAPES", "TISSUES", "AnnotatedImage", "PointClouds", "brain_template",
    "checked_boxes", "coco", "coco_persons", "data_file", "data_folder", "digits",
    "find_key_objects", "full_mnist", "furniture", "in_unit_ball", "key_object_surroundings",
    "key_object_views", "mnist", "molecules", "notes", "nuclei", "padded", "particle_pairs",
    "photograph", "piv", "scenes", "voxel_shapes",
]  # fmt: skip
