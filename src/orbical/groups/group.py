"""The sampled group: elements, weights, coordinates and a layout; and products of groups."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import InputError, check_name, real_number
from .group_parts import DIMENSIONS, PARTS, Array, Reach, clean_group_matrices, part_of

PLACES = {
    "identity": "at the identity",
    "mean": "mean over the orbit",
    "pooled": "pooled over the orbit",
    "worst": "at the worst element",
}
"""Where on the orbit a result is stated, and what each place is called everywhere."""
MOST_ELEMENTS = 2**20
LAYOUTS: dict[str, tuple[str, ...]] = {
    "circle": ("angle",),
    "line": (),
    "plane": (),
    "slices": ("plane", "azimuth", "angle"),
    "ball": (),
    "tiles": (),
}
"""How an orbit can be drawn, and the axes that the drawing needs by their names."""


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
        parts = {name: part_of(name).inverse(part) for name, part in self.parts.items()}
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
            parts[name] = part_of(name).compose(self.parts[name], other.parts[name])
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

        tree = cKDTree(_signature(self))
        distance, index = tree.query(_signature(elements))
        return np.where(distance <= tolerance, index, -1)

    def name(self, index: int) -> str:
        """Return the name of an element: its coordinates, in as few digits as needed.

        >>> from orbical.groups import rotations, rotations3d
        >>> rotations(72).name(3)
        'angle 15'
        >>> rotations3d(256).name(5)
        'rx -27.46, ry 1.507, rz -170'
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
                ", ".join(_word(key, values[index], digits) for key, values in self.coords.items())
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


def _word(key: str, value: object, digits: int) -> str:
    number = isinstance(value, int | float | np.number)
    return f"{key} {value:.{digits}g}" if number else f"{key} {value}"


def _signature(elements: Elements) -> Array:
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


def distinct_elements(elements: Elements) -> tuple[Array, Array]:
    """Return the first of equal elements, in their order, and for each element its place there."""
    keys = np.round(_signature(elements), 9) + 0.0  # + 0.0 turns -0.0 into 0.0
    _, first, same = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return first[order], np.argsort(order)[same.reshape(-1)]


def homogeneous(linear: Array, shift: Array | None = None) -> Array:
    """Return linear maps `[K, d, d]` and shifts `[K, d]` as matrices `[K, d+1, d+1]`."""
    count, dimension, _ = linear.shape
    matrices = np.tile(np.eye(dimension + 1), (count, 1, 1))
    matrices[:, :dimension, :dimension] = linear
    if shift is not None:
        matrices[:, :dimension, dimension] = shift
    return clean_group_matrices(matrices)


def _is_exact_on_grid(parts: Mapping[str, Array]) -> bool:
    """Check whether every element permutes the axes of plane and space, up to signs, unshifted."""
    for matrices in (parts[name] for name in DIMENSIONS if name in parts):
        size = np.abs(matrices)
        entries = np.isin(size, (0.0, 1.0)).all() and not size[:, :-1, -1].any()
        one_each = (size.sum(1) == 1).all() and (size.sum(2) == 1).all()  # a shear has two in a row
        if not (entries and one_each):
            return False
    return True


def make_group(
    spec: str,
    parts: dict[str, Array],
    *,
    weights: Array | None = None,
    closed: bool = True,
    **facts: Any,
) -> Group:
    """Return a group from its parts and other fields, with the identity found among its elements.

    Without `weights` all elements count the same.
    """
    if not all(np.isfinite(part).all() for part in parts.values() if part.dtype.kind in "fiu"):
        raise InputError("group", f"elements of finite numbers for {spec!r}", "larger ones")
    count = len(next(iter(parts.values()))) if parts else 1
    facts["weights"] = np.full(count, 1 / count) if weights is None else weights / weights.sum()
    group = Group(parts, count, _is_exact_on_grid(parts), spec, closed=closed, **facts)
    trivial = {name: part_of(name).neutral(part) for name, part in parts.items()}
    identity = int(group.index_of(Elements(trivial, 1))[0])
    if identity < 0:
        raise InputError("group", f"the identity among the elements of {spec!r}", remedy="add it")
    return replace(group, identity=identity)


def line_group(
    spec: str,
    parts: dict[str, Array],
    coordinate: str,
    values: Array,
    measure: str = "uniform on the sampled window",
    weights: Array | None = None,
) -> Group:
    """Return a window of a group with one coordinate, drawn as a line."""
    return make_group(
        spec,
        parts,
        coords={coordinate: values},
        layout=Layout("line", np.arange(len(values)), {coordinate: values}),
        measure=measure,
        closed=len(values) == 1,
        weights=weights,
    )


