"""Drawing one orbit: a function for each layout, from numbers to axes.

Circles and lines show the curves of several models at once; planes, slices, balls and tiles are
colored, so each model has its own panel. A new layout is one entry in `LAYOUTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._text import on_scale, plain
from .style import CENTERED, FAINT, INK, SEQUENTIAL, SOFT, Look, shortened_label, text_inches

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.lines import Line2D
    from matplotlib.projections.polar import PolarAxes

Array = np.ndarray


@dataclass(frozen=True)
class DrawnOrbit:
    """The description of an orbit that its drawing needs besides the numbers.

    `index` maps drawing cells to elements, `axes` names the axes of `index` with their values,
    `coords` names the elements, `identity` is the identity element. `meaning` describes the values,
    and `better` their direction, if known; `band` what is drawn around a curve.
    """

    kind: str
    index: Array
    axes: Mapping[str, Array]
    coords: Mapping[str, Array]
    identity: int
    meaning: str
    better: str
    limits: tuple[float, float]
    band: str = "band: interval of the error; dotted: a calibrated model"


@dataclass(frozen=True)
class CurveLayout:
    """A layout on which several models are curves: `draw(axes, orbit, values, color, line)`.

    `order` is the element at each point of a curve.
    """

    prepare: Callable[[Any, DrawnOrbit, bool], None]
    draw: Callable[[Axes, DrawnOrbit, Array, str, str], Line2D]
    caption: Callable[[DrawnOrbit, bool], list[str]]
    order: Callable[[DrawnOrbit], Array]
    projection: str | None = None
    aspect: float = 1.0


@dataclass(frozen=True)
class SurfaceLayout:
    """A layout on which a model is colored cells: `draw(axes, orbit, values, small)`.

    `panels` names the axes that one model needs, `aspect` is the height of one over its width, and
    `margin` the inches of text to the left of the first in a row.
    """

    draw: Callable[[Sequence[Any], DrawnOrbit, Array, bool], ScalarMappable]
    caption: list[str]
    panels: Callable[[DrawnOrbit], list[str]] = lambda orbit: [""]
    projection: str | None = None
    aspect: Callable[[DrawnOrbit], float] = lambda orbit: 1.0
    margin: Callable[[DrawnOrbit], float] = lambda orbit: 0.0


def _color_scale(orbit: DrawnOrbit) -> Look:
    """Return the color scale of an orbit, the same for every panel of a figure.

    What is good has one color, as in the view: where lower is better the map is reversed.
    """
    colors = f"{SEQUENTIAL}_r" if "lower is better" in orbit.better else SEQUENTIAL
    return {"cmap": colors, "vmin": orbit.limits[0], "vmax": orbit.limits[1]}


def _rings(orbit: DrawnOrbit, small: bool) -> Array:
    """Return round values for the rings of a polar plot."""
    from matplotlib.ticker import MaxNLocator

    low, high = orbit.limits
    locator = MaxNLocator(2 if small else 4, steps=[1, 2, 2.5, 5, 10])
    rings = np.asarray(locator.tick_values(low, high))
    return rings[(rings > low) & (rings <= high)]


def _prepare_circle(axes: PolarAxes, orbit: DrawnOrbit, small: bool) -> None:
    """Set up polar axes: zero upwards and counter-clockwise, as the top of an image rotates."""
    low, high = orbit.limits
    axes.set_theta_zero_location("N")
    axes.set_ylim(low, high + 0.03 * (high - low))  # a curve on the rim keeps its full width
    axes.set_thetagrids(range(0, 360, 90 if small else 45))
    axes.set_rgrids(_rings(orbit, small), angle=22.5)
    axes.tick_params(axis="x", pad=0, colors=SOFT, labelbottom=not small)
    axes.tick_params(axis="y", labelsize=6.5, colors=SOFT, labelleft=not small)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.spines["polar"].set_visible(False)


def _draw_circle(axes: Axes, orbit: DrawnOrbit, values: Array, color: str, line: str) -> Line2D:
    angle = np.deg2rad(orbit.axes["angle"])
    around = np.append(angle, angle[0] + 2 * np.pi)
    return axes.plot(around, values[_closed(orbit)], line, color=color)[0]


def _closed(orbit: DrawnOrbit) -> Array:
    return np.append(orbit.index, orbit.index[0])


def _circle_caption(orbit: DrawnOrbit, small: bool) -> list[str]:
    rings = " and ".join(f"{ring:g}" for ring in _rings(orbit, small))
    radius = f"radius: {orbit.meaning}{orbit.better}" + f", rings at {rings}" * small
    turned = "rotation" if "angle" in orbit.coords else next(iter(orbit.coords), "rotation")
    return [radius, f"angle: {turned}, counter-clockwise from the top"]


def _prepare_line(axes: Axes, orbit: DrawnOrbit, small: bool) -> None:
    ((name, places),) = orbit.axes.items()
    axes.grid(True)
    axes.set_ylim(*_padded(orbit.limits))
    if (places > 0).all() and _is_geometric(places):
        from matplotlib.ticker import NullLocator

        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_minor_locator(NullLocator())
    axes.axvline(places[np.flatnonzero(orbit.index == orbit.identity)[0]], color=SOFT, lw=0.8)
    axes.set_xlabel(name)


def _draw_line(axes: Axes, orbit: DrawnOrbit, values: Array, color: str, line: str) -> Line2D:
    (places,) = orbit.axes.values()
    return axes.plot(places, values[orbit.index], line, color=color, marker="o", markersize=2.5)[0]


def _line_caption(orbit: DrawnOrbit, small: bool) -> list[str]:
    return [f"height: {orbit.meaning}{orbit.better}", "vertical line: the identity"]


def _is_geometric(places: Array) -> bool:
    """Check whether the places have equal ratios rather than equal steps."""
    steps, ratios = np.diff(places), np.diff(np.log(places))
    return len(places) > 2 and bool(np.ptp(ratios) < np.ptp(steps))


def _padded(limits: tuple[float, float]) -> tuple[float, float]:
    room = 0.03 * (limits[1] - limits[0])
    return limits[0] - room, limits[1] + room


def _draw_plane(
    axes: Sequence[Axes], orbit: DrawnOrbit, values: Array, small: bool
) -> ScalarMappable:
    (panel,) = axes
    (vertical, rows), (across, columns) = orbit.axes.items()
    extent = (*_edges(columns)[[0, -1]], *_edges(rows)[[-1, 0]])
    image = panel.imshow(values[orbit.index], extent=extent, **_color_scale(orbit))
    row, column = np.argwhere(orbit.index == orbit.identity)[0]
    for width, color in ((2.4, "black"), (1.2, "white")):  # seen on dark and on light cells
        panel.plot(columns[column], rows[row], "+", color=color, mew=width, ms=7 - 2 * small)
    panel.set_xlabel(across)
    panel.set_ylabel(vertical)
    panel.locator_params(nbins=3 if small else 5)
    return image


def _edges(centers: Array) -> Array:
    """Return the borders of cells from their centers."""
    if len(centers) == 1:
        return np.array([centers[0] - 0.5, centers[0] + 0.5])
    inner = (centers[1:] + centers[:-1]) / 2
    return np.concatenate([[2 * centers[0] - inner[0]], inner, [2 * centers[-1] - inner[-1]]])


def _draw_slices(
    axes: Sequence[PolarAxes], orbit: DrawnOrbit, values: Array, small: bool
) -> ScalarMappable:
    azimuth, angle = (orbit.axes[name] for name in ("azimuth", "angle"))
    borders = np.clip(_edges(angle), angle[0], angle[-1])
    for number, panel in enumerate(axes):
        cells = values[orbit.index[number]].T
        look: Look = {"rasterized": True, **_color_scale(orbit)}
        image = panel.pcolormesh(np.deg2rad(_edges(azimuth)), borders, cells, **look)
        across, up = list(str(orbit.axes["plane"][number]))
        panel.set_thetagrids([0, 90, 180, 270], [across, up, f"-{across}", f"-{up}"])
        panel.tick_params(axis="x", pad=-2, colors=SOFT)
        panel.set_rgrids([90, 180], ["90°", "180°"], angle=45, color="white", fontsize=6)
        panel.grid(True, color="white", alpha=0.5)
        panel.spines["polar"].set_color(FAINT)
    return image


def _draw_ball(
    axes: Sequence[Any], orbit: DrawnOrbit, values: Array, small: bool
) -> ScalarMappable:
    """Draw rotation vectors in space, with the front quarter cut out to show the inside."""
    (panel,) = axes
    names = ("rx", "ry", "rz")
    places = np.stack([np.asarray(orbit.coords[name], float) for name in names], -1)
    shown = orbit.index[~((places[orbit.index, 0] > 0) & (places[orbit.index, 1] < 0))]
    panel.set_facecolor("none")  # else it would cover the text of its neighbor
    panel.view_init(elev=25, azim=-45)  # from where rx > 0 and ry < 0
    look: Look = {"s": 6 if small else 14, "depthshade": False, "lw": 0, **_color_scale(orbit)}
    points: ScalarMappable = panel.scatter(*places[shown].T, c=values[shown], **look)
    for name in names:
        axis = name[-1]
        panel.set(**{f"{axis}lim": (-180, 180), f"{axis}ticks": [-90, 0, 90]})
        getattr(panel, f"set_{axis}label")(name, labelpad=-8)
        panel.tick_params(axis=axis, pad=-3, labelsize=6)
        getattr(panel, f"{axis}axis").pane.set_alpha(0.0)
    panel.set_box_aspect((1, 1, 1), zoom=0.8 if small else 0.86)  # with room for the labels
    return points


def _draw_tiles(
    axes: Sequence[Axes], orbit: DrawnOrbit, values: Array, small: bool
) -> ScalarMappable:
    (panel,) = axes
    index = _orbit_tiles(orbit.index)
    cells = np.where(index >= 0, values[index], np.nan)
    image = panel.imshow(cells, **_color_scale(orbit))
    rows, columns, inside = _tile_names(orbit, index)
    for axis, ticks, label in ((panel.yaxis, *rows), (panel.xaxis, *columns)):
        crowded = len(ticks) > (6 if small else 12)
        axis.set_ticks([] if crowded else range(len(ticks)), labels=None if crowded else ticks)
        axis.set_label_text(label)
    if sum(map(len, columns[0])) > (24 if small else 48):  # side by side they would overlap
        panel.tick_params(axis="x", rotation=90)
    panel.tick_params(length=0, labelsize=6 if small else 7)
    panel.spines[:].set_visible(False)
    for draw_line, count in ((panel.axhline, len(index)), (panel.axvline, index.shape[1])):
        for border in np.arange(1, count) - 0.5:
            draw_line(border, color="white", lw=1.2)
    if index.size <= 64 and not small:
        size = 6 if index.shape[1] > 4 else 7
        if max(map(len, inside)) * index.shape[1] > _MOST_LETTERS:  # they would run into each other
            inside = [""] * len(inside)
        for (row, column), element in np.ndenumerate(index):
            if element >= 0 and np.isfinite(values[element]):
                said = on_scale(values[element], max(map(abs, orbit.limits)))
                words = "\n".join(filter(None, [inside[element], said]))
                color = _readable_on(image.to_rgba(values[element]))
                panel.text(column, row, words, fontsize=size, color=color, **CENTERED)
    return image


_MOST_IN_A_TICK = 24
_MOST_LETTERS = 72
"""Side by side in the tiles of a row."""


def _tiles_aspect(orbit: DrawnOrbit) -> float:
    rows, columns = _orbit_tiles(orbit.index).shape
    return float(np.clip(rows / columns, 0.3, 2.0))


def _tiles_margin(orbit: DrawnOrbit) -> float:
    (words, name), *_ = _tile_names(orbit, _orbit_tiles(orbit.index))
    longest = max((text_inches(word, 7) for word in words), default=0.0)
    return longest + 0.15 * bool(name)


def _orbit_tiles(index: Array) -> Array:
    """Wrap a long row, and blank (-1) the cells that repeat an element to fill the table."""
    flat = index.reshape(-1)
    columns = index.shape[1]
    if len(index) == 1 and columns > 12:
        columns = int(np.ceil(np.sqrt(columns)))
    firsts = np.zeros(-(-len(flat) // columns) * columns, bool)
    firsts[np.unique(flat, return_index=True)[1]] = True
    padded = np.pad(flat, (0, len(firsts) - len(flat)))
    return np.where(firsts, padded, -1).reshape(-1, columns)


_Ticks = tuple[list[str], str]
"""Tick labels and an axis label."""


def _tile_names(orbit: DrawnOrbit, index: Array) -> tuple[_Ticks, _Ticks, list[str]]:
    """Name rows and columns by the coordinates they share, and elements by the others."""
    by_row: dict[str, Array] = {}
    by_column: dict[str, Array] = {}
    inside: list[list[str]] = [[] for _ in range(int(index.max()) + 1)]
    for name, values in orbit.coords.items():
        table = np.asarray(values)[np.maximum(index, 0)]
        if len(table) > 1 and (table == table[:, :1]).all():
            by_row[name] = table[:, 0]
        elif table.shape[1] > 1 and (table == table[:1]).all():
            by_column[name] = table[0]
        else:
            for element, value in enumerate(values[: len(inside)]):
                inside[element].append(plain(value))
    rows, columns = _tile_ticks(by_row, len(index)), _tile_ticks(by_column, index.shape[1])
    return rows, columns, [" ".join(words) for words in inside]


def _tile_ticks(named: dict[str, Array], count: int) -> _Ticks:
    """Return tick labels and an axis label: the name of a single coordinate labels the axis."""
    if len(named) == 1:
        ((name, values),) = named.items()
        return [shortened_label(plain(value), _MOST_IN_A_TICK) for value in values], name
    columns = [
        [
            plain(value) if values.dtype.kind in "US" else f"{name} {plain(value)}"
            for value in values
        ]
        for name, values in named.items()
    ]
    texts = [", ".join(words) for words in zip(*columns, strict=True)] or [""] * count
    return [shortened_label(text, _MOST_IN_A_TICK) for text in texts], ""


def _readable_on(color: Array) -> str:
    red, green, blue = color[:3]
    return INK if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"


LAYOUTS: dict[str, CurveLayout | SurfaceLayout] = {
    "circle": CurveLayout(_prepare_circle, _draw_circle, _circle_caption, _closed, "polar"),
    "line": CurveLayout(
        _prepare_line, _draw_line, _line_caption, lambda orbit: orbit.index, aspect=0.72
    ),
    "plane": SurfaceLayout(_draw_plane, ["cross: the identity"]),
    "slices": SurfaceLayout(
        _draw_slices,
        ["direction: axis of rotation", "radius: its angle, 0° to 180°"],
        lambda orbit: [f"axis in {plane}" for plane in orbit.axes["plane"]],
        "polar",
    ),
    "ball": SurfaceLayout(
        _draw_ball,
        ["place: axis of rotation times its angle, in degrees", "the front quarter is cut out"],
        projection="3d",
    ),
    "tiles": SurfaceLayout(_draw_tiles, [], aspect=_tiles_aspect, margin=_tiles_margin),
}
