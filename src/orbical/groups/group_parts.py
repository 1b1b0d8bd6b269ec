"""The parts of a group: what its elements move, and how they multiply there.

A part is a name and a rule of multiplication. An action reads the parts that it knows; a new part
needs an action that moves data by it, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..errors import InputError, check_type

Array = np.ndarray
Reach = tuple[Array, str] | None
DIMENSIONS = {"plane": 2, "space": 3}
"""The dimension of what homogeneous matrices move."""


@dataclass(frozen=True)
class Part:
    """How the elements of one part of a group multiply, as arrays with the element first.

    The class methods make the usual kinds: matrices, maps, permutations, factors, shifts.

    Attributes:
        compose: the product `[K, ...]` of two arrays, the second of which acts first.
        inverse: the inverse of each element of an array.
        neutral: the neutral element `[1, ...]`, given an array of elements.
        moves: the data that the part moves, for messages.
        reach: how far each element is from the neutral one, `[K]`, and the unit; None where
            elements have no size, such as mirrors.

    Example:
        >>> boosts = Part.matrices("four-vectors")
        >>> boost = np.array([[[1.25, 0.75], [0.75, 1.25]]])
        >>> bool((boosts.compose(boost, boosts.inverse(boost)) == boosts.neutral(boost)).all())
        True
    """

    compose: Callable[[Array, Array], Array]
    inverse: Callable[[Array], Array]
    neutral: Callable[[Array], Array]
    moves: str = ""
    reach: Callable[[Array], Reach] = lambda part: None

    @classmethod
    def matrices(cls, moves: str = "") -> Part:
        """Return the rule of invertible matrices `[K, d, d]` of any dimension."""
        return cls._products(clean_group_matrices, moves)

    @classmethod
    def _products(cls, clean: Callable[[Array], Array], moves: str) -> Part:
        """Return the rule of matrices that are cleaned after they are multiplied or inverted."""
        return cls(
            lambda second, first: clean(second @ first),
            lambda part: clean(np.linalg.inv(part)),
            lambda part: np.eye(part.shape[-1])[None],
            moves,
        )

    @classmethod
    def maps(cls, moves: str = "", unit: str = "") -> Part:
        """Return the rule of homogeneous matrices `[K, d + 1, d + 1]`: affine maps, homographies.

        A homography is the same map in any multiple; the last entry is made 1. Shifts have a
        length in `unit`.
        """
        return replace(
            cls._products(_scaled, moves), reach=lambda part: _matrix_part_reach(part, unit)
        )

    @classmethod
    def cells(cls, moves: str = "") -> Part:
        """Return the rule of homogeneous matrices in shares of a period, with shifts modulo 1."""
        return cls._products(_within_cell, moves)

    @classmethod
    def permutations(cls, moves: str = "") -> Part:
        """Return the rule of index arrays `[K, n]`, which act by `x -> x[rows]`."""
        return cls(
            # The first index array is indexed by the second.
            lambda second, first: np.take_along_axis(first, second, axis=1),
            lambda part: np.argsort(part, axis=1),
            lambda part: np.arange(part.shape[-1])[None],
            moves,
        )

    @classmethod
    def signed_names(cls, moves: str = "") -> Part:
        """Return the rule of words `[K, n]`: column i shows the named one, `-name` its negative.

        The columns are the sorted names. Those that only one factor of a product names, the other
        leaves as they are.
        """

        def compose(second: Array, first: Array) -> Array:
            names = np.union1d(parsed_columns_part(second)[0], parsed_columns_part(first)[0])
            (outer, sign), (inner, before) = (_widened(part, names) for part in (second, first))
            source = np.take_along_axis(inner, outer, 1)
            return _words(names, source, sign * np.take_along_axis(before, outer, 1))

        def inverse(part: Array) -> Array:
            names, source, sign = parsed_columns_part(part)
            back = np.argsort(source, axis=1)
            return _words(names, back, np.take_along_axis(sign, back, 1))

        return cls(compose, inverse, lambda part: parsed_columns_part(part)[0][None], moves)

    @classmethod
    def factors(cls, moves: str = "") -> Part:
        """Return the rule of numbers `[K]` other than 0 that are multiplied: signs, gains."""
        # The reciprocal of NumPy would be a whole number, of whole numbers.
        return cls(
            np.multiply, lambda part: 1 / part, lambda part: np.ones_like(part[:1]), moves, _ratio
        )

    @classmethod
    def shifts(cls, moves: str = "", unit: str = "") -> Part:
        """Return the rule of numbers `[K]` or vectors `[K, d]` that are added, in `unit`."""
        return cls(
            np.add,
            np.negative,
            lambda part: np.zeros_like(part[:1]),
            moves,
            lambda part: (np.linalg.norm(part.reshape(len(part), -1), axis=1), unit),
        )


def parsed_columns_part(part: Array) -> tuple[Array, Array, Array]:
    """Return the names `[n]` of columns, the source of each and its sign, `[K, n]`.

    >>> names, source, sign = parsed_columns_part(np.array([["x", "y"], ["-y", "x"]]))
    >>> names.tolist(), source.tolist(), sign.tolist()
    (['x', 'y'], [[0, 1], [1, 0]], [[1.0, 1.0], [-1.0, 1.0]])
    """
    words = part.astype(str)
    negative = np.char.startswith(words, "-")
    bare = np.where(negative, np.char.lstrip(words, "-"), words)
    names = np.unique(bare[:1])
    return names, np.searchsorted(names, bare), np.where(negative, -1.0, 1.0)


def _widened(part: Array, names: Array) -> tuple[Array, Array]:
    """Return sources and signs of all names, `[K, n]`."""
    own, source, sign = parsed_columns_part(part)
    places = np.searchsorted(names, own)
    sources = np.tile(np.arange(len(names)), (len(part), 1))
    signs = np.ones(sources.shape)
    sources[:, places], signs[:, places] = places[source], sign
    return sources, signs


def _words(names: Array, source: Array, sign: Array) -> Array:
    return np.where(sign < 0, np.char.add("-", names[source]), names[source])


def _ratio(factors: Array) -> Reach:
    """Return how many times larger or smaller factors make things; a sign has no size."""
    return (np.maximum(factors, 1 / factors), "×") if (factors > 0).all() else None


def _matrix_part_reach(maps: Array, unit: str) -> Reach:
    """Return the angles, lengths or ratios of maps that are all rotations, shifts or scalings."""
    linear, shift = maps[:, :-1, :-1], maps[:, :-1, -1]
    dimension = linear.shape[-1]
    still, factor = np.eye(dimension), linear[:, :1, :1]
    if maps[:, -1, :-1].any():
        return None
    if np.allclose(linear, still):
        return np.linalg.norm(shift, axis=1), unit
    if shift.any():
        return None
    if (factor > 0).all() and np.allclose(linear, factor * still):
        return _ratio(factor[:, 0, 0])
    turned = linear.transpose(0, 2, 1)
    if not np.allclose(linear @ turned, still) or not (np.linalg.det(linear) > 0).all():
        return None
    sine = np.linalg.norm(linear - turned, axis=(1, 2)) / np.sqrt(8)
    cosine = (np.trace(linear, axis1=1, axis2=2) - (dimension - 2)) / 2
    return np.round(np.rad2deg(np.arctan2(sine, cosine)), 9), "°"


def clean_group_matrices(matrices: Array) -> Array:
    """Round entries that are almost integers, so that quarter turns are exact."""
    nearest = np.round(matrices)
    return np.where(np.abs(matrices - nearest) < 1e-14, nearest, matrices)


def homogeneous(linear: Array, shift: Array | None = None) -> Array:
    """Return linear maps `[K, d, d]` and shifts `[K, d]` as matrices `[K, d+1, d+1]`."""
    count, dimension, _ = linear.shape
    matrices = np.tile(np.eye(dimension + 1), (count, 1, 1))
    matrices[:, :dimension, :dimension] = linear
    if shift is not None:
        matrices[:, :dimension, dimension] = shift
    return clean_group_matrices(matrices)


def _within_cell(matrices: Array) -> Array:
    """Take shifts modulo 1; one that is almost 1 is 0."""
    found = clean_group_matrices(matrices)
    shift = found[:, :-1, -1]
    found[:, :-1, -1] = clean_group_matrices(shift - np.floor(shift + 1e-9))
    return found


def _scaled(matrices: Array) -> Array:
    """Make the last entry of homographies 1; that of affine maps is."""
    last = matrices[..., -1:, -1:]
    return clean_group_matrices(matrices / np.where(last == 0, 1.0, last))


PARTS: dict[str, Part] = {
    "plane": Part.maps("images, boxes, and Points and Vectors of 2 coordinates", "px"),
    "space": Part.maps("Volumes, Irreps, and Points and Vectors of 3 coordinates"),
    "time": Part.factors("ImagePair, VectorField and Signals"),
    "rows": Part.permutations(
        "Points, Rows, Edges, Adjacency, and Vectors and Irreps with per_point=True"
    ),
    "color": Part.maps("ColorImages"),
    "shift": Part.shifts("Signals and Positions", "samples"),
    "gain": Part.factors("Signals"),
    "speed": Part.factors("Signals, Frames and Pitch"),
    "classes": Part.permutations("classes that a model predicts"),
    "substitution": Part.permutations("Versions"),
    "cell": Part.cells("Globe and Periodic grids"),
    "columns": Part.signed_names("Columns, data frames"),
    "variation": Part(
        # What follows what is not known: -1 is no element, and nothing is claimed of it.
        lambda second, first: np.where(first == 0, second, np.where(second == 0, first, -1)),
        lambda part: np.where(part == 0, 0, -1),
        lambda part: np.zeros_like(part[:1]),
        "Versions",
    ),
}
OF_OUTPUTS = frozenset({"classes"})
"""Parts that move what models predict, and nothing of their inputs."""
_BUILT_IN = frozenset(PARTS)
_RESERVED = ("weights", "index")  # arrays that a store keeps beside the parts


def register_part(name: str, part: Part) -> None:
    """Register a part for your own groups and actions.

    Call it in the file that defines the action. A scan of such a group can be loaded, tabulated
    and drawn without that file, but its elements multiply only where the part is registered.

    Args:
        name: a new name, such as `spacetime`.
        part: how its elements multiply.

    Raises:
        InputError: if the name belongs to orbical or is not an identifier.

    Example:
        >>> register_part("phase", Part.shifts("charged fields"))
        >>> from orbical.groups import from_parts
        >>> group = from_parts("gauge", {"phase": [0.0, 0.5]}, coords={"phase": [0.0, 0.5]})
        >>> group.inverse().parts["phase"].tolist()
        [-0.0, -0.5]
    """
    if not (isinstance(name, str) and name.isidentifier()) or name in _RESERVED:
        raise InputError("name", "an identifier such as 'spacetime'", repr(name))
    if name in _BUILT_IN:
        raise InputError("name", "a new name", f"{name!r}, which is a part of orbical")
    check_type("part", part, Part, "an orbical.groups.Part")
    PARTS[name] = part


def group_part(name: str) -> Part:
    """Return how the elements of a part multiply, or raise if nobody has registered it."""
    if name not in PARTS:
        raise InputError(
            "group",
            "a registered part",
            repr(name),
            remedy=f"import the file that calls orbical.groups.register_part({name!r}, ...)",
        )
    return PARTS[name]
