"""The sampled group: elements, weights, coordinates and a layout; and products of groups."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeGuard

import numpy as np

from ..errors import InputError, check_name
from .group_parts import DIMENSIONS, PARTS, Array, Reach, group_part

PLACES = {
    "identity": "at the identity",
    "mean": "mean over the orbit",
    "pooled": "pooled over the orbit",
    "worst": "at the worst element",
}
"""Where on the orbit a result is stated, and what each place is called everywhere."""
LAYOUTS: dict[str, tuple[str, ...]] = {
    "circle": ("angle",),
    "line": (),
    "plane": (),
    "slices": ("plane", "azimuth", "angle"),
    "ball": (),
    "tiles": (),
}
"""How an orbit can be drawn, and the axes that the drawing needs by their names."""
_VECTOR = ("rx", "ry", "rz")
"""The coordinates of a rotation of space, in degrees along each axis."""


@dataclass(frozen=True)
class Layout:
    """How an orbit is drawn: a kind, and the element in each drawing cell.

    `kind` is `circle`, `line`, `plane`, `slices`, `ball` or `tiles`. `index` maps drawing cells to
    elements (one rotation may stand in several cells), `axes` names the axes of `index` in order
    and gives the coordinate along each; that of a circle is `angle`, in degrees.
    """

    kind: str
    index: Array
    axes: Mapping[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_name("layout", self.kind, LAYOUTS)
        index = np.asarray(self.index)
        axes = {name: np.asarray(values) for name, values in self.axes.items()}
        if index.dtype.kind not in "iu":
            raise InputError("layout", "indices of elements", f"an array of {index.dtype}")
        for size, (name, values) in zip(index.shape, axes.items(), strict=False):
            if values.shape != (size,):
                raise InputError("layout", f"{size} values along {name!r}", values)
        if not {*LAYOUTS[self.kind]} <= {*axes}:
            needed = " and ".join(map(repr, LAYOUTS[self.kind]))
            raise InputError("layout", f"the axes {needed} of a {self.kind}", [*axes])
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "axes", axes)


@dataclass(frozen=True, eq=False)
class Elements:
    """K transformations, as arrays for each part that they move.

    `parts` may hold `plane` or `space` (homogeneous matrices `[K, d+1, d+1]`), `time` (`[K]`, +1 or
    -1), `rows` (index arrays `[K, n]`), and parts that `register_part` added. `exact_on_grid` says
    that the whole sample these elements come from maps a square grid of pixels, or a cubic one of
    voxels, onto itself, so that images can be moved without resampling.
    """

    parts: Mapping[str, Array]
    count: int
    exact_on_grid: bool = False

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: Any) -> Elements:
        """Return some elements, by slice or index array."""
        chosen = np.arange(self.count)[index].reshape(-1)
        parts = {name: part[chosen] for name, part in self.parts.items()}
        return Elements(parts, len(chosen), self.exact_on_grid)

    def inverse(self) -> Elements:
        """Return the inverse of each element, in the same order."""
        return self._inverse

    @cached_property
    def _inverse(self) -> Elements:
        parts = {name: group_part(name).inverse(part) for name, part in self.parts.items()}
        return Elements(parts, self.count, self.exact_on_grid)

    def compose(self, other: Elements) -> Elements:
        """Multiply element by element: first `other[k]`, then `self[k]`.

        >>> from orbical.groups import cyclic
        >>> quarter = cyclic(4)[1:2]
        >>> int(cyclic(4).index_of(quarter.compose(quarter))[0])
        2
        """
        parts = {**other.parts, **self.parts}
        for name in {*self.parts} & {*other.parts}:
            parts[name] = group_part(name).compose(self.parts[name], other.parts[name])
        parts = {name: parts[name] for name in sorted(parts)}
        return Elements(parts, self.count, self.exact_on_grid and other.exact_on_grid)

    def linear(self, part: str) -> Array:
        """Return the linear part `[K, d, d]` of `plane` or `space`, or raise for homographies."""
        matrices = self.parts[part]
        if matrices[:, -1, :-1].any():
            raise InputError(
                "group",
                f"affine maps of {part}",
                "homographies, which have no linear part",
                remedy="Images, ColorImages, Boxes and Points move by them",
            )
        return matrices[:, :-1, :-1]

    @property
    def has_homographies(self) -> bool:
        """Whether some element of plane or space is not affine."""
        maps = (self.parts[name] for name in DIMENSIONS if name in self.parts)
        return any(bool(part[:, -1, :-1].any()) for part in maps)


@dataclass(frozen=True, eq=False)
class Group(Elements):
    """A sampled group: elements with weights, coordinates and a layout.

    `weights [K]` are quadrature weights of `measure` and sum to 1. `coords` names the elements.
    `identity` is the index of the identity. `closed` says that the sample is itself a group.
    """

    spec: str = ""
    weights: Array = field(default_factory=lambda: np.ones(1))
    measure: str = "Haar"
    coords: Mapping[str, Array] = field(default_factory=dict)
    layout: Layout = field(default_factory=lambda: Layout("tiles", np.zeros((1, 1), int)))
    identity: int = 0
    closed: bool = False

    def __post_init__(self) -> None:
        for name, values in {**self.parts, "weights": self.weights, **self.coords}.items():
            if len(values) != self.count:
                raise InputError(
                    name,
                    f"one for each of {self.count} elements",
                    f"{len(values)}",
                    remedy="make groups by orbical.groups.from_parts, which fills in the rest",
                )

    def __repr__(self) -> str:
        return f"Group({self.spec!r}, {self.count} elements)"

    def __str__(self) -> str:
        return self.spec

    @property
    def contains_inverses(self) -> bool:
        """Whether the inverse of every element is an element."""
        return bool((self.index_of(self.inverse()) >= 0).all())

    def index_of(self, elements: Elements, tolerance: float = 1e-6) -> Array:
        """Return the indices of transformations among the elements, -1 for those absent."""
        from scipy.spatial import cKDTree

        tree = cKDTree(element_rows(self))
        distance, index = tree.query(element_rows(elements))
        return np.where(distance <= tolerance, index, -1)

    def name(self, index: int) -> str:
        """Return the name of an element: its coordinates, in as few digits as needed.

        A rotation of space is named by its angle and axis, and what is not inverted is not said.

        >>> from orbical.groups import rotations, rotations3d
        >>> rotations(72).name(3)
        'angle 15'
        >>> rotations3d(256).name(5)
        '172.2° about (-0.16, 0.01, -0.99)'
        """
        return self._names[index]

    def named(self, key: str) -> Array:
        """Return which elements a text names, `[K]`.

        It is the name of an element, one of its coordinates (`angle 180`), the value of one that is
        a text (`horizontal`), or a coordinate alone (`flip`): all that differ from the identity.

        >>> from orbical.groups import dihedral
        >>> int(dihedral(4).named("flip mirrored").sum()), int(dihedral(4).named("angle").sum())
        (4, 6)
        """
        marks = np.array(self._names) == key
        for name, values in self.coords.items():
            words = np.array([_word(name, value, 4) for value in values])
            texts = values.astype(str) if values.dtype.kind == "U" else words
            marks = marks | (words == key) | (texts == key)
            if name == key:
                marks = marks | (values != values[self.identity])
        return np.asarray(marks)

    @cached_property
    def _names(self) -> list[str]:
        """The shortest names of four digits or more that all differ, if there are any."""
        for digits in range(4, 17):
            names = [
                _group_element_name(
                    {key: values[index] for key, values in self.coords.items()}, digits
                )
                or f"element {index}"
                for index in range(len(self))
            ]
            if len({*names}) == len(names):
                break
        return names

    @property
    def reach(self) -> Reach:
        """How far each element is from the identity, `[K]`, and the unit; None without a size.

        Rotations have an angle, shifts a length, scalings a ratio; mirrors, permutations and
        products of different parts have none.

        >>> from orbical.groups import gains, rotations
        >>> rotations(8).reach[0].tolist()
        [0.0, 45.0, 90.0, 135.0, 180.0, 135.0, 90.0, 45.0]
        >>> gains(0.5, 2, 3).reach[0].tolist()
        [2.0, 1.0, 2.0]
        """
        if len(self.parts) != 1:
            return None
        ((name, values),) = self.parts.items()
        return PARTS[name].reach(values) if name in PARTS else None

    def fingerprint(self) -> str:
        """Return a hash of the elements and their weights."""
        digest = hashlib.sha256(self.spec.encode())
        for name in sorted(self.parts):
            digest.update(name.encode())
            part = self.parts[name]
            part = _numbers(part) if part.dtype.kind == "U" else part
            digest.update(np.ascontiguousarray(part).tobytes())
        digest.update(np.ascontiguousarray(self.weights).tobytes())
        return digest.hexdigest()[:16]


_WORDS = {"inversion": "inversion", "time": "reversed"}
"""What a coordinate of -1 says; one of 1 says nothing."""


def _group_element_name(coords: Mapping[str, Any], digits: int) -> str:
    """Return an element in words, nothing without coordinates.

    >>> _group_element_name({"rx": 0.0, "ry": 0.0, "rz": -90.0, "inversion": -1.0}, 4)
    '90° about (0.00, 0.00, -1.00), inversion'
    >>> _group_element_name({"inversion": 1.0}, 4)
    'identity'
    """
    words, others = [], dict(coords)
    if all(_is_number(coords.get(key)) for key in _VECTOR):  # degrees
        vector = [float(others.pop(key)) for key in _VECTOR]
        if (angle := math.hypot(*vector)) > 0:
            places = digits - 2
            axis = (f"{round(one / angle, places) + 0.0:.{places}f}" for one in vector)
            words = [f"{angle:.{digits}g}° about ({', '.join(axis)})"]
    for key, word in _WORDS.items():
        if others.get(key) in (1, -1) and others.pop(key) < 0:
            words.append(word)
    words += [_word(key, value, digits) for key, value in others.items()]
    return ", ".join(words) or ("identity" if coords else "")


def _word(key: str, value: object, digits: int) -> str:
    return f"{key} {value:.{digits}g}" if _is_number(value) else f"{key} {value}"


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float | np.number)


def element_rows(elements: Elements) -> Array:
    """Return a row of numbers for each element, equal exactly when the elements are."""
    columns = [np.zeros((elements.count, 1))]  # of a group that moves nothing
    for _, part in sorted(elements.parts.items()):
        columns.append(_numbers(part).reshape(elements.count, -1))
    return np.concatenate(columns, axis=1)


def _numbers(part: Array) -> Array:
    """Return a part as numbers that differ where it does; of words a hash that floats can hold."""
    if part.dtype.kind != "U":
        return part.astype(float)
    words, place = np.unique(part, return_inverse=True)
    codes = [int(hashlib.sha256(word.encode()).hexdigest()[:12], 16) for word in words]
    return np.array(codes, float)[place]
