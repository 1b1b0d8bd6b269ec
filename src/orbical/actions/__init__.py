"""How a group acts on data: images, volumes, points, fields, boxes, graphs, signals, and trees.

Every action moves a batch by all elements at once, element first: `apply(group, x)` turns
`x[B, ...]` into `[K, B, ...]`, so that one transformation serves the whole batch. Pixels have their
own frame (columns to the right, rows down); the actions on pixels convert to it internally.
"""

from .base import Action, Fields, Trivial, as_action, check_group, register, view_of
from .boxes import Boxes
from .colors import ColorImages
from .crops import FieldWindow, PairWindow
from .dense_maps import ClassMaps, ValueMaps
from .graphs import Adjacency, Edges
from .images import ImagePair, Images, VectorField, Window
from .key_points import PixelPoints
from .points import Irreps, Points, Rows, Vectors
from .signals import Positions, Signals, SignalWindow
from .volumes import ClassVolumes, ValueVolumes, Volumes

__all__ = [
    "Action",
    "Adjacency",
    "Boxes",
    "ClassMaps",
    "ClassVolumes",
    "ColorImages",
    "Edges",
    "FieldWindow",
    "Fields",
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
    "ValueVolumes",
    "VectorField",
    "Vectors",
    "Volumes",
    "Window",
    "as_action",
    "check_group",
    "register",
    "view_of",
]
