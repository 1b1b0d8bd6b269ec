"""Groups that act on space."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np

from ..errors import whole_number
from .group import (
    Elements,
    Group,
    Layout,
    as_text,
    distinct,
    few_enough,
    grid_line,
    homogeneous,
    make_group,
    product,
    tiles,
)
from .group_names import register


@register()
def rotations3d(n: int = 256) -> Group:
    """Return n low-discrepancy samples of SO(3), the identity first.

    The points are a super-Fibonacci spiral on the unit quaternions (Alexa, 2022), turned as a whole
    so that the first becomes the identity, which changes no distance between them.
    """
    from scipy.spatial.transform import Rotation

    n = whole_number("n", n, 1)
    few_enough(f"rotations3d:{n}", n)
    s = np.arange(n) + 0.5
    inner, outer = np.sqrt(s / n), np.sqrt(1 - s / n)
    alpha, beta = 2 * np.pi * s / math.sqrt(2), 2 * np.pi * s / 1.533751168755204288118041413
    quaternions = np.stack(
        [inner * np.sin(alpha), inner * np.cos(alpha), outer * np.sin(beta), outer * np.cos(beta)],
        -1,
    )
    sampled = Rotation.from_quat(quaternions)
    turned = sampled[0].inv() * sampled
    vector = np.rad2deg(turned.as_rotvec())
    vector[0] = 0.0
    return make_group(
        f"rotations3d:{n}",
        {"space": homogeneous(turned.as_matrix())},
        coords={"rx": vector[:, 0], "ry": vector[:, 1], "rz": vector[:, 2]},
        layout=Layout("ball", np.arange(n)),
        closed=n == 1,
    )


@register()
def inversion() -> Group:
    """Return the identity of space and its inversion, x to -x, which exchanges left and right.

    A product such as `rotations3d:64*inversion` samples O(3), mirrors included.
    """
    sign = np.array([1.0, -1.0])
    parts = {"space": homogeneous(sign[:, None, None] * np.eye(3))}
    return make_group(
        "inversion", parts, coords={"inversion": sign}, layout=tiles(np.arange(2)[None])
    )


@register()
def reflections3d() -> Group:
    """Return the eight mirrors of space: the sign of x, y and z changed or not.

    >>> reflections3d().coords["flip"].tolist()
    ['none', 'z', 'y', 'yz', 'x', 'xz', 'xy', 'xyz']
    """
    signs = np.array(list(itertools.product([1.0, -1.0], repeat=3)))
    mirrored = ["".join(np.array(list("xyz"))[one < 0]) or "none" for one in signs]
    return make_group(
        "reflections3d",
        {"space": homogeneous(signs[:, :, None] * np.eye(3))},
        coords={"flip": np.array(mirrored)},
        layout=tiles(np.arange(8).reshape(2, 4)),
    )


@register()
def o3(n: int = 128) -> Group:
    """Return a sample of O(3): n rotations of `rotations3d`, and each of them inverted.

    >>> len(o3(64))
    128
    """
    return dataclasses.replace(product(rotations3d(n), inversion()), spec=f"o3:{n}")


@register("translations3d:4:2")
def translations3d(radius: float, step: float = 1) -> Group:
    """Return the shifts `(dx, dy, dz)` within `radius` on a grid, drawn as a plane for each dz.

    There are `(2 radius / step + 1)^3` elements.

    >>> len(translations3d(4, 2))
    125
    """
    line = grid_line("translations3d", radius, step, 3)
    dy, dz, dx = np.meshgrid(line[::-1], line, line, indexing="ij")
    shift = np.stack([dx.ravel(), dy.ravel(), dz.ravel()], -1)
    count = len(shift)
    return make_group(
        f"translations3d:{as_text(radius)}:{as_text(step)}",
        {"space": homogeneous(np.tile(np.eye(3), (count, 1, 1)), shift)},
        coords={"dx": shift[:, 0], "dy": shift[:, 1], "dz": shift[:, 2]},
        layout=tiles(np.arange(count).reshape(len(line), -1)),
        measure="uniform on the sampled window",
        closed=count == 1,
    )


@register()
def slices3d(azimuths: int = 72, angles: int = 13) -> Group:
    """Return rotations about axes in the xy, xz and yz planes, as the NERO paper draws them.

    Each plane is a polar drawing: the azimuth is that of the axis, the radius the angle of turn
    from 0 to 180 degrees, with `azimuths` axes and `angles` angles, 0 included. Rotations that
    appear in several cells (the identity, half turns about opposite axes, axes shared by two
    planes) are elements once.

    >>> len(slices3d(72, 13))
    2416
    """
    from scipy.spatial.transform import Rotation

    azimuths, angles = whole_number("azimuths", azimuths, 1), whole_number("angles", angles, 2)
    few_enough(f"slices3d:{azimuths}:{angles}", 3 * azimuths * angles)
    azimuth = np.arange(azimuths) * 360.0 / azimuths
    angle = np.linspace(0.0, 180.0, angles)
    first, second = (
        np.array([[1.0, 0, 0], [1, 0, 0], [0, 1, 0]]),
        np.array([[0, 1.0, 0], [0, 0, 1], [0, 0, 1]]),
    )
    axis = (
        np.cos(np.deg2rad(azimuth))[None, :, None] * first[:, None]
        + np.sin(np.deg2rad(azimuth))[None, :, None] * second[:, None]
    )
    vector = np.deg2rad(angle)[None, None, :, None] * axis[:, :, None, :]
    matrices = homogeneous(Rotation.from_rotvec(vector.reshape(-1, 3)).as_matrix())
    kept, cell = distinct(Elements({"space": matrices}, len(matrices)))
    plane, turn = np.divmod(kept, azimuths * angles)
    return make_group(
        f"slices3d:{azimuths}:{angles}",
        {"space": matrices[kept]},
        coords={
            "plane": np.array(["xy", "xz", "yz"])[plane],
            "azimuth": azimuth[turn // angles],
            "angle": angle[turn % angles],
        },
        layout=Layout(
            "slices",
            cell.reshape(3, azimuths, angles),
            {"plane": np.array(["xy", "xz", "yz"]), "azimuth": azimuth, "angle": angle},
        ),
        measure="uniform on the distinct rotations of the three planes",
        closed=False,
    )
