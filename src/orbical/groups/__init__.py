"""Sampled symmetry groups: which transformations an orbit is made of.

A `Group` is a finite sample of K transformations that includes the identity. It holds the
transformations themselves (`parts`), their weights (`weights`, for a stated `measure`), their names
(`coords`) and how their orbit is drawn (`layout`). How a group transforms data is defined in
`orbical.actions`.

x points right, y points up, and angles are counterclockwise, in degrees.
"""

from .charts import Chart, chart_of, register_chart
from .group import PLACES, Elements, Group, Layout
from .group_names import CATALOG, as_group, groups_moving, parse, register
from .group_parts import OF_OUTPUTS, PARTS, Array, Part, homogeneous, register_part, signed_columns
from .making import plane_turns, product
from .own_groups import from_matrices, from_parts, with_classes
from .plane import (
    affine,
    cyclic,
    dihedral,
    euclidean,
    flips,
    homographies,
    rotations,
    scales,
    se2,
    se3,
    shear,
    translations,
)
from .point_groups import icosahedral, octahedral, pointgroup, spoken_name, tetrahedral
from .space import (
    exact_degree,
    inversion,
    o3,
    reflections3d,
    rotations3d,
    slices3d,
    so3_quadrature,
    sphere,
    translations3d,
)
from .value_groups import (
    brightness,
    columns,
    cyclic_orders,
    decibels,
    gains,
    hue,
    longitudes,
    periodic,
    permutations,
    reversal,
    semitones,
    shifts,
    sign,
    speeds,
    time_reversal,
    trivial,
    variations,
)

__all__ = [
    "PLACES", "Chart", "Elements", "Group", "Layout", "Part", "affine", "as_group", "brightness",
    "chart_of", "columns", "cyclic", "cyclic_orders", "decibels", "dihedral", "euclidean",
    "exact_degree", "flips", "from_matrices", "from_parts", "gains", "homographies", "hue",
    "icosahedral", "inversion", "longitudes", "o3", "octahedral", "parse", "periodic",
    "permutations", "pointgroup", "product", "reflections3d", "register", "register_chart",
    "register_part", "reversal", "rotations", "rotations3d", "scales", "se2", "se3", "semitones",
    "shear", "shifts", "sign", "slices3d", "so3_quadrature", "speeds", "sphere", "tetrahedral",
    "time_reversal", "translations", "translations3d", "trivial", "variations", "with_classes",
]  # fmt: skip
