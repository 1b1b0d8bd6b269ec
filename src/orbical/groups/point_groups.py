"""Point groups of space: the 32 of crystals, and the symmetries of the regular solids.

The principal axis is z, and x is one of the axes across it. Elements have the names of
crystallography: `4+ [001]` is a quarter turn about z, `m [100]` the mirror across x, `-3+ [111]` a
third of a turn followed by inversion; `5^2+` is two fifths of a turn.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from .._lazy import transform
from ..errors import check_name, unknown_name
from .group import Elements, Group, Layout
from .group_names import register
from .group_parts import Array, homogeneous
from .making import distinct_elements, make_group

__all__ = ["icosahedral", "octahedral", "pointgroup", "tetrahedral"]

_SINE = 0.75**0.5  # of 60 degrees
_GENERATORS: dict[str, Array] = {
    "-1": -np.eye(3),
    "2z": np.diag([-1.0, -1, 1]),
    "2x": np.diag([1.0, -1, -1]),
    "mz": np.diag([1.0, 1, -1]),
    "mx": np.diag([-1.0, 1, 1]),
    "4z": np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]]),
    "-4z": np.array([[0.0, 1, 0], [-1, 0, 0], [0, 0, -1]]),
    "3z": np.array([[-0.5, -_SINE, 0], [_SINE, -0.5, 0], [0, 0, 1]]),
    "6z": np.array([[0.5, -_SINE, 0], [_SINE, 0.5, 0], [0, 0, 1]]),
    "3d": np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]]),  # about the diagonal [111]
}
_CRYSTAL = {  # by the short Hermann-Mauguin name: the Schoenflies name, and generators
    "1": ("C1", ""),
    "-1": ("Ci", "-1"),
    "2": ("C2", "2z"),
    "m": ("Cs", "mz"),
    "2/m": ("C2h", "2z -1"),
    "222": ("D2", "2z 2x"),
    "mm2": ("C2v", "2z mx"),
    "mmm": ("D2h", "2z 2x -1"),
    "4": ("C4", "4z"),
    "-4": ("S4", "-4z"),
    "4/m": ("C4h", "4z -1"),
    "422": ("D4", "4z 2x"),
    "4mm": ("C4v", "4z mx"),
    "-42m": ("D2d", "-4z 2x"),
    "4/mmm": ("D4h", "4z 2x -1"),
    "3": ("C3", "3z"),
    "-3": ("C3i", "3z -1"),
    "32": ("D3", "3z 2x"),
    "3m": ("C3v", "3z mx"),
    "-3m": ("D3d", "3z 2x -1"),
    "6": ("C6", "6z"),
    "-6": ("C3h", "3z mz"),
    "6/m": ("C6h", "6z -1"),
    "622": ("D6", "6z 2x"),
    "6mm": ("C6v", "6z mx"),
    "-6m2": ("D3h", "3z mz mx"),
    "6/mmm": ("D6h", "6z 2x -1"),
    "23": ("T", "2z 3d"),
    "m-3": ("Th", "2z 3d -1"),
    "432": ("O", "4z 3d"),
    "-43m": ("Td", "-4z 3d"),
    "m-3m": ("Oh", "4z 3d -1"),
}
_HERMANN_MAUGUIN = {schoenflies: name for name, (schoenflies, _) in _CRYSTAL.items()} | {
    "S2": "-1",
    "S6": "-3",
    "C1h": "m",
    "S3": "-6",
}
_KINDS = ("rotations", "full")


@register("pointgroup:mmm")
def pointgroup(name: str) -> Group:
    """Return one of the 32 crystallographic point groups.

    Args:
        name: the short Hermann-Mauguin name, such as `mmm`, `-43m` or `6/mmm`, or the Schoenflies
            name, such as `D2h`, `Td` or `D6h`.

    Returns:
        The group, with the principal axis along z, also where it has one axis only (`2`, `m`).

    Raises:
        InputError: if no point group has this name; the nearest is suggested.

    Example:
        >>> group = pointgroup("mm2")
        >>> [group.name(element) for element in range(len(group))]
        ['operation 1', 'operation 2 [001]', 'operation m [100]', 'operation m [010]']
        >>> pointgroup("Oh")
        Group('pointgroup:m-3m', 48 elements)
    """
    known = str(name).strip()
    known = _HERMANN_MAUGUIN.get(known, known)
    if known not in _CRYSTAL:
        raise unknown_name("name", name, [*_CRYSTAL, *_HERMANN_MAUGUIN])
    return _named_point_group(
        f"pointgroup:{known}", _generated_point_group(_CRYSTAL[known][1].split())
    )


@register()
def tetrahedral(kind: str = "rotations") -> Group:
    """Return the 12 rotations of a tetrahedron, or all 24 symmetries if `kind` is `full`.

    Averages over the rotations are exact for polynomials in x, y and z of degree 2, and so are
    those over all symmetries.

    >>> len(tetrahedral()), len(tetrahedral("full"))
    (12, 24)
    """
    return _solid("tetrahedral", kind, pointgroup("23"), pointgroup("-43m"))


@register()
def octahedral(kind: str = "rotations") -> Group:
    """Return the 24 rotations of a cube, or all 48 symmetries if `kind` is `full`.

    They move a cubic grid of voxels onto itself. Averages over them are exact to degree 3.

    >>> len(octahedral()), octahedral("full").spec
    (24, 'octahedral:full')
    """
    return _solid("octahedral", kind, pointgroup("432"), pointgroup("m-3m"))


@register()
def icosahedral(kind: str = "rotations") -> Group:
    """Return the 60 rotations of an icosahedron, or all 120 symmetries if `kind` is `full`.

    Averages over them are exact to degree 5: the best that a finite group of rotations can do.

    >>> len(icosahedral()), len(icosahedral("full"))
    (60, 120)
    """
    turns = transform.Rotation.create_group("I").as_matrix()
    both = np.concatenate([turns, -turns])
    return _solid("icosahedral", kind, _named_point_group("", turns), _named_point_group("", both))


def _solid(name: str, kind: str, rotations: Group, full: Group) -> Group:
    check_name("kind", kind, _KINDS)
    chosen, spec = (full, f"{name}:full") if kind == "full" else (rotations, name)
    return replace(chosen, spec=spec)


def _generated_point_group(names: list[str]) -> Array:
    """Return all products `[K, 3, 3]` of generators."""
    steps = np.stack([np.eye(3), *(_GENERATORS[name] for name in names)])
    found = steps[:1]
    while True:
        products = homogeneous(np.einsum("aij,bjk->abik", steps, found).reshape(-1, 3, 3))
        kept, _ = distinct_elements(Elements({"space": products}, len(products)))
        if len(kept) == len(found):
            return found
        found = products[kept][:, :3, :3]


def _named_point_group(spec: str, matrices: Array) -> Group:
    """Return a point group with its elements in order: rotations first, the simplest first."""
    improper = np.linalg.det(matrices) < 0
    proper = np.where(improper[:, None, None], -1, 1) * matrices
    turns = [
        _turn_of_point_group(vector)
        for vector in transform.Rotation.from_matrix(proper).as_rotvec()
    ]
    order = sorted(range(len(turns)), key=lambda one: (improper[one], turns[one]))
    count, rotations = len(order), len(order) // (2 if improper.any() else 1)
    width = max(number for number in range(1, 7) if rotations % number == 0)  # names fit
    return make_group(
        spec,
        {"space": homogeneous(matrices[order])},
        coords={
            "operation": np.array(
                [_point_group_symbol(turns[one], bool(improper[one])) for one in order]
            )
        },
        layout=Layout("tiles", np.arange(count).reshape(-1, width)),
    )


_Turn = tuple[int, int, tuple[float, ...], bool]
"""A rotation: the order of its axis, the steps, the direction of the axis, negated; backwards."""


def _turn_of_point_group(vector: Array) -> _Turn:
    angle = float(np.linalg.norm(vector))
    share = Fraction(angle / (2 * np.pi)).limit_denominator(12)
    if not share:
        return 1, 0, (), False
    axis = np.round(vector / angle, 9)
    backwards = bool(axis[np.flatnonzero(axis)[0]] < 0)
    direction = tuple((axis if backwards else -axis).tolist())  # negated: [100] sorts first
    return share.denominator, share.numerator, direction, backwards and share != Fraction(1, 2)


def _point_group_symbol(turn: _Turn, improper: bool) -> str:
    order, steps, direction, backwards = turn
    if order == 1:
        return "-1" if improper else "1"
    if order == 2:
        sign, about = "", "m" if improper else "2"
    else:
        sign, about = "-" if backwards else "+", f"{'-' if improper else ''}{order}"
    several = f"^{steps}" if steps > 1 else ""
    return f"{about}{several}{sign} [{_axis_of_point_group(-np.array(direction))}]"


def _operation_in_words(symbol: str) -> str:
    """Return what an operation does, with its symbol after it.

    >>> [_operation_in_words(one) for one in ("1", "-1", "m [100]", "4+ [001]", "-3^2- [111]")][:3]
    ['identity (1)', 'inversion (-1)', 'mirror across [100] (m)']
    >>> _operation_in_words("4+ [001]"), _operation_in_words("-3- [111]")
    ('90° about [001] (4+)', '-120° about [111] and inversion (-3-)')
    """
    kind, _, axis = symbol.partition(" ")
    if not axis:
        return f"{'inversion' if kind == '-1' else 'identity'} ({kind})"
    if kind == "m":
        return f"mirror across {axis} (m)"
    order, _, steps = kind.strip("+-").partition("^")
    angle = 360 * int(steps or 1) / int(order)
    sign, both = "-" if kind.endswith("-") else "", " and inversion" if kind[0] == "-" else ""
    return f"{sign}{angle:g}° about {axis}{both} ({kind})"


def spoken_name(group: Group, index: int) -> str:
    """Return the name of an element for readers: operations in words, others by coordinates."""
    if [*group.coords] == ["operation"]:
        return _operation_in_words(str(group.coords["operation"][index]))
    return group.name(index)


def _axis_of_point_group(direction: Array) -> str:
    """Write a direction: as `1-10` where its entries are equal, otherwise as decimals.

    >>> _axis_of_point_group(np.array([0.70710678, -0.70710678, 0]))
    '1-10'
    """
    whole = direction / np.abs(direction).max()
    if np.allclose(whole, np.round(whole), atol=1e-6):
        return "".join(f"{round(entry)}" for entry in whole)
    return " ".join(f"{entry + 0.0:.2f}".removesuffix(".00") for entry in direction)
