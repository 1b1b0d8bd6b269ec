"""Continuous coordinates of groups, in which the elements between those of a sample lie.

A scan needs finitely many elements; a search between them needs to know how the group goes on. A
chart takes coordinates to elements, and is found by the name of the group, so that it also serves
groups that a stored scan holds.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np

from .._lazy import transform
from ..errors import InputError
from . import making
from .group import Elements, Group
from .group_names import parse
from .group_parts import Array, homogeneous

Add = Callable[[Array, Array], Array]


@dataclass(frozen=True)
class Chart:
    """Continuous coordinates of a group, and where the elements of a sample lie in them.

    Attributes:
        names: the names of the d coordinates.
        parts: a function from coordinates `[N, d]`, and for each the index `[N]` of the sampled
            element it belongs to, to the parts of N elements.
        start: the coordinates `[K, d]` of the sampled elements.
        step: the distance `[d]` of neighboring elements of the sample, in units of `add`.
        low: the lower ends `[d]` of the sampled window; `-inf` where there is none.
        high: the upper ends.
        add: coordinates `[N, d]` after a change `[N, d]`; by default their sum.
        held: the names of coordinates of the group that are discrete, and stay as they are.

    Example:
        >>> from orbical.groups import translations
        >>> chart = chart_of(translations(4, 2))
        >>> chart.names, chart.step.tolist(), chart.high.tolist()
        (('dx', 'dy'), [2.0, 2.0], [4.0, 4.0])
    """

    names: tuple[str, ...]
    parts: Callable[[Array, Array], making.Parts]
    start: Array
    step: Array
    low: Array
    high: Array
    add: Add = np.add
    held: tuple[str, ...] = ()

    @classmethod
    def of_grid(
        cls,
        group: Group,
        parts: Callable[[Array], making.Parts],
        *,
        names: Sequence[str] | None = None,
        circular: Sequence[str] = (),
    ) -> Chart:
        """Return the chart of a sample whose coordinates are numbers, within their own window.

        Args:
            group: the sample.
            parts: a function from coordinates `[N, d]` to the parts of N elements.
            names: the coordinates; all of the group by default.
            circular: the names of angles in degrees, which have no window.

        Returns:
            The chart.
        """
        names = tuple(group.coords if names is None else names)
        start = np.stack([np.asarray(group.coords[name], float) for name in names], -1)
        endless = np.array([name in circular for name in names])
        low, high = start.min(0), start.max(0)
        steps = [
            _step(values, len(names), name in circular)
            for name, values in zip(names, start.T, strict=True)
        ]
        return cls(
            names,
            lambda coords, base: parts(coords),
            start,
            np.array(steps),
            np.where(endless, -np.inf, low),
            np.where(endless, np.inf, high),
            add=lambda coords, change: np.where(endless, (coords + change) % 360, coords + change),
        )

    def moved(self, coords: Array, change: Array) -> Array:
        """Return coordinates after a change in steps of the sample, kept within the window."""
        return np.clip(self.add(coords, change * self.step), self.low, self.high)

    def elements(self, coords: Array, base: Array) -> Elements:
        """Return the elements at coordinates `[N, d]`, which belong to sampled elements `[N]`."""
        return Elements(self.parts(coords, base), len(coords))


def _step(values: Array, dimension: int, circular: bool) -> float:
    """Return the distance of neighbors: on a grid along the axis, else by the number of points."""
    count = len(np.unique(values.round(9)))
    if dimension > 1 and count == len(values):  # scattered
        count = max(2, round(count ** (1 / dimension)))
    span = 360.0 if circular else float(np.ptp(values))
    return span / max(count if circular else count - 1, 1) or 1.0


CHARTS: dict[str, Callable[[Group], Chart]] = {}
Maker = TypeVar("Maker", bound=Callable[[Group], Chart])


def register_chart(name: str) -> Callable[[Maker], Maker]:
    """Add continuous coordinates to your own group; a decorator.

    `orbical.worst_case` then searches between its sampled elements.

    Args:
        name: the name of the group, the first word of its text.

    Returns:
        A decorator of a function from a group of that name to its `Chart`.

    Example:
        >>> from orbical.groups import Part, from_parts, register_part
        >>> register_part("unit", Part.factors("lengths"))
        >>> @register_chart("units")
        ... def units(group):
        ...     return Chart.of_grid(group, lambda coords: {"unit": coords[:, 0]})
        >>> group = from_parts("units:3", {"unit": [0.5, 1, 2]}, coords={"unit": [0.5, 1, 2]})
        >>> chart_of(group).low.tolist()
        [0.5]
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise InputError("name", "the name of a group such as 'boosts'", repr(name))

    def decorate(make: Maker) -> Maker:
        CHARTS[name] = make
        return make

    return decorate


def chart_of(group: Group) -> Chart | None:
    """Return the continuous coordinates of a group; None where it has none.

    Args:
        group: a sampled group, or a product of groups.

    Returns:
        The chart. Factors of a product that are finite are held at their elements.

    Example:
        >>> from orbical.groups import parse
        >>> chart_of(parse("cyclic:4")) is None
        True
        >>> chart_of(parse("rotations:8*time_reversal")).held
        ('time',)
    """
    if len(group) == 1:
        return None
    if "*" in group.spec:
        return _chart_of_product(group, group.spec)
    name, _, numbers = group.spec.partition(":")
    if name == "o3":
        return _chart_of_product(group, f"rotations3d:{numbers}*inversion")
    return CHARTS[name](group) if name in CHARTS else None


