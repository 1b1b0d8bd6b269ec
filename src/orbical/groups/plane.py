"""Groups that act on the plane, and samples of rigid motions, affine maps and homographies.

The parameters of motions and affine maps are points of a Sobol sequence in a window about the
identity, which is the first.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from ..errors import InputError, real_number, whole_number
from . import making
from .group import Group, Layout
from .group_names import register
from .group_parts import Array, homogeneous

__all__ = [
    "affine", "cyclic", "dihedral", "euclidean", "flips", "homographies", "rotations", "scales",
    "se2", "se3", "shear", "translations",
]  # fmt: skip


@register("cyclic:4")
def cyclic(n: int) -> Group:
    """Return C_n, the n rotations of a regular n-gon.

    >>> len(cyclic(4)), cyclic(4).closed
    (4, True)
    """
    group = making.circle_group("cyclic", "angle", n)
    row = Layout("tiles", np.arange(len(group))[None])
    return dataclasses.replace(group, layout=row) if len(group) <= 8 else group


@register()
def rotations(n: float = 72, to: float | None = None, samples: int | None = None) -> Group:
    """Return n equally spaced rotations of the plane, SO(2), drawn as a circle; or those of an arc.

    Args:
        n: the number of rotations; with `to`, the first angle of an arc, in degrees.
        to: the last angle.
        samples: the number of rotations of the arc, evenly spaced, 0 among them.

    See Also:
        cyclic: The same elements, drawn as those of a polygon.
        dihedral: With mirror images.
        rotations3d: Rotations of space.

    >>> rotations(-15, 15, 7).coords["angle"].tolist()
    [-15.0, -10.0, -5.0, 0.0, 5.0, 10.0, 15.0]
    """
    if to is None and samples is None:
        return making.circle_group("rotations", "angle", n)
    first, last = real_number("n", n), real_number("to", 0.0 if to is None else to)
    count = whole_number("samples", 0 if samples is None else samples, 1)
    making.check_group_size(f"rotations:{n}:{to}:{count}", count)
    angle = np.linspace(first, last, count)
    angle[np.abs(angle) < 1e-9] = 0.0
    if not -180 <= first <= 0 <= last <= 180 or not (angle == 0).any():
        raise InputError(
            "n, to", "angles from -180 to 180 degrees, 0 among them", f"{count} from {n} to {to}"
        )
    return making.line_group(making.group_spec("rotations", first, last, count), "angle", angle)


@register("dihedral:4")
def dihedral(n: int) -> Group:
    """Return D_n: n rotations, and each of them after a left-right mirror; 2n elements."""
    n = making.element_count("dihedral", n, each=2)
    angle = np.tile(np.arange(n) * 360.0 / n, 2)
    mirrored = np.repeat([False, True], n)
    linear = making.plane_turns(angle)
    linear[mirrored] = linear[mirrored] @ np.diag([-1.0, 1.0])
    return making.make_group(
        f"dihedral:{n}",
        {"plane": homogeneous(linear)},
        coords={"angle": angle, "flip": np.where(mirrored, "mirrored", "plain")},
        layout=Layout("tiles", np.arange(2 * n).reshape(2, n)),
    )


@register()
def flips() -> Group:
    """Return the four flips of the plane: none, horizontal (left-right), vertical, both."""
    signs = np.array([[1, 1], [-1, 1], [1, -1], [-1, -1]], float)
    return making.make_group(
        "flips",
        {"plane": homogeneous(np.einsum("ki,ij->kij", signs, np.eye(2)))},
        coords={"flip": np.array(["none", "horizontal", "vertical", "both"])},
        layout=Layout("tiles", np.arange(4).reshape(2, 2)),
    )


@register("translations:32:2")
def translations(radius: float, step: float = 1) -> Group:
    """Return the shifts `(dx, dy)` within `radius` on a grid, drawn as a plane.

    There are `(2 radius / step + 1)^2` elements. A positive dx moves the content of an image to the
    right, a positive dy moves it up, to smaller row indices.

    >>> len(translations(32, 2))
    1089
    """
    line = making.grid_line("translations", radius, step, 2)
    dy, dx = np.meshgrid(line[::-1], line, indexing="ij")  # the top row of the drawing is up
    return making.window_group(
        making.group_spec("translations", radius, step),
        {"dx": dx.ravel(), "dy": dy.ravel()},
        layout=Layout(
            "plane", np.arange(dx.size).reshape(dx.shape), {"dy": line[::-1], "dx": line}
        ),
    )


@register()
def scales(low: float = 0.5, high: float = 2.0, n: int = 17) -> Group:
    """Return n scalings of the plane between `low` and `high`, log-uniform, drawn as a line.

    The step nearest to 1 is moved onto 1, so that the identity is among them; the weights are
    those of the trapezoidal rule in log scale.
    """
    return making.factor_group("scales", "scale", low, high, n)


@register()
def shear(limit: float = 0.5, n: int = 9) -> Group:
    """Return n shears of the plane along x, `x + s y` with s from -limit to limit.

    >>> shear(0.5, 5).coords["shear"].tolist()
    [-0.5, -0.25, 0.0, 0.25, 0.5]
    """
    amount = _about_zero("shear", limit, n, "no shear")
    return making.line_group(making.group_spec("shear", limit, len(amount)), "shear", amount)


def _about_zero(name: str, limit: float, n: int, middle: str) -> Array:
    """Return an odd number of steps from -limit to limit, 0 among them."""
    n = making.element_count(name, n)
    if n % 2 == 0:
        raise InputError("n", f"an odd number, so that {middle} is among them", n)
    real_number("limit", limit, "> 0")
    return np.asarray(np.arange(-(n // 2), n // 2 + 1) * (float(limit) / max(n // 2, 1)))


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
    group = making.product(translations(radius, step), rotations(turns))
    return dataclasses.replace(group, spec=making.group_spec("euclidean", turns, radius, step))


@register()
def se2(n: int = 64, radius: float = 4) -> Group:
    """Return n rigid motions of the plane, SE(2): any rotation, and a shift within `radius`.

    `euclidean` has all pairs of some rotations and some shifts.

    >>> len(se2(64, 4)), se2(64, 4).identity
    (64, 0)
    """
    n = making.element_count("se2", n, radius=radius)
    angle, dx, dy = (_plane_points(n, 3) * [180.0, float(radius), float(radius)]).T
    return making.window_group(
        making.group_spec("se2", n, radius),
        {"angle": angle, "dx": dx, "dy": dy},
        "Haar on the sampled window",
    )


@register()
def se3(n: int = 256, radius: float = 1) -> Group:
    """Return n rigid motions of space, SE(3): any rotation, and a shift within `radius`.

    They are drawn by their rotations.

    >>> sorted(se3(16, 2).coords)
    ['dx', 'dy', 'dz', 'rx', 'ry', 'rz']
    """
    n = making.element_count("se3", n, radius=radius)
    point = _plane_points(n, 6)
    share, first, second = (point[:, :3].T + 1) / 2
    turns = making.quaternion_turns(  # uniform (Shoemake, 1992)
        np.sqrt(1 - share), 2 * np.pi * first, np.sqrt(share), 2 * np.pi * second
    )
    return making.turn_group(
        making.group_spec("se3", n, radius),
        turns,
        point[:, 3:] * float(radius),
        measure="Haar on the sampled window",
        closed=n == 1,
    )


@register()
def affine(
    n: int = 64, angle: float = 30, scale: float = 1.25, shear: float = 0.2, radius: float = 0
) -> Group:
    """Return n affine maps of the plane near the identity.

    Each stretches along x and y by factors from `1 / scale` to `scale`, then shears by up to
    `shear`, rotates by up to `angle` degrees, and shifts by up to `radius`.

    >>> len(affine(32, 15, 1.1, 0.1, 2))
    32
    """
    n = making.element_count("affine", n, angle=angle, shear=shear, radius=radius)
    stretch = math.log(real_number("scale", scale, ">= 1"))
    window = np.array([angle, stretch, stretch, shear, radius, radius], float)
    turn, log_x, log_y, lean, dx, dy = (_plane_points(n, 6) * window).T
    coords = {"angle": turn, "scale_x": np.exp(log_x), "scale_y": np.exp(log_y)}
    return making.window_group(
        making.group_spec("affine", n, angle, scale, shear, radius),
        {**coords, "shear": lean, "dx": dx, "dy": dy},
        "uniform on the sampled window of angles, log scales, shears and shifts",
    )


@register()
def homographies(limit: float = 20, n: int = 5, focal: float = 100) -> Group:
    """Return the views of a camera that is panned and tilted, as homographies of the image.

    Args:
        limit: the largest angle of pan and of tilt in degrees, below 90.
        n: the number of angles for each, odd.
        focal: the focal length in pixels; half the width of an image over the tangent of half its
            angle of view.

    Returns:
        `n^2` homographies, drawn as a plane. Content moves right by pan and up by tilt.

    Example:
        >>> group = homographies(20, 3, 100)
        >>> group.name(5), group.has_homographies
        ('pan 20, tilt 0', True)
    """
    making.check_group_size(f"homographies:{limit}:{n}", whole_number("n", n, 1) ** 2)
    if not 0 < real_number("limit", limit) < 90:
        raise InputError("limit", "an angle between 0 and 90 degrees", repr(limit))
    real_number("focal", focal, "> 0")
    line = _about_zero("homographies", limit, n, "the view itself")
    tilt, pan = np.meshgrid(line[::-1], line, indexing="ij")  # the top row of the drawing is up
    return making.make_group(
        making.group_spec("homographies", limit, n, focal),
        {"plane": making.camera_matrices(pan.ravel(), tilt.ravel(), float(focal))},
        coords={"pan": pan.ravel(), "tilt": tilt.ravel()},
        layout=Layout("plane", np.arange(n * n).reshape(n, n), {"tilt": line[::-1], "pan": line}),
        measure="uniform on the sampled window of pan and tilt",
        closed=n == 1,
    )


_SOBOL = ((0, (1,)), (1, (1, 3)), (1, (1, 3, 1)), (2, (1, 1, 1)), (1, (1, 1, 3, 3)))
"""The inner coefficients of a primitive polynomial, as bits, and the first direction numbers of
each dimension of a Sobol sequence after the first (Joe and Kuo, 2008)."""


def _plane_points(count: int, dimension: int) -> Array:
    """Return points of the cube [-1, 1]^d that cover it evenly, the center first.

    They are the Sobol sequence past its corner; importing SciPy's takes half a second.
    """
    bits = int(count).bit_length()
    places = np.arange(1, count + 1)
    digits = (places ^ places >> 1)[:, None] >> np.arange(bits) & 1  # of the Gray code
    columns = []
    for inner, first in [(0, (1,) * bits), *_SOBOL][:dimension]:
        numbers = [*first][:bits]
        for place in range(len(numbers), bits):
            degree, last = len(first), numbers[place - len(first)]
            term = last ^ last << degree
            for step in range(1, degree):
                term ^= (inner >> degree - 1 - step & 1) * numbers[place - step] << step
            numbers.append(term)
        directions = [number << bits - 1 - place for place, number in enumerate(numbers)]
        columns.append(np.bitwise_xor.reduce(digits * directions, axis=1))
    return np.stack(columns, -1) / 2.0 ** (bits - 1) - 1
