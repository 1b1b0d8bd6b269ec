"""Sampled symmetry groups: which transformations an orbit is made of.

A `Group` is a finite sample of K transformations, always with the identity among them. It says how
its elements move things (`parts`), how much each counts (`weights`, of a stated `measure`), what
they are called (`coords`) and how their orbit is drawn (`layout`). It knows nothing about data:
that is the business of `orbical.actions`.

Groups speak the language of the page: x to the right, y up, angles counter-clockwise, in degrees.
"""

from .combining import from_matrices, product
from .discrete import permutations, time_reversal, trivial
from .group import Elements, Group, Layout
from .plane import cyclic, dihedral, euclidean, flips, rotations, scales, translations
from .space import inversion, rotations3d, slices3d
from .text import as_group, parse

__all__ = [
    "Elements",
    "Group",
    "Layout",
    "as_group",
    "cyclic",
    "dihedral",
    "euclidean",
    "flips",
    "from_matrices",
    "inversion",
    "parse",
    "permutations",
    "product",
    "rotations",
    "rotations3d",
    "scales",
    "slices3d",
    "time_reversal",
    "translations",
    "trivial",
]
