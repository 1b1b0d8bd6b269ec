"""Positions on an orbit: elements of the scan, and positions between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .. import groups
from .._text import number
from ..errors import InputError
from ..groups import Elements, Group, spoken_name

_NEAR = 1e-6


@dataclass(frozen=True)
class OrbitPosition:
    """A position on an orbit.

    Attributes:
        element: The nearest element of the scan.
        position: The coordinates, empty if elements have none.
        elements: The transformation itself, one element.
        scanned: Whether the position is that element.
        name: The display name.
    """

    element: int
    position: tuple[float, ...]
    elements: Elements
    scanned: bool
    name: str


class OrbitLocator:
    """Finds the transformation at a continuous position of an orbit.

    A circle has angles in degrees, a plane shifts `(dx, dy)` within its window, a line factors of
    scale within its ends. Other groups have elements only.

    >>> from orbical.groups import rotations
    >>> place = OrbitLocator(rotations(8)).at(0, (50.0,))
    >>> place.element, place.scanned, place.name
    (1, False, 'angle 50')
    """

    def __init__(self, group: Group) -> None:
        self.group = group
        self.axes = _AXES.get(group.layout.kind, ())
        one_to_one = {*self.axes} == {*group.coords} and {*group.parts} == {"plane"}
        self.continuous = bool(self.axes) and one_to_one
        axes = self.axes if self.continuous else ()
        self._coords = (
            np.array([group.coords[axis] for axis in axes], float).reshape(-1, len(group)).T
        )

    def at(self, element: int, position: tuple[float, ...] = ()) -> OrbitPosition:
        """Return the position of an element, or the given position if the group has positions."""
        if not position or not self.continuous:
            still, name = tuple(self._coords[element].tolist()), spoken_name(self.group, element)
            return OrbitPosition(element, still, self.group[[element]], True, name)
        if len(position) != len(self.axes):
            raise InputError("selection position", ", ".join(self.axes), f"{len(position)} numbers")
        here = self._inside(np.asarray(position, float))
        away = self._distance(here)
        nearest = int(away.argmin())
        if away[nearest] < _NEAR:
            return self.at(nearest)
        words = [f"{axis} {number(value)}" for axis, value in zip(self.axes, here, strict=True)]
        moved = Elements({"plane": _MATRICES[self.axes](here)}, 1)
        return OrbitPosition(nearest, tuple(here.tolist()), moved, False, ", ".join(words))

    def _inside(self, position: np.ndarray) -> np.ndarray:
        if self.axes == ("angle",):
            return np.asarray(position % 360.0)
        return np.asarray(np.clip(position, self._coords.min(0), self._coords.max(0)))

    def _distance(self, position: np.ndarray) -> np.ndarray:
        apart = np.abs(self._coords - position)
        if self.axes == ("angle",):
            apart = np.minimum(apart, 360.0 - apart)
        return np.asarray(np.sqrt(np.square(apart).sum(1)))

    def finer(self, factor: int = 4, most: int = 5000) -> Group | None:
        """Sample the same orbit at finer steps; None if nothing lies between its elements.

        Shifts are taken at every pixel or, if these are more than `most`, at the smallest number of
        whole pixels that divides the scanned step. Steps of a pixel or less, and fractional steps,
        are halved.

        >>> [OrbitLocator(groups.translations(size, 8)).finer().spec for size in (32, 64)]
        ['translations:32:1', 'translations:64:2']
        """
        if not self.continuous:
            return None
        count, line = min(len(self.group) * factor, most), np.unique(self._coords[:, 0])
        if self.axes == ("angle",):
            return groups.rotations(count)
        if self.axes == ("scale",):
            return groups.scales(float(line[0]), float(line[-1]), count)
        if len(line) < 2:
            return None
        radius, step = float(line[-1]), float(line[1] - line[0])
        for shorter in _shorter(step):
            if (2 * round(radius / shorter) + 1) ** 2 <= most:
                return groups.translations(radius, shorter)
        return None


def _shorter(step: float) -> list[float]:
    """Return steps between shifts that divide the given one, smallest first."""
    whole = round(step)
    if whole < 2 or abs(step - whole) > _NEAR:
        return [step / 2]
    return [float(pixels) for pixels in range(1, whole) if whole % pixels == 0]


_AXES = {"circle": ("angle",), "plane": ("dx", "dy"), "line": ("scale",)}
_MATRICES: dict[tuple[str, ...], Callable[[np.ndarray], np.ndarray]] = {
    ("angle",): lambda position: groups.homogeneous(groups.plane_turns(position)),
    ("dx", "dy"): lambda position: groups.homogeneous(np.eye(2)[None], position[None]),
    ("scale",): lambda position: groups.homogeneous(np.eye(2)[None] * position[0]),
}
