"""Arranging the panels of a figure of orbits on a page."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ._orbit_layouts import LAYOUTS, CurveLayout, DrawnOrbit, SurfaceLayout
from .style import (
    CENTERED,
    COLUMN,
    INK,
    PAGE,
    SOFT,
    Look,
    figure,
    fitted_label,
    legend_of,
    readable_color,
    text_inches,
    wrapped_label,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

Array = np.ndarray
_SMALL = 1.3
"""Inches of a plot below which there is little room for text."""
_PLOTS_IN_A_ROW = 5
_PICTURED_PLOTS_IN_A_ROW = 3
_SURFACES_IN_A_ROW = 10
_LEAST_PLOT, _LEAST_PICTURED, _LEAST_SURFACE, _LEAST_OF_A_SERIES = 1.05, 2.2, 1.1, 0.55
"""The least width of a plot in inches: those that do not fit go into another row."""


@dataclass(frozen=True)
class Panel:
    """One orbit to draw: its title, the values of each model `[model, element]`, an image.

    `band` has, for each model, the ends of an interval and the value of a calibrated model,
    `[3, model, element]`.
    """

    title: str
    values: Array
    image: Array | None = None
    band: Array | None = None


@dataclass(frozen=True)
class Sheet:
    """Everything a figure of orbits draws."""

    orbit: DrawnOrbit
    models: list[str]
    colors: dict[str, str]
    lines: dict[str, str]
    panels: list[Panel]

    @property
    def pictured(self) -> bool:
        """Whether inputs are shown beside the plots."""
        return any(panel.image is not None for panel in self.panels)


def draw_sheet(sheet: Sheet, width: float | None = None) -> Figure:
    """Draw all panels in their layout, on a figure of the given width in inches."""
    layout = LAYOUTS[sheet.orbit.kind]
    if isinstance(layout, CurveLayout):
        return _panel_sheet_of_curves(sheet, layout, width)
    return _panel_sheet_of_surfaces(sheet, layout, width)


def show_picture(axes: Axes, pixels: Array, title: str = "", size: float = 8) -> None:
    """Show an image without ticks.

    Args:
        axes: the axes to draw on.
        pixels: gray values `[H, W]` or colors `[H, W, 3]`, in [0, 1].
        title: written above.
        size: the font size of the title.

    Example:
        >>> fig = figure(1, 1)
        >>> show_picture(fig.subplots(), np.eye(8), "diagonal")
    """
    axes.imshow(pixels, cmap="gray", vmin=0, vmax=1)
    axes.set_title(title, fontsize=size)
    frame_axes(axes)


def frame_axes(axes: Axes) -> None:
    """Replace the ticks of axes by a thin frame."""
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set(visible=True, color=SOFT, linewidth=0.5)


def _panel_sheet_of_curves(sheet: Sheet, layout: CurveLayout, given: float | None) -> Figure:
    """Draw one plot for each panel, with all models in it."""
    count, pictured = len(sheet.panels), sheet.pictured
    width = given or (PAGE if count > 1 else COLUMN + (1.2 if pictured else 0))
    most = _PICTURED_PLOTS_IN_A_ROW if pictured else _PLOTS_IN_A_ROW
    room = int(width / (_LEAST_PICTURED if pictured else _LEAST_PLOT))
    across = max(1, min(count, most, room))
    down = math.ceil(count / across)
    small = across > 2
    ratios = ([0.45, 1.0] if pictured else [1.0]) * across
    wide = len(ratios) // across
    plot = width / across / (1.45 if pictured else 1.0)
    names, columns = legend_of(sheet.models, width - 0.1)
    lines = math.ceil(len(names) / columns)
    fig = figure(width, down * (plot * layout.aspect + 0.25) + 0.5 + 0.17 * max(lines - 2, 0))
    grid = fig.add_gridspec(down, len(ratios), width_ratios=ratios)
    handles: dict[str, Line2D] = {}
    for place, panel in enumerate(sheet.panels):
        row, column = divmod(place, across)
        axes = fig.add_subplot(grid[row, wide * column + wide - 1], projection=layout.projection)
        layout.prepare(axes, sheet.orbit, small)
        for number, (model, values) in enumerate(zip(sheet.models, panel.values, strict=True)):
            color = sheet.colors[model]
            handles[model] = layout.draw(axes, sheet.orbit, values, color, sheet.lines[model])
            if panel.band is not None:
                along = handles[model].get_xdata()
                low, high, calibrated = panel.band[:, number, layout.order(sheet.orbit)]
                axes.fill_between(along, low, high, color=color, alpha=0.2, linewidth=0)
                axes.plot(along, calibrated, ":", color=color, linewidth=0.9)
        size = 8 if small else 9
        axes.set_title(fitted_label(panel.title, plot, size), fontsize=size)
        if layout.projection is None:
            axes.tick_params(labelleft=column == 0 or pictured)
            if place + across < count:
                axes.set_xlabel("")
        if panel.image is not None:
            show_picture(fig.add_subplot(grid[row, wide * column]), panel.image)
    if [*handles] != [""]:
        fig.legend(handles.values(), names, loc="outside upper center", ncols=columns)
    banded = any(panel.band is not None for panel in sheet.panels)
    _write_caption(fig, layout.caption(sheet.orbit, small) + [sheet.orbit.band] * banded)
    return fig


@dataclass(frozen=True)
class _PanelRow:
    """A row of colored plots: its label and image, and the title and values of each plot."""

    plots: list[tuple[str, str, Array]]
    label: str = ""
    color: str = INK
    image: Array | None = None
    image_title: str = ""
    titled: bool = False


def _rows_of_panels(sheet: Sheet, parts: int, width: float) -> list[_PanelRow]:
    """Arrange panels and models in rows.

    A model that needs several plots has its own row. Otherwise models are next to each other, and a
    series of panels runs to the right with a row for each model.
    """
    colors = [sheet.colors[model] for model in sheet.models]
    plots = [list(zip(sheet.models, colors, panel.values, strict=True)) for panel in sheet.panels]
    if parts > 1:
        return [
            _PanelRow(
                [("", INK, values)],
                model if sheet.pictured else "\n".join(filter(None, (panel.title, model))),
                color,
                panel.image if number == 0 else None,
                panel.title,
            )
            for panel, of_panel in zip(sheet.panels, plots, strict=True)
            for number, (model, color, values) in enumerate(of_panel)
        ]
    series = min(_SURFACES_IN_A_ROW, int((width - 1.25) / _LEAST_OF_A_SERIES))
    if sheet.pictured or len(sheet.panels) == 1 or len(sheet.panels) > series:
        rows = [
            _PanelRow(
                of_panel, "" if sheet.pictured else panel.title, INK, panel.image, panel.title
            )
            for panel, of_panel in zip(sheet.panels, plots, strict=True)
        ]
        room = (width - 1.0) / _LEAST_SURFACE
        across = max(1, int(room / 0.75 - 0.6 if sheet.pictured else room))
        return [part for row in rows for part in _split_row_of_panels(row, across)]
    return [
        _PanelRow(
            [(panel.title, INK, panel.values[number]) for panel in sheet.panels], model, color
        )
        for number, (model, color) in enumerate(zip(sheet.models, colors, strict=True))
    ]


def _split_row_of_panels(row: _PanelRow, across: int) -> list[_PanelRow]:
    """Break a row that is too long into several of about equal length."""
    count = len(row.plots)
    lines = math.ceil(count / across)
    if lines == 1:
        return [row]
    each = math.ceil(count / lines)
    parts = [row.plots[start : start + each] for start in range(0, count, each)]
    first = replace(row, plots=parts[0], titled=True)
    return [first, *(_PanelRow(part, titled=True) for part in parts[1:])]


def _panel_sheet_of_surfaces(sheet: Sheet, layout: SurfaceLayout, given: float | None) -> Figure:
    """Draw one plot for each panel and model, all on one color scale."""
    parts = layout.panels(sheet.orbit)
    several = len(parts) * max(len(sheet.models), len(sheet.panels)) > 1 or sheet.pictured
    width = given or (PAGE if several else COLUMN + 0.6)
    rows = _rows_of_panels(sheet, len(parts), width)
    columns = len(rows[0].plots) * len(parts)
    labeled, pictured = any(row.label for row in rows), sheet.pictured
    aside = 1.0 + 0.25 * labeled + layout.margin(sheet.orbit)
    side = max(width - aside, 0.5) / (columns + 0.6 * pictured)
    small = (columns > 2 or side < _SMALL) and len(parts) == 1
    high = side * layout.aspect(sheet.orbit)
    label_size = 9 if high > 0.9 else 8
    labels = [fitted_label(row.label, high + 0.25, label_size) if row.label else "" for row in rows]
    margin = 0.22 + 0.16 * any("\n" in label for label in labels)
    ratios = [0.6] * pictured + [margin / side] * labeled + [1.0] * columns
    titles = 0.2 * sum(row.titled for row in rows[1:])
    fig = figure(width, max(2.0, len(rows) * (high + 0.12) + titles + 0.6))
    size = 9 if not small and side > _SMALL else 8 if side > 0.9 else 7
    grid = fig.add_gridspec(len(rows), len(ratios), width_ratios=ratios)
    first = labeled + pictured
    drawn: list[Axes] = []
    broken = False
    for number, row in enumerate(rows):
        if row.label:
            name = fig.add_subplot(grid[number, int(pictured)])
            name.set_axis_off()
            look: Look = {"color": readable_color(row.color), "weight": "bold", **CENTERED}
            name.text(0.5, 0.5, labels[number], rotation=90, size=label_size, **look)
        if row.image is not None:
            below = number + (len(sheet.models) if len(parts) > 1 else 1)
            axes = fig.add_subplot(grid[number:below, 0])
            of_image = 8 if side > 1 else 6
            lines = row.image_title.split(", ", 1)  # a narrow column
            words = "\n".join(fitted_label(line, 0.6 * side, of_image) for line in lines)
            show_picture(axes, row.image, words, of_image)
        for place, (title, color, values) in enumerate(row.plots):
            cells = range(first + place * len(parts), first + (place + 1) * len(parts))
            spots = (grid[number, cell] for cell in cells)
            plots = [fig.add_subplot(spot, projection=layout.projection) for spot in spots]
            image = layout.draw(plots, sheet.orbit, values, small)
            drawn += plots
            for axes, part in zip(plots, parts, strict=True):
                if number == 0 or row.titled:
                    words = fitted_label(title, 0.85 * side, size) if title else part
                    broken = broken or "\n" in words
                    axes.set_title(words, color=readable_color(color), fontsize=size)
                if layout.projection is None:
                    following = rows[number + 1].plots if number + 1 < len(rows) else []
                    _label_outer(axes, place == 0, place >= len(following))
    bar = fig.colorbar(image, ax=drawn, fraction=0.04, pad=0.02, shrink=0.9, aspect=25)
    room = max(24, int(fig.get_figheight() * 13))
    said = [textwrap.fill(text.strip(), room) for text in (sheet.orbit.meaning, sheet.orbit.better)]
    bar.set_label("\n".join(filter(None, said)))
    bar.outline.set_visible(False)
    _write_caption(fig, layout.caption)
    fig.set_figheight(fig.get_figheight() + 0.16 * broken)
    return fig


def _label_outer(axes: Axes, left: bool, bottom: bool) -> None:
    """Remove the labels that the plot to the left, or below, has already."""
    axes.tick_params(labelleft=left, labelbottom=bottom)
    if not left:
        axes.set_ylabel("")
    if not bottom:
        axes.set_xlabel("")


def _write_caption(fig: Figure, parts: list[str]) -> None:
    """Write the caption below, on one line if it fits."""
    line, room = " · ".join(parts), fig.get_figwidth() - 0.1
    if line and text_inches(line, 7) > room:
        line = "\n".join(wrapped_label(part, room, 7) for part in parts)
    if line:
        fig.supxlabel(line, fontsize=7, color=SOFT)
