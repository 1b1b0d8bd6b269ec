"""Groups that act on the plane."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from ..errors import InputError, real_number, whole_number
from .group import (
    Group,
    Layout,
    as_text,
    few_enough,
    grid_line,
    homogeneous,
    make_group,
    product,
    tiles,
)
from .group_names import register
from .group_parts import Array


def turned_by(angle_degrees: Array) -> Array:
    """Return rotations of the plane `[K, 2, 2]` by angles `[K]`, counter-clockwise."""
    angle_rad = np.deg2rad(angle_degrees)
    cosine, sine = np.cos(angle_rad), np.sin(angle_rad)
    return np.stack([np.stack([cosine, -sine], -1), np.stack([sine, cosine], -1)], -2)


@register("cyclic:4")
def cyclic(n: int) -> Group:
    """Return C_n, the n rotations of a regular n-gon.

    >>> len(cyclic(4)), cyclic(4).closed
    (4, True)
    """
    group = _equal_turns("cyclic", n)
    row = tiles(np.arange(len(group))[None])
    return dataclasses.replace(group, layout=row) if len(group) <= 8 else group


@register()
def rotations(n: int = 72) -> Group:
    """Return n equally spaced rotations of the plane, SO(2), drawn as a circle."""
    return _equal_turns("rotations", n)


def _equal_turns(name: str, n: int) -> Group:
    n = whole_number("n", n, 1)
    few_enough(f"{name}:{n}", n)
    angle = np.arange(n) * 360.0 / n
    circle = Layout("circle", np.arange(n), {"angle": angle})
    parts = {"plane": homogeneous(turned_by(angle))}
    return make_group(f"{name}:{n}", parts, coords={"angle": angle}, layout=circle)


@register("dihedral:4")
def dihedral(n: int) -> Group:
    """Return D_n: n rotations, and each of them after a left-right mirror; 2n elements."""
    n = whole_number("n", n, 1)
    few_enough(f"dihedral:{n}", 2 * n)
    angle = np.tile(np.arange(n) * 360.0 / n, 2)
    mirrored = np.repeat([False, True], n)
    linear = turned_by(angle)
    linear[mirrored] = linear[mirrored] @ np.diag([-1.0, 1.0])
    return make_group(
        f"dihedral:{n}",
        {"plane": homogeneous(linear)},
        coords={"angle": angle, "flip": np.where(mirrored, "mirrored", "plain")},
        layout=tiles(np.arange(2 * n).reshape(2, n)),
    )


@register()
def flips() -> Group:
    """Return the four flips of the plane: none, horizontal (left-right), vertical, both."""
    signs = np.array([[1, 1], [-1, 1], [1, -1], [-1, -1]], float)
    return make_group(
        "flips",
        {"plane": homogeneous(np.einsum("ki,ij->kij", signs, np.eye(2)))},
        coords={"flip": np.array(["none", "horizontal", "vertical", "both"])},
        layout=tiles(np.arange(4).reshape(2, 2)),
    )


@register("translations:32:2")
def translations(radius: float, step: float = 1) -> Group:
    """Return the shifts `(dx, dy)` within `radius` on a grid, drawn as a plane.

    There are `(2 radius / step + 1)^2` elements; dx points right and dy up.

    >>> len(translations(32, 2))
    1089
    """
    line = grid_line("translations", radius, step, 2)
    dy, dx = np.meshgrid(line[::-1], line, indexing="ij")  # the top row of the drawing is up
    shift = np.stack([dx.ravel(), dy.ravel()], -1)
    count = len(shift)
    return make_group(
        f"translations:{as_text(radius)}:{as_text(step)}",
        {"plane": homogeneous(np.tile(np.eye(2), (count, 1, 1)), shift)},
        coords={"dx": shift[:, 0], "dy": shift[:, 1]},
        layout=Layout("plane", np.arange(count).reshape(dx.shape), {"dy": line[::-1], "dx": line}),
        measure="uniform on the sampled window",
        closed=count == 1,
    )


@register()
def scales(low: float = 0.5, high: float = 2.0, n: int = 17) -> Group:
    """Return n scalings of the plane between `low` and `high`, log-uniform, drawn as a line.

    The step nearest to 1 is moved onto 1, so that the identity is among them; the weights are
    those of the trapezoidal rule in log scale.
    """
    return factor_group(
        "scales",
        low,
        high,
        n,
        "scale",
        lambda scale: {"plane": homogeneous(scale[:, None, None] * np.eye(2))},
    )


def factor_group(
    name: str,
    low: float,
    high: float,
    n: int,
    coordinate: str,
    parts: Callable[[Array], dict[str, Array]],
) -> Group:
    """Return a group of n factors from low to high, 1 among them, log-uniform, drawn as a line."""
    n = whole_number("n", n, 1)
    few_enough(f"{name}:{low}:{high}:{n}", n)
    if not 0 < real_number("low", low) <= 1 <= real_number("high", high):
        raise InputError("low, high", "0 < low <= 1 <= high", f"{low!r} and {high!r}")
    log = np.linspace(math.log(low), math.log(high), n)
    log[np.argmin(np.abs(log))] = 0.0
    gaps = np.diff(log)
    weights = np.concatenate([gaps, [0.0]]) + np.concatenate([[0.0], gaps])
    factor = np.exp(log)
    return make_group(
        f"{name}:{as_text(low)}:{as_text(high)}:{n}",
        parts(factor),
        coords={coordinate: factor},
        layout=Layout("line", np.arange(n), {coordinate: factor}),
        measure="log-uniform on the sampled window",
        closed=n == 1,
        weights=weights if weights.sum() > 0 else None,
    )


@register()
def shear(limit: float = 0.5, n: int = 9) -> Group:
    """Return n shears of the plane along x, `x + s y` with s from -limit to limit.

    >>> shear(0.5, 5).coords["shear"].tolist()
    [-0.5, -0.25, 0.0, 0.25, 0.5]
    """
    n = whole_number("n", n, 1)
    if n % 2 == 0:
        raise InputError("n", "an odd number, so that no shear is among them", n)
    few_enough(f"shear:{limit}:{n}", n)
    if real_number("limit", limit) <= 0:
        raise InputError("limit", "a number > 0", repr(limit))
    amount = np.arange(-(n // 2), n // 2 + 1) * (float(limit) / max(n // 2, 1))
    linear = np.tile(np.eye(2), (n, 1, 1))
    linear[:, 0, 1] = amount
    return make_group(
        f"shear:{as_text(limit)}:{n}",
        {"plane": homogeneous(linear)},
        coords={"shear": amount},
        layout=Layout("line", np.arange(n), {"shear": amount}),
        measure="uniform on the sampled window",
        closed=n == 1,
    )


@register()
def euclidean(turns: int = 8, radius: float = 2, step: float = 1) -> Group:
    """Return rigid motions of the plane, SE(2): each rotation followed by each shift.

    Args:
        turns: number of equally spaced rotations.
        radius: largest shift along x and y, in pixels.
        step: distance of neighboring shifts.

    >>> len(euclidean(8, radius=2))
    200
    """
    group = product(translations(radius, step), rotations(turns))
    return dataclasses.replace(group, spec=f"euclidean:{turns}:{as_text(radius)}:{as_text(step)}")
