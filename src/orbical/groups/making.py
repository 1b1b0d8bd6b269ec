"""Making groups: from coordinates and parts, as products; their sizes, layouts and identities.

What takes coordinates to elements also serves the charts between the elements of a sample.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .._lazy import transform
from ..errors import InputError, real_number, whole_number
from .group import Elements, Group, Layout, element_rows
from .group_parts import DIMENSIONS, Array, clean_group_matrices, group_part, homogeneous

MOST_ELEMENTS = 2**20
Parts = dict[str, Array]


def plane_turns(angle_degrees: Array) -> Array:
    """Return rotations of the plane `[K, 2, 2]` by angles `[K]`, counter-clockwise."""
    angle_rad = np.deg2rad(angle_degrees)
    cosine, sine = np.cos(angle_rad), np.sin(angle_rad)
    return np.stack([np.stack([cosine, -sine], -1), np.stack([sine, cosine], -1)], -2)


def plane_shears(amount: Array) -> Array:
    """Return shears of the plane along x, `[K, 2, 2]`."""
    linear = np.tile(np.eye(2), (len(amount), 1, 1))
    linear[:, 0, 1] = amount
    return linear


def plane_affine_maps(
    angle: Array, scale_x: Array, scale_y: Array, shear: Array, *shift: Array
) -> Array:
    """Return maps `[K, 3, 3]` that stretch, then shear, rotate and shift."""
    linear = plane_turns(angle) @ plane_shears(shear) * np.stack([scale_x, scale_y], -1)[:, None]
    return homogeneous(linear, np.stack(shift, -1))


def camera_matrices(pan: Array, tilt: Array, focal: float) -> Array:
    """Return the homographies `[K, 3, 3]` of a camera turned by angles in degrees."""
    turned = transform.Rotation.from_euler("yx", np.stack([pan, -tilt], -1), degrees=True)
    lens = np.diag([focal, focal, 1.0])
    maps = lens @ turned.as_matrix() @ np.linalg.inv(lens)
    return clean_group_matrices(maps / maps[:, 2:, 2:])


def _shift_matrices(*shift: Array) -> Array:
    """Return shifts by d coordinates `[K]` each as matrices `[K, d + 1, d + 1]`."""
    return homogeneous(np.tile(np.eye(len(shift)), (len(shift[0]), 1, 1)), np.stack(shift, -1))


def space_turns(vector_degrees: Array) -> transform.Rotation:
    """Return rotations of space by rotation vectors `[K, 3]`."""
    return transform.Rotation.from_rotvec(np.deg2rad(vector_degrees))


def quaternion_turns(inner: Array, first: Array, outer: Array, second: Array) -> transform.Rotation:
    """Return rotations from quaternions with these lengths and angles in two planes, `[K]` each.

    They are turned as a whole so that the first is the identity, which changes no distance between
    them.
    """
    planes = ((inner, first), (outer, second))
    entries = [radius * turn(angle) for radius, angle in planes for turn in (np.sin, np.cos)]
    sampled = transform.Rotation.from_quat(np.stack(entries, -1))
    return sampled[0].inv() * sampled


def _scalings(part: str, dimension: int) -> Callable[[Array], Parts]:
    return lambda factor: {part: homogeneous(factor[:, None, None] * np.eye(dimension))}


def _hue_turns(angle_degrees: Array) -> Array:
    """Return rotations of colors about the axis of grays, `[K, 4, 4]`."""
    vector = np.deg2rad(angle_degrees)[:, None] * np.ones(3) / np.sqrt(3)
    return homogeneous(transform.Rotation.from_rotvec(vector).as_matrix())


ELEMENTS_AT: dict[tuple[str, ...], Callable[..., Parts]] = {
    ("angle",): lambda angle: {"plane": homogeneous(plane_turns(angle))},
    ("shear",): lambda amount: {"plane": homogeneous(plane_shears(amount))},
    ("scale",): _scalings("plane", 2),
    ("dx", "dy"): lambda *shift: {"plane": _shift_matrices(*shift)},
    ("angle", "dx", "dy"): lambda angle, *shift: {
        "plane": homogeneous(plane_turns(angle), np.stack(shift, -1))
    },
    ("angle", "scale_x", "scale_y", "shear", "dx", "dy"): lambda *values: {
        "plane": plane_affine_maps(*values)
    },
    ("dx", "dy", "dz"): lambda *shift: {"space": _shift_matrices(*shift)},
    ("brightness",): _scalings("color", 3),
    ("hue",): lambda angle: {"color": _hue_turns(angle)},
    ("shift",): lambda shift: {"shift": shift},
    ("gain",): lambda factor: {"gain": factor},
    ("decibels",): lambda level: {"gain": 10 ** (level / 20)},
    ("speed",): lambda factor: {"speed": factor},
    ("semitones",): lambda pitch: {"speed": 2 ** (pitch / 12)},
}
"""The parts of the elements at values `[K]` of coordinates, for groups that have just these."""


def distinct_elements(elements: Elements) -> tuple[Array, Array]:
    """Return the first of equal elements, in their order, and for each element its place there."""
    keys = np.round(element_rows(elements), 9) + 0.0  # + 0.0 turns -0.0 into 0.0
    _, first, same = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return first[order], np.argsort(order)[same.reshape(-1)]


def _made_group_fits_grid(parts: Mapping[str, Array]) -> bool:
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

    Without `weights` all elements count the same; without a layout they are drawn as a row.
    """
    if not all(np.isfinite(part).all() for part in parts.values() if part.dtype.kind in "fiu"):
        raise InputError("group", f"elements of finite numbers for {spec!r}", "larger ones")
    count = len(next(iter(parts.values()))) if parts else 1
    facts["weights"] = np.full(count, 1 / count) if weights is None else weights / weights.sum()
    facts.setdefault("layout", Layout("tiles", np.arange(count)[None]))
    group = Group(parts, count, _made_group_fits_grid(parts), spec, closed=closed, **facts)
    trivial = {name: group_part(name).neutral(part) for name, part in parts.items()}
    identity = int(group.index_of(Elements(trivial, 1))[0])
    if identity < 0:
        raise InputError("group", f"the identity among the elements of {spec!r}", remedy="add it")
    return dataclasses.replace(group, identity=identity)


