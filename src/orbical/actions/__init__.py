"""How a group acts on data: images, volumes, points, fields, boxes, graphs, signals, and trees.

Every action moves a batch by all elements at once, element first: `apply(group, x)` turns
`x[B, ...]` into `[K, B, ...]`, so that one transformation serves the whole batch. Pixels have their
own frame (columns to the right, rows down); the actions on pixels convert to it internally.
"""

from .action import (
    REGISTERED,
    Action,
    ActionTree,
    Settings,
    Trivial,
    action_matrices,
    is_own_action,
    nonfinite_sample,
    register,
    restored_action_setting,
)
from .fields import Fields, action_parts_in_place, action_view, as_action, check_group, flat_actions
from .on_angles import Angles
from .on_boxes_and_key_points import Boxes, PixelPoints, PixelPosition, checked_swaps
from .on_classes import Classes
from .on_globes import Globe, Periodic
from .on_images import (
    ColorImages,
    FieldWindow,
    ImagePair,
    Images,
    PairWindow,
    VectorField,
    Window,
    central_window_of_images,
)
from .on_maps import ClassMaps, ValueMaps
from .on_points_and_vectors import Adjacency, Blocks, Edges, Irreps, Points, Position, Rows, Vectors
from .on_signals import Frames, Pitch, Positions, Signals, SignalWindow
from .on_tables import Columns
from .on_texts import Texts, Versions, encode_texts
from .on_volumes import Volumes

__all__ = [
    "Action", "ActionTree", "Adjacency", "Angles", "Blocks", "Boxes", "ClassMaps", "Classes",
    "ColorImages", "Columns", "Edges", "FieldWindow", "Fields", "Frames", "Globe", "ImagePair",
    "Images", "Irreps", "PairWindow", "Periodic", "Pitch", "PixelPoints", "PixelPosition", "Points",
    "Position", "Positions", "Rows", "Settings", "SignalWindow", "Signals", "Texts", "Trivial",
    "ValueMaps", "VectorField", "Vectors", "Versions", "Volumes", "Window", "action_parts_in_place",
    "action_view", "as_action", "check_group", "encode_texts", "flat_actions", "is_own_action",
    "register",
]  # fmt: skip
