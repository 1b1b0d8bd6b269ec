"""Groups that act on space."""

from __future__ import annotations

import math

import numpy as np
from scipy.spatial.transform import Rotation

from .group import (
    Elements,
    Group,
    Layout,
    distinct,
    few_enough,
    homogeneous,
    make_group,
    tiles,
    whole_number,
)


def rotations3d(n: int = 256) -> Group:
    """Return n low-discrepancy samples of SO(3), the identity first.

    The points are a super-Fibonacci spiral on the unit quaternions (Alexa, 2022), turned as a whole
    so that the first becomes the identity, which changes no distance between them.
    """
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


def inversion() -> Group:
    """Return the identity of space and its inversion, x to -x, which exchanges left and right.

    A product such as `rotations3d:64*inversion` samples O(3), mirrors included.
    """
    sign = np.array([1.0, -1.0])
    parts = {"space": homogeneous(sign[:, None, None] * np.eye(3))}
    return make_group(
        "inversion", parts, coords={"inversion": sign}, layout=tiles(np.arange(2)[None])
    )


def slices3d(azimuths: int = 72, angles: int = 13) -> Group:
    """Return rotations about axes in the xy, xz and yz planes, as the NERO paper draws them.

    Each plane is a polar drawing: the azimuth is that of the axis, the radius the angle of turn
    from 0 to 180 degrees. Rotations that appear in several cells (the identity, half turns about
    opposite axes, axes shared by two planes) are elements once.

    >>> len(slices3d(72, 13))
    2416
    """
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
