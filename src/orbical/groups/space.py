"""Groups that act on space; samples of SO(3) and of the sphere that are exact up to a degree."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator

import numpy as np
from numpy.polynomial.legendre import Legendre

from .._lazy import transform
from ..errors import whole_number
from . import making
from .group import Elements, Group, Layout
from .group_names import register
from .group_parts import Array, homogeneous

__all__ = [
    "exact_degree", "inversion", "o3", "reflections3d", "rotations3d", "slices3d",
    "so3_quadrature", "sphere", "translations3d",
]  # fmt: skip


@register()
def rotations3d(n: int = 256) -> Group:
    """Return n low-discrepancy samples of SO(3), the identity first.

    The points are a super-Fibonacci spiral on the unit quaternions (Alexa, 2022), turned as a whole
    so that the first becomes the identity, which changes no distance between them.

    See Also:
        so3_quadrature: With weights that make averages exact up to a degree.
        sphere: Directions of one axis.
        slices3d: As the NERO paper draws them.
    """
    n = making.element_count("rotations3d", n)
    s = np.arange(n) + 0.5
    alpha, beta = 2 * np.pi * s / math.sqrt(2), 2 * np.pi * s / 1.533751168755204288118041413
    turns = making.quaternion_turns(np.sqrt(s / n), alpha, np.sqrt(1 - s / n), beta)
    return making.turn_group(f"rotations3d:{n}", turns, closed=n == 1)


@register()
def inversion() -> Group:
    """Return the identity of space and its inversion, x to -x, which exchanges left and right.

    A product such as `rotations3d:64*inversion` samples O(3), mirrors included.
    """
    sign = np.array([1.0, -1.0])
    parts = {"space": homogeneous(sign[:, None, None] * np.eye(3))}
    return making.make_group("inversion", parts, coords={"inversion": sign})


@register()
def reflections3d() -> Group:
    """Return the eight mirrors of space: the sign of x, y and z changed or not.

    >>> reflections3d().coords["flip"].tolist()
    ['none', 'z', 'y', 'yz', 'x', 'xz', 'xy', 'xyz']
    """
    signs = np.array(list(itertools.product([1.0, -1.0], repeat=3)))
    mirrored = ["".join(np.array(list("xyz"))[one < 0]) or "none" for one in signs]
    return making.make_group(
        "reflections3d",
        {"space": homogeneous(signs[:, :, None] * np.eye(3))},
        coords={"flip": np.array(mirrored)},
        layout=Layout("tiles", np.arange(8).reshape(2, 4)),
    )


@register()
def o3(n: int = 128) -> Group:
    """Return a sample of O(3): n rotations of `rotations3d`, and each of them inverted.

    >>> len(o3(64))
    128
    """
    return dataclasses.replace(making.product(rotations3d(n), inversion()), spec=f"o3:{n}")


@register("translations3d:4:2")
def translations3d(radius: float, step: float = 1) -> Group:
    """Return the shifts `(dx, dy, dz)` within `radius` on a grid, drawn as a plane for each dz.

    There are `(2 radius / step + 1)^3` elements.

    >>> len(translations3d(4, 2))
    125
    """
    line = making.grid_line("translations3d", radius, step, 3)
    dy, dz, dx = np.meshgrid(line[::-1], line, line, indexing="ij")
    return making.window_group(
        making.group_spec("translations3d", radius, step),
        {"dx": dx.ravel(), "dy": dy.ravel(), "dz": dz.ravel()},
        layout=Layout("tiles", np.arange(dx.size).reshape(len(line), -1)),
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
    azimuths, angles = whole_number("azimuths", azimuths, 1), whole_number("angles", angles, 2)
    making.check_group_size(f"slices3d:{azimuths}:{angles}", 3 * azimuths * angles)
    azimuth = np.arange(azimuths) * 360.0 / azimuths
    angle = np.linspace(0.0, 180.0, angles)
    first = np.array([[1.0, 0, 0], [1, 0, 0], [0, 1, 0]])[:, None]
    second = np.array([[0, 1.0, 0], [0, 0, 1], [0, 0, 1]])[:, None]
    along = np.deg2rad(azimuth)[None, :, None]
    axis = np.cos(along) * first + np.sin(along) * second
    vector = np.deg2rad(angle)[None, None, :, None] * axis[:, :, None, :]
    matrices = homogeneous(transform.Rotation.from_rotvec(vector.reshape(-1, 3)).as_matrix())
    kept, cell = making.distinct_elements(Elements({"space": matrices}, len(matrices)))
    plane, turn = np.divmod(kept, azimuths * angles)
    return making.make_group(
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


@register()
def so3_quadrature(degree: int = 4) -> Group:
    """Return rotations and weights whose averages are exact for Wigner matrices up to a degree.

    The average of a model along the orbit is then equivariant up to rounding, if its outputs depend
    on the rotation by polynomials of that degree. Euler angles about z are equally spaced; the
    angle between them has the nodes of Gauss and Lobatto, among which is 0. Up to degree 5 the
    rotations of the regular solids need no more elements: `tetrahedral` to 2, `octahedral` to 3,
    `icosahedral` to 5.

    Args:
        degree: the highest degree, at least 1.

    Returns:
        The rotations: with `m = degree + 1` and `n = ceil((degree + 3) / 2)` there are
        `(n - 2) m^2 + 2 m`.

    Example:
        >>> len(so3_quadrature(4)), exact_degree(so3_quadrature(4))
        (60, 4)
    """
    degree = whole_number("degree", degree, 1)
    turns, nodes = degree + 1, math.ceil((degree + 3) / 2)
    making.check_group_size(f"so3_quadrature:{degree}", (nodes - 2) * turns**2 + 2 * turns)
    cosine, share = _lobatto(nodes)
    around = np.arange(turns) * 2 * np.pi / turns
    first, second = (each.ravel() for each in np.meshgrid(around, around, indexing="ij"))
    euler, weights = [], []
    for angle, weight in zip(np.arccos(cosine), share, strict=True):
        pole = np.isclose(np.sin(angle), 0)  # where both angles turn about the same axis
        before, after = (around, 0 * around) if pole else (first, second)
        euler.append(np.stack([before, np.full(len(before), angle), after], -1))
        weights.append(np.full(len(before), weight / len(before)))
    return making.turn_group(
        f"so3_quadrature:{degree}",
        transform.Rotation.from_euler("ZYZ", np.concatenate(euler)),
        measure=f"Haar, exact to degree {degree}",
        closed=degree == 1,  # the half turns about x, y and z
        weights=np.concatenate(weights),
    )


@register()
def sphere(degree: int = 8) -> Group:
    """Return rotations that carry the z axis to all directions, exact up to a degree.

    Each rotates about an axis in the xy plane, as a plane of `slices3d` does. For data that do not
    change by rotations about z: spherical harmonics of the direction average exactly up to the
    degree.

    Args:
        degree: the highest degree, at least 1.

    Returns:
        The rotations: `(n - 2) (degree + 1) + 2` of them, with `n = ceil((degree + 3) / 2)`.

    Example:
        >>> len(sphere(8))
        38
    """
    degree = whole_number("degree", degree, 1)
    turns, nodes = degree + 1, math.ceil((degree + 3) / 2)
    making.check_group_size(f"sphere:{degree}", (nodes - 2) * turns + 2)
    cosine, share = _lobatto(nodes)
    angle, azimuth = np.rad2deg(np.arccos(cosine)), np.arange(turns) * 360.0 / turns
    between = np.stack(np.meshgrid(azimuth, angle[1:-1], indexing="ij"), -1).reshape(-1, 2)
    coords = np.concatenate([[[0.0, 0.0]], between, [[0.0, 180.0]]])
    axis = np.deg2rad(coords[:, 0])
    vector = np.stack([np.cos(axis), np.sin(axis), np.zeros(len(axis))], -1)
    sampled = transform.Rotation.from_rotvec(np.deg2rad(coords[:, 1:]) * vector)
    cells = np.zeros((1, turns, nodes), int)
    cells[0, :, 1:-1] = 1 + np.arange(len(between)).reshape(turns, nodes - 2)
    cells[0, :, -1] = len(coords) - 1
    return making.make_group(
        f"sphere:{degree}",
        {"space": homogeneous(sampled.as_matrix())},
        coords={"azimuth": coords[:, 0], "angle": coords[:, 1]},
        layout=Layout(
            "slices", cells, {"plane": np.array(["xy"]), "azimuth": azimuth, "angle": angle}
        ),
        measure=f"uniform on the sphere of directions, exact to degree {degree}",
        closed=False,
        weights=np.concatenate([share[:1], np.tile(share[1:-1] / turns, turns), share[-1:]]),
    )


def _lobatto(count: int) -> tuple[Array, Array]:
    """Return nodes from 1 down to -1 and weights, exact for polynomials of degree 2 count - 3.

    >>> _lobatto(3)[1].round(3).tolist()
    [0.167, 0.667, 0.167]
    """
    polynomial = Legendre.basis(count - 1)
    inner = np.sort(polynomial.deriv().roots().real)[::-1] if count > 2 else np.zeros(0)
    nodes = np.concatenate([[1.0], inner, [-1.0]])
    return nodes, 1 / (count * (count - 1) * polynomial(nodes) ** 2)


_MOST_PAIRED = 2048
_HIGHEST = 512


def exact_degree(group: Group) -> int | None:
    """Measure up to which degree averages over a sample of rotations are those over all rotations.

    In space the degree is that of Wigner matrices, in the plane that of Fourier series. A sample
    with mirrors is compared with all rotations and mirrors.

    Args:
        group: a group that moves either the plane or space, and shifts nothing.

    Returns:
        The degree, 0 if not even vectors average to 0; None for other groups and for more than
        2,048 elements.

    Example:
        >>> from orbical import groups
        >>> exact_degree(groups.icosahedral()), exact_degree(groups.rotations(72))
        (5, 71)
    """
    (name, *others) = group.parts or [""]
    if name not in ("plane", "space") or others or len(group) > _MOST_PAIRED:
        return None
    matrices = group.parts[name]
    linear = matrices[:, :-1, :-1]
    isometric = np.allclose(linear @ linear.transpose(0, 2, 1), np.eye(linear.shape[-1]))
    if matrices[:, :-1, -1].any() or matrices[:, -1, :-1].any() or not isometric:
        return None
    sign = np.sign(np.linalg.det(linear))
    if (sign < 0).any() and abs(group.weights @ sign) > 1e-9:
        return 0
    found = (_plane_means if name == "plane" else _space_means)(linear, sign, group.weights)
    return next((degree for degree, size in enumerate(found) if size > 1e-11), _HIGHEST)


def _plane_means(linear: Array, sign: Array, weights: Array) -> Iterator[float]:
    """Yield the squared norm of the mean of each irreducible representation, from degree 1."""
    turn = linear[:, 0, 0] + 1j * linear[:, 1, 0]
    for degree in range(1, _HIGHEST + 1):
        waves = weights * turn**degree
        yield abs(waves[sign > 0].sum()) ** 2 + abs(waves[sign < 0].sum()) ** 2


def _space_means(linear: Array, sign: Array, weights: Array) -> Iterator[float]:
    """Yield the squared norm of the mean of the Wigner matrices of each degree, from degree 1.

    It is the mean over all pairs of the character of their quotient, a rotation by a:
    `1 + 2 cos a + ... + 2 cos l a`.
    """
    flat = (sign[:, None, None] * linear).reshape(len(linear), 9)
    angle = np.arccos(np.clip((flat @ flat.T - 1) / 2, -1, 1))
    signed, character = weights * sign, np.ones_like(angle)
    for degree in range(1, _HIGHEST + 1):
        character += 2 * np.cos(degree * angle)
        even, odd = weights @ character @ weights, signed @ character @ signed
        yield float(max(even, odd))
