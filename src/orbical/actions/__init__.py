"""How a group acts on data: images, volumes, points, fields, boxes, graphs, signals, and trees.

Every action moves a batch by all elements at once, element first: `apply(group, x)` turns
`x[B, ...]` into `[K, B, ...]`, so that one transformation serves the whole batch. Pixels have their
own frame (columns to the right, rows down); the actions on pixels convert to it internally.
"""

from .base import (
    Action,
    Fields,
    Trivial,
    as_action,
    check_group,
    flat,
    is_own,
    places_left,
    register,
    view_of,
)
from .boxes import Boxes
from .colors import ColorImages
from .crops import FieldWindow, PairWindow
from .graphs import Adjacency, Edges
from .images import ImagePair, Images, VectorField, Window
from .key_points import PixelPoints
from .on_maps import ClassMaps, ValueMaps
from .points import Irreps, Points, Rows, Vectors
from .signals import Frames, Positions, Signals, SignalWindow
from .volumes import Volumes

__all__ = [
    "Action",
    "Adjacency",
    "Boxes",
    "ClassMaps",
    "ColorImages",
    "Edges",
    "FieldWindow",
    "Fields",
    "Frames",
    "ImagePair",
    "Images",
    "Irreps",
    "PairWindow",
    "PixelPoints",
    "Points",
    "Positions",
    "Rows",
    "SignalWindow",
    "Signals",
    "Trivial",
    "ValueMaps",
    "VectorField",
    "Vectors",
    "Volumes",
    "Window",
    "as_action",
    "check_group",
    "flat",
    "is_own",
    "places_left",
    "register",
    "view_of",
]
