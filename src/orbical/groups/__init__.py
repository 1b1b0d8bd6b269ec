"""Sampled symmetry groups: which transformations an orbit is made of.

A `Group` is a finite sample of K transformations that includes the identity. It holds the
transformations themselves (`parts`), their weights (`weights`, for a stated `measure`), their names
(`coords`) and how their orbit is drawn (`layout`). How a group transforms data is defined in
`orbical.actions`.

x points right, y points up, and angles are counterclockwise, in degrees.
"""

from . import plane, point_groups, space, value_groups
from .charts import Chart, chart_of, register_chart
from .group import PLACES, Elements, Group, Layout
from .group_names import CATALOG, as_group, groups_moving, parse, register
from .group_parts import (
    OF_OUTPUTS,
    PARTS,
    Array,
    Part,
    homogeneous,
    parsed_columns_part,
    register_part,
)
from .making import identity_of, plane_turns, product
from .own_groups import from_matrices, from_parts, with_classes
from .plane import *
from .point_groups import *
from .point_groups import spoken_name
from .space import *
from .value_groups import *

__all__ = [
    "PLACES", "Chart", "Elements", "Group", "Layout", "Part", "as_group", "chart_of",
    "from_matrices", "from_parts", "parse", "product", "register", "register_chart",
    "register_part", "with_classes",
    *plane.__all__, *point_groups.__all__, *space.__all__, *value_groups.__all__,
]  # fmt: skip