def check_group_size(spec: str, count: float) -> None:
    """Refuse a group with too many elements for memory before it is created."""
    if count > MOST_ELEMENTS:
        given = f"{count:,}".removesuffix(".0")  # too large for a float, or infinite
        raise InputError("group", f"at most {MOST_ELEMENTS:,} elements", f"{given} in {spec}")


def grid_line(name: str, radius: float, step: float, dimension: int) -> Array:
    """Return the shifts along one axis of a grid within `radius`, or raise."""
    if not (real_number("radius", radius) >= 0 and real_number("step", step) > 0):
        raise InputError("radius, step", "a radius >= 0 and a step > 0", f"{radius!r} and {step!r}")
    width = 2 * (radius / step) + 1
    spec = f"{name}:{as_text(radius)}:{as_text(step)}"
    check_group_size(spec, math.prod([width] * dimension))  # may be infinite
    half = round(radius / step)
    if not math.isclose(half * step, radius, abs_tol=1e-9):
        raise InputError("radius", f"a multiple of the step {step!r}", repr(radius))
    return np.arange(-half, half + 1) * float(step)


def as_text(number: float) -> str:
    """Return a number as text that reads back as the same number.

    >>> as_text(2.0), as_text(0.1)
    ('2', '0.1')
    """
    return repr(float(number)).removesuffix(".0")


def group_tiles(index: Array) -> Layout:
    """Return the layout of elements as a row of tiles."""
    return Layout("tiles", index)


def is_closed(group: Group) -> bool:
    """Check whether every product of two elements is an element.

    It is where each of a few elements `a` carries all elements to elements, `a G in G`, and every
    element is a product of these few. Each that is found doubles what the ones before generate, so
    that the cost is that of `K log K` products and not of `K^2`.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    count, generated = len(group), np.zeros(len(group), bool)
    generated[group.identity] = True
    steps: list[Array] = []
    while not generated.all():
        one = int(np.argmin(generated))
        carried = group.index_of(group[np.full(count, one)].compose(group))
        if (carried < 0).any():
            return False
        steps.append(carried)
        edges = (np.tile(np.arange(count), len(steps)), np.concatenate(steps))
        graph = coo_array((np.ones(len(edges[0]), bool), edges), shape=(count, count))
        _, part = connected_components(graph, directed=False)
        generated = part == part[group.identity]
    return True


def product(a: Group, b: Group) -> Group:
    """Combine two groups: every element of `b` followed by every element of `a`.

    Where both move the same thing their matrices are multiplied, and an element that is a product
    in several ways is listed once; otherwise they stand side by side.

    >>> from orbical.groups import dihedral, time_reversal
    >>> group = product(dihedral(4), time_reversal())
    >>> len(group), sorted(group.parts)
    (16, ['plane', 'time'])
    """
    twice = sorted({*a.coords} & {*b.coords})
    if twice:
        raise InputError(
            "product",
            "groups with different coordinates",
            f"{twice[0]!r} in both {a.spec} and {b.spec}",
        )
    check_group_size(f"{a.spec}*{b.spec}", len(a) * len(b))
    first, second = np.divmod(np.arange(len(a) * len(b)), len(b))
    combined = a[first].compose(b[second])
    overlap = {*a.parts} & {*b.parts}
    # An element that is a product in several ways is listed once, with all its weight.
    kept, place = distinct_elements(combined) if overlap else (np.arange(len(first)),) * 2
    weights = np.bincount(place, (a.weights[:, None] * b.weights[None]).ravel())
    combined, first, second = combined[kept], first[kept], second[kept]
    coords = {name: values[first] for name, values in a.coords.items()}
    coords |= {name: values[second] for name, values in b.coords.items()}
    cells_a, cells_b = (_as_tiles(group.layout) for group in (a, b))
    # Each cell of b holds a small drawing of a.
    cells = cells_a[None, :, None, :] * len(b) + cells_b[:, None, :, None]
    shape = (cells_a.shape[0] * cells_b.shape[0], cells_a.shape[1] * cells_b.shape[1])
    group = make_group(
        f"{a.spec}*{b.spec}",
        dict(combined.parts),
        coords=coords,
        layout=group_tiles(place[cells.reshape(shape)]),
        measure=a.measure if a.measure == b.measure else f"{a.measure}; {b.measure}",
        closed=False,
        weights=weights,
    )
    closed = a.closed and b.closed and (not overlap or is_closed(group))
    return dataclasses.replace(group, closed=closed)


def _as_tiles(layout: Layout) -> Array:
    return layout.index if layout.index.ndim == 2 else layout.index.reshape(1, -1)
