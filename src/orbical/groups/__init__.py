"""Sampled symmetry groups: which transformations an orbit is made of.

A `Group` is a finite sample of K transformations, always with the identity among them. It says how
its elements move things (`parts`), how much each counts (`weights`, of a stated `measure`), what
they are called (`coords`) and how their orbit is drawn (`layout`). It knows nothing about data:
that is the business of `orbical.actions`.

Groups speak the language of the page: x to the right, y up, angles counter-clockwise, in degrees.
"""

from .catalog import register
from .charts import Chart, chart_of, register_chart
from .colors import brightness, hue
from .combining import product
from .discrete import permutations, time_reversal, trivial
from .given import from_matrices, from_parts
from .group import Elements, Group, Layout
from .motions import affine, homographies, se2, se3
from .parts import Part, register_part
from .plane import cyclic, dihedral, euclidean, flips, rotations, scales, shear, translations
from .point_groups import icosahedral, octahedral, pointgroup, tetrahedral
from .quadrature import exact_degree, so3_quadrature, sphere
from .signals import gains, shifts, sign
from .space import (
    inversion,
    o3,
    reflections3d,
    rotations3d,
    slices3d,
    translations3d,
)
from .text import as_group, parse

__all__ = [
    "Chart",
    "Elements",
    "Group",
    "Layout",
    "Part",
    "affine",
    "as_group",
    "brightness",
    "chart_of",
    "cyclic",
    "dihedral",
    "euclidean",
    "exact_degree",
    "flips",
    "from_matrices",
    "from_parts",
    "gains",
    "homographies",
    "hue",
    "icosahedral",
    "inversion",
    "o3",
    "octahedral",
    "parse",
    "permutations",
    "pointgroup",
    "product",
    "reflections3d",
    "register",
    "register_chart",
    "register_part",
    "rotations",
    "rotations3d",
    "scales",
    "se2",
    "se3",
    "shear",
    "shifts",
    "sign",
    "slices3d",
    "so3_quadrature",
    "sphere",
    "tetrahedral",
    "time_reversal",
    "translations",
    "translations3d",
    "trivial",
]
