"""Samples of groups that are too large for a grid: rigid motions, affine maps, homographies.

The parameters of motions and affine maps are points of a Sobol sequence in a window about the
identity, which is the first.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError, real_number, whole_number
from .group import Group, Layout, as_text, few_enough, homogeneous, make_group, tiles
from .group_names import register
from .group_parts import Array, clean
from .plane import turned_by

if TYPE_CHECKING:
    from scipy.spatial.transform import Rotation


@register()
def se2(n: int = 64, radius: float = 4) -> Group:
    """Return n rigid motions of the plane, SE(2): any rotation, and a shift within `radius`.

    `euclidean` has all pairs of some rotations and some shifts.

    >>> len(se2(64, 4)), se2(64, 4).identity
    (64, 0)
    """
    n = _count("se2", n, radius=radius)
    angle, dx, dy = (_points(n, 3) * [180.0, float(radius), float(radius)]).T
    return make_group(
        f"se2:{n}:{as_text(radius)}",
        {"plane": homogeneous(turned_by(angle), np.stack([dx, dy], -1))},
        coords={"angle": angle, "dx": dx, "dy": dy},
        layout=tiles(np.arange(n)[None]),
        measure="Haar on the sampled window",
        closed=n == 1,
    )


@register()
def se3(n: int = 256, radius: float = 1) -> Group:
    """Return n rigid motions of space, SE(3): any rotation, and a shift within `radius`.

    They are drawn by their rotations.

    >>> sorted(se3(16, 2).coords)
    ['dx', 'dy', 'dz', 'rx', 'ry', 'rz']
    """
    n = _count("se3", n, radius=radius)
    point = _points(n, 6)
    turn, shift = _uniform_rotations((point[:, :3] + 1) / 2), point[:, 3:] * float(radius)
    vector = np.rad2deg(turn.as_rotvec())
    vector[0] = 0.0
    coords = dict(zip(("rx", "ry", "rz", "dx", "dy", "dz"), [*vector.T, *shift.T], strict=True))
    return make_group(
        f"se3:{n}:{as_text(radius)}",
        {"space": homogeneous(turn.as_matrix(), shift)},
        coords=coords,
        layout=Layout("ball", np.arange(n)),
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
    n = _count("affine", n, angle=angle, shear=shear, radius=radius)
    if real_number("scale", scale) < 1:
        raise InputError("scale", "a number >= 1", repr(scale))
    stretch = math.log(scale)
    window = np.array([angle, stretch, stretch, shear, radius, radius], float)
    turn, log_x, log_y, lean, dx, dy = (_points(n, 6) * window).T
    scale_x, scale_y = np.exp(log_x), np.exp(log_y)
    numbers = ":".join(map(as_text, (angle, scale, shear, radius)))
    return make_group(
        f"affine:{n}:{numbers}",
        {"plane": affine_maps(turn, scale_x, scale_y, lean, dx, dy)},
        coords={
            "angle": turn,
            "scale_x": scale_x,
            "scale_y": scale_y,
            "shear": lean,
            "dx": dx,
            "dy": dy,
        },
        layout=tiles(np.arange(n)[None]),
        measure="uniform on the sampled window of angles, log scales, shears and shifts",
        closed=n == 1,
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
    n = whole_number("n", n, 1)
    if n % 2 == 0:
        raise InputError("n", "an odd number, so that the view itself is among them", n)
    few_enough(f"homographies:{limit}:{n}", n * n)
    if not 0 < real_number("limit", limit) < 90:
        raise InputError("limit", "an angle between 0 and 90 degrees", repr(limit))
    if real_number("focal", focal) <= 0:
        raise InputError("focal", "a number > 0", repr(focal))
    line = np.arange(-(n // 2), n // 2 + 1) * (float(limit) / max(n // 2, 1))
    tilt, pan = np.meshgrid(line[::-1], line, indexing="ij")  # the top row of the drawing is up
    return make_group(
        f"homographies:{as_text(limit)}:{n}:{as_text(focal)}",
        {"plane": camera_views(pan.ravel(), tilt.ravel(), float(focal))},
        coords={"pan": pan.ravel(), "tilt": tilt.ravel()},
        layout=Layout("plane", np.arange(n * n).reshape(n, n), {"tilt": line[::-1], "pan": line}),
        measure="uniform on the sampled window of pan and tilt",
        closed=n == 1,
    )


def affine_maps(
    angle: Array, scale_x: Array, scale_y: Array, shear: Array, dx: Array, dy: Array
) -> Array:
    """Return maps `[K, 3, 3]` that stretch, then shear, rotate and shift."""
    linear = np.tile(np.eye(2), (len(angle), 1, 1))
    linear[:, 0, 1] = shear
    linear = turned_by(angle) @ linear * np.stack([scale_x, scale_y], -1)[:, None]
    return homogeneous(linear, np.stack([dx, dy], -1))


def camera_views(pan: Array, tilt: Array, focal: float) -> Array:
    """Return the homographies `[K, 3, 3]` of a camera turned by angles in degrees."""
    from scipy.spatial.transform import Rotation

    turned = Rotation.from_euler("yx", np.stack([pan, -tilt], -1), degrees=True)
    lens = np.diag([focal, focal, 1.0])
    maps = lens @ turned.as_matrix() @ np.linalg.inv(lens)
    return clean(maps / maps[:, 2:, 2:])


def _count(name: str, n: int, **limits: float) -> int:
    """Return the number of elements, after checking that no limit of the window is negative."""
    for argument, value in limits.items():
        if real_number(argument, value) < 0:
            raise InputError(argument, "a number >= 0", repr(value))
    few_enough(f"{name}:{n}", whole_number("n", n, 1))
    return int(n)


def _points(count: int, dimension: int) -> Array:
    """Return points of the cube [-1, 1]^d that cover it evenly, the center first."""
    from scipy.stats.qmc import Sobol  # takes half a second

    sequence = Sobol(dimension, scramble=False)
    sequence.fast_forward(1)  # past a corner
    return np.asarray(2 * sequence.random(count) - 1)


def _uniform_rotations(point: Array) -> Rotation:
    """Return rotations from points of the unit cube (Shoemake, 1992), the first the identity."""
    from scipy.spatial.transform import Rotation

    share, first, second = point[:, 0], *(2 * np.pi * point[:, 1:].T)
    inner, outer = np.sqrt(1 - share), np.sqrt(share)
    quaternions = [
        inner * np.sin(first),
        inner * np.cos(first),
        outer * np.sin(second),
        outer * np.cos(second),
    ]
    sampled = Rotation.from_quat(np.stack(quaternions, -1))
    return sampled[0].inv() * sampled