def identity_of(group: Group) -> Group:
    """Return the identity of a group alone, with the parts that actions on that group read.

    >>> from .plane import rotations
    >>> identity_of(rotations(8)).parts["plane"].shape
    (1, 3, 3)
    """
    return make_group(group.spec, {**group[group.identity].parts})


def window_group(
    spec: str,
    coords: Mapping[str, Array],
    measure: str = "uniform on the sampled window",
    **facts: Any,
) -> Group:
    """Return a sample of a window of coordinates that `ELEMENTS_AT` knows."""
    parts = ELEMENTS_AT[tuple(coords)](*coords.values())
    closed = len(next(iter(coords.values()))) == 1
    return make_group(spec, parts, coords=coords, measure=measure, closed=closed, **facts)


def circle_group(name: str, coordinate: str, n: Any) -> Group:
    """Return n equally spaced turns by an angle, drawn as a circle."""
    n = element_count(name, n)
    angle = np.arange(n) * 360.0 / n
    circle = Layout("circle", np.arange(n), {"angle": angle})
    parts = ELEMENTS_AT[(coordinate,)](angle)
    return make_group(f"{name}:{n}", parts, coords={coordinate: angle}, layout=circle)


def line_group(spec: str, coordinate: str, values: Array, **facts: Any) -> Group:
    """Return a window of a group with one coordinate, drawn as a line."""
    layout = Layout("line", np.arange(len(values)), {coordinate: values})
    return window_group(spec, {coordinate: values}, layout=layout, **facts)