def _chart_of_product(group: Group, spec: str) -> Chart | None:
    """Return the charts of the factors side by side."""
    try:
        factors = [parse(text) for text in spec.split("*")]
    except InputError:  # a factor that its text does not define, such as given matrices
        return None
    charts = [chart_of(factor) for factor in factors]
    places = [_places(factor, group) for factor in factors]
    known = [
        replace(chart, start=chart.start[place])
        for chart, place in zip(charts, places, strict=True)
        if chart
    ]
    if not known:
        return None
    spans = _spans(known)

    def parts(coords: Array, base: Array) -> making.Parts:
        left, whole = iter(spans), Elements({}, len(coords))
        for factor, chart, place in zip(factors, charts, places, strict=True):
            at = place[base]
            each = factor[at] if chart is None else chart.elements(coords[:, next(left)], at)
            whole = whole.compose(each)
        return dict(whole.parts)

    held = (
        name
        for factor, chart in zip(factors, charts, strict=True)
        for name in (factor.coords if chart is None else chart.held)
    )
    return replace(_charts_side_by_side(known, parts), held=tuple(held))


def _spans(charts: Sequence[Chart]) -> list[slice]:
    """Return the columns of each of the charts where they stand side by side."""
    ends = np.cumsum([0, *(len(chart.names) for chart in charts)])
    return [slice(*pair) for pair in itertools.pairwise(ends)]


def _charts_side_by_side(
    charts: Sequence[Chart], parts: Callable[[Array, Array], making.Parts]
) -> Chart:
    """Return a chart that has the coordinates of all the charts of one sample."""
    spans = _spans(charts)

    def add(coords: Array, change: Array) -> Array:
        each = zip(charts, spans, strict=True)
        moved = [chart.add(coords[:, span], change[:, span]) for chart, span in each]
        return np.concatenate(moved, -1)

    start, step, low, high = (
        np.concatenate([getattr(chart, name) for chart in charts], -1)
        for name in ("start", "step", "low", "high")
    )
    names = tuple(name for chart in charts for name in chart.names)
    return Chart(names, parts, start, step, low, high, add)


def _places(factor: Group, group: Group) -> Array:
    """Return the index of each element of a product in one of its factors, by its coordinates."""
    rows = {row: place for place, row in enumerate(zip(*factor.coords.values(), strict=True))}
    whole = zip(*(group.coords[name] for name in factor.coords), strict=True)
    return np.array([rows[row] for row in whole])


def _of_window(group: Group, circular: Sequence[str] = ()) -> Chart:
    """Return the chart of a window of coordinates, without ends around a circle."""
    names = next(names for names in making.ELEMENTS_AT if {*names} == {*group.coords})
    make = making.ELEMENTS_AT[names]
    around = names if group.layout.kind == "circle" else circular
    return Chart.of_grid(group, lambda coords: make(*coords.T), names=names, circular=around)


def _by_factors(group: Group) -> Chart:
    """Return the chart of factors, which change by factors."""
    grid = _of_window(group)
    step = np.log(grid.high / grid.low) / max(len(group) - 1, 1)
    return replace(grid, step=step, add=lambda factor, change: factor * np.exp(change))


CHARTS |= dict.fromkeys(("rotations", "shear", "translations", "translations3d"), _of_window)
CHARTS |= dict.fromkeys(("affine", "hue", "shifts", "decibels", "semitones"), _of_window)
CHARTS |= dict.fromkeys(("euclidean", "se2"), partial(_of_window, circular=["angle"]))
CHARTS |= dict.fromkeys(("scales", "brightness", "gains", "speeds"), _by_factors)


@register_chart("se3")
def _se3(group: Group) -> Chart:
    """Return rotation vectors as of `rotations3d`, and shifts within the sampled window."""
    turns = _chart_of_rotations3d(group)
    shifts = Chart.of_grid(group, lambda coords: {}, names=["dx", "dy", "dz"])

    def parts(coords: Array, base: Array) -> making.Parts:
        return {"space": homogeneous(making.space_turns(coords[:, :3]).as_matrix(), coords[:, 3:])}

    return _charts_side_by_side([turns, shifts], parts)


@register_chart("homographies")
def _homographies(group: Group) -> Chart:
    focal = float(group.spec.split(":")[3])
    return Chart.of_grid(
        group, lambda coords: {"plane": making.camera_matrices(coords[:, 0], coords[:, 1], focal)}
    )


@register_chart("rotations3d")
@register_chart("so3_quadrature")
@register_chart("slices3d")
def _chart_of_rotations3d(group: Group) -> Chart:
    """Return rotation vectors in degrees, which change by small rotations after the one there.

    The step is the side of a cube whose volume is the share of one element in all rotations.
    """
    vectors = np.rad2deg(transform.Rotation.from_matrix(group.linear("space")).as_rotvec())
    side = np.rad2deg((8 * np.pi**2 / len(group)) ** (1 / 3))
    everywhere = np.full(3, np.inf)
    return Chart(
        ("rx", "ry", "rz"),
        lambda coords, base: {"space": homogeneous(making.space_turns(coords).as_matrix())},
        vectors,
        np.full(3, side),
        -everywhere,
        everywhere,
        add=_turned_on,
    )


@register_chart("sphere")
def _sphere(group: Group) -> Chart:
    """Return rotations about axes in the xy plane, which carry z to all directions."""

    def parts(coords: Array) -> making.Parts:
        axes = making.plane_turns(coords[:, 0])[:, :, 0]  # the x axis, turned by the azimuth
        turns = making.space_turns(np.pad(axes * coords[:, 1:], ((0, 0), (0, 1))))
        return {"space": homogeneous(turns.as_matrix())}

    return Chart.of_grid(group, parts, circular=["azimuth"])


def _turned_on(vector: Array, change: Array) -> Array:
    """Return rotation vectors after a further rotation."""
    return np.asarray(
        np.rad2deg((making.space_turns(change) * making.space_turns(vector)).as_rotvec())
    )
