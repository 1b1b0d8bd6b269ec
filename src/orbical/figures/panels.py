"""How the panels of a figure of orbits are arranged on a page."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .layouts import LAYOUTS, Curves, Orbit, Surface
from .style import COLUMN, INK, PAGE, SOFT, figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = np.ndarray
_PLOTS_IN_A_ROW = 5
_PICTURED_PLOTS_IN_A_ROW = 3
_SURFACES_IN_A_ROW = 10


@dataclass(frozen=True)
class Panel:
    """One orbit to draw: its title, the values of each model `[model, element]`, an image."""

    title: str
    values: Array
    image: Array | None = None


@dataclass(frozen=True)
class Sheet:
    """Everything a figure of orbits draws."""

    orbit: Orbit
    models: list[str]
    colours: dict[str, str]
    lines: dict[str, str]
    panels: list[Panel]

    @property
    def pictured(self) -> bool:
        """Whether inputs are shown beside the plots."""
        return any(panel.image is not None for panel in self.panels)


def draw_sheet(sheet: Sheet) -> Figure:
    """Draw all panels as the layout says."""
    layout = LAYOUTS[sheet.orbit.kind]
    return _curves(sheet, layout) if isinstance(layout, Curves) else _surfaces(sheet, layout)


def show_picture(axes: Any, pixels: Array, title: str = "") -> None:
    """Show an input without axes."""
    axes.imshow(pixels, cmap="gray", vmin=0, vmax=1)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set(visible=True, color=SOFT, linewidth=0.5)
    axes.set_title(title, fontsize=8)


def _curves(sheet: Sheet, layout: Curves) -> Figure:
    """Draw one plot a panel, all models in it."""
    count, pictured = len(sheet.panels), sheet.pictured
    across = min(count, _PICTURED_PLOTS_IN_A_ROW if pictured else _PLOTS_IN_A_ROW)
    down = math.ceil(count / across)
    small = across > 2
    width = PAGE if across > 1 else COLUMN + (1.2 if pictured else 0)
    ratios = ([0.45, 1.0] if pictured else [1.0]) * across
    wide = len(ratios) // across
    plot = width / across / (1.45 if pictured else 1.0)
    fig = figure(width, down * (plot * layout.aspect + 0.25) + 0.5)
    grid = fig.add_gridspec(down, len(ratios), width_ratios=ratios)
    handles: dict[str, Any] = {}
    for place, panel in enumerate(sheet.panels):
        row, column = divmod(place, across)
        axes = fig.add_subplot(grid[row, wide * column + wide - 1], projection=layout.projection)
        layout.prepare(axes, sheet.orbit, small)
        for model, values in zip(sheet.models, panel.values, strict=True):
            handles[model] = layout.draw(
                axes, sheet.orbit, values, sheet.colours[model], sheet.lines[model]
            )
        axes.set_title(panel.title, fontsize=8 if small else 9)
        if layout.projection is None:
            axes.tick_params(labelleft=column == 0 or pictured)
            if place + across < count:
                axes.set_xlabel("")
        if panel.image is not None:
            show_picture(fig.add_subplot(grid[row, wide * column]), panel.image)
    if [*handles] != [""]:
        fig.legend(
            handles.values(),
            handles,
            loc="outside upper center",
            ncols=min(len(handles), 4 if width > COLUMN else 2),
        )
    _write_caption(fig, layout.caption(sheet.orbit, small))
    return fig


@dataclass(frozen=True)
class _Row:
    """A row of coloured plots: what stands before it, and the title and values of each plot."""

    label: str
    colour: str
    image: Array | None
    image_title: str
    plots: list[tuple[str, str, Array]]


def _rows(sheet: Sheet, parts: int) -> list[_Row]:
    """Arrange panels and models in rows.

    A model that needs several plots has a row of its own. Otherwise models stand side by side, and
    a series of panels runs to the right with the models below each other.
    """
    colours = [sheet.colours[model] for model in sheet.models]
    if parts > 1:
        return [
            _Row(
                model if sheet.pictured else _joined(panel.title, model),
                colour,
                panel.image if number == 0 else None,
                panel.title,
                [("", INK, values)],
            )
            for panel in sheet.panels
            for number, (model, colour, values) in enumerate(
                zip(sheet.models, colours, panel.values, strict=True)
            )
        ]
    if sheet.pictured or len(sheet.panels) == 1 or len(sheet.panels) > _SURFACES_IN_A_ROW:
        return [
            _Row(
                "" if sheet.pictured else panel.title,
                INK,
                panel.image,
                panel.title,
                list(zip(sheet.models, colours, panel.values, strict=True)),
            )
            for panel in sheet.panels
        ]
    return [
        _Row(
            model,
            colour,
            None,
            "",
            [(panel.title, INK, panel.values[number]) for panel in sheet.panels],
        )
        for number, (model, colour) in enumerate(zip(sheet.models, colours, strict=True))
    ]


def _surfaces(sheet: Sheet, layout: Surface) -> Figure:
    """Draw one plot a panel and model, all in one scale of colours."""
    parts = layout.panels(sheet.orbit)
    rows = _rows(sheet, len(parts))
    columns = len(rows[0].plots) * len(parts)
    small = columns > 2 and len(parts) == 1
    labelled, pictured = any(row.label for row in rows), sheet.pictured
    width = PAGE if columns > 1 or pictured else COLUMN + 0.6
    side = (width - 1.0 - 0.25 * labelled) / (columns + 0.6 * pictured)
    ratios = [0.22 / side] * labelled + [0.6] * pictured + [1.0] * columns
    fig = figure(width, max(2.0, len(rows) * (side * layout.aspect(sheet.orbit) + 0.12) + 0.6))
    grid = fig.add_gridspec(len(rows), len(ratios), width_ratios=ratios)
    first = labelled + pictured
    drawn: list[Any] = []
    for number, row in enumerate(rows):
        if row.label:
            _write_label(fig.add_subplot(grid[number, 0]), row.label, row.colour)
        if row.image is not None:
            below = number + (len(sheet.models) if len(parts) > 1 else 1)
            axes = fig.add_subplot(grid[number:below, int(labelled)])
            show_picture(axes, row.image, row.image_title.replace(", ", "\n"))  # a narrow column
        for place, (title, colour, values) in enumerate(row.plots):
            cells = range(first + place * len(parts), first + (place + 1) * len(parts))
            plots = [
                fig.add_subplot(grid[number, cell], projection=layout.projection) for cell in cells
            ]
            image = layout.draw(plots, sheet.orbit, values, small)
            drawn += plots
            for axes, part in zip(plots, parts, strict=True):
                if number == 0:
                    axes.set_title(title or part, color=colour, fontsize=8 if small else 9)
                if layout.projection is None:
                    _label_outer(axes, place == 0, number == len(rows) - 1)
    bar = fig.colorbar(image, ax=drawn, fraction=0.04, pad=0.02, shrink=0.9, aspect=25)
    meaning = textwrap.fill(sheet.orbit.meaning, max(24, int(fig.get_figheight() * 13)))
    bar.set_label("\n".join(filter(None, [meaning, sheet.orbit.better.strip()])))
    bar.outline.set_visible(False)
    _write_caption(fig, layout.caption)
    return fig


def _label_outer(axes: Any, left: bool, bottom: bool) -> None:
    """Leave out what the plot to the left, or below, says already."""
    axes.tick_params(labelleft=left, labelbottom=bottom)
    if not left:
        axes.set_ylabel("")
    if not bottom:
        axes.set_xlabel("")


def _write_label(axes: Any, text: str, colour: str) -> None:
    axes.set_axis_off()
    axes.text(
        0.5, 0.5, text, rotation=90, ha="center", va="center", color=colour, weight="bold", size=9
    )


def _write_caption(fig: Figure, parts: list[str]) -> None:
    """Write the small print below, on one line where it fits."""
    line = " · ".join(parts)
    fits = len(line) <= fig.get_figwidth() * 17
    if line:
        fig.supxlabel(line if fits else "\n".join(parts), fontsize=7, color=SOFT)


def _joined(first: str, second: str) -> str:
    return "\n".join(word for word in (first, second) if word)