def step_group(name: str, coordinate: str, radius: float, step: float) -> Group:
    """Return a window of equal steps about 0, drawn as a line."""
    line = grid_line(name, radius, step, 1)
    return line_group(group_spec(name, radius, step), coordinate, line)


def factor_group(name: str, coordinate: str, low: float, high: float, n: int) -> Group:
    """Return a group of n factors from low to high, 1 among them, log-uniform, drawn as a line."""
    n = element_count(name, n)
    if not 0 < real_number("low", low) <= 1 <= real_number("high", high):
        raise InputError("low, high", "0 < low <= 1 <= high", f"{low!r} and {high!r}")
    log = np.linspace(math.log(low), math.log(high), n)
    log[np.argmin(np.abs(log))] = 0.0
    gaps = np.diff(log)
    weights = np.concatenate([gaps, [0.0]]) + np.concatenate([[0.0], gaps])
    spec = group_spec(name, low, high, n)
    measure, mass = "log-uniform on the sampled window", weights if weights.sum() > 0 else None
    return line_group(spec, coordinate, np.exp(log), measure=measure, weights=mass)


def turn_group(
    spec: str, turns: transform.Rotation, shift: Array | None = None, **facts: Any
) -> Group:
    """Return rotations of space, the identity first, with or without shifts, drawn as a ball."""
    vector = np.rad2deg(turns.as_rotvec())
    vector[0] = 0.0  # up to rounding
    coords = dict(zip(("rx", "ry", "rz"), vector.T, strict=True))
    if shift is not None:
        coords |= zip(("dx", "dy", "dz"), shift.T, strict=True)
    return make_group(
        spec,
        {"space": homogeneous(turns.as_matrix(), shift)},
        coords=coords,
        layout=Layout("ball", np.arange(len(vector))),
        **facts,
    )


def element_count(name: str, n: Any, each: int = 1, **limits: float) -> int:
    """Return how many elements are asked for, `each` times; no limit of a window is negative."""
    for argument, value in limits.items():
        real_number(argument, value, ">= 0")
    count = whole_number("n", n, 1)
    check_group_size(f"{name}:{count}", each * count)
    return count


def check_group_size(spec: str, count: float) -> None:
    """Refuse a group with too many elements for memory before it is created."""
    if count > MOST_ELEMENTS:
        given = f"{count:,}".removesuffix(".0")  # too large for a float, or infinite
        raise InputError("group", f"at most {MOST_ELEMENTS:,} elements", f"{given} in {spec}")


def group_spec(name: str, *settings: float) -> str:
    """Return the text of a group, with numbers that read back as the same ones.

    >>> group_spec("scales", 0.1, 2.0, 17)
    'scales:0.1:2:17'
    """
    return ":".join([name, *(repr(float(number)).removesuffix(".0") for number in settings)])


def grid_line(name: str, radius: float, step: float, dimension: int) -> Array:
    """Return the shifts along one axis of a grid within `radius`, or raise."""
    if not (real_number("radius", radius) >= 0 and real_number("step", step) > 0):
        raise InputError("radius, step", "a radius >= 0 and a step > 0", f"{radius!r} and {step!r}")
    width = 2 * (radius / step) + 1  # may be infinite
    check_group_size(group_spec(name, radius, step), math.prod([width] * dimension))
    half = round(radius / step)
    if not math.isclose(half * step, radius, abs_tol=1e-9):
        raise InputError("radius", f"a multiple of the step {step!r}", repr(radius))
    return np.arange(-half, half + 1) * float(step)


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
        layout=Layout("tiles", place[cells.reshape(shape)]),
        measure="; ".join(dict.fromkeys(f"{a.measure}; {b.measure}".split("; "))),
        closed=False,
        weights=weights,
    )
    closed = a.closed and b.closed and (not overlap or is_closed(group))
    return dataclasses.replace(group, closed=closed)


def _as_tiles(layout: Layout) -> Array:
    return layout.index if layout.index.ndim == 2 else layout.index.reshape(1, -1)
