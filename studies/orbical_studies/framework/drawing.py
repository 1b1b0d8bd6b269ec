"""How reports draw; `Study.figures` has entered `orbical.figures.styled` before it asks them to."""

from __future__ import annotations

from typing import Any, Literal

from matplotlib.figure import Figure

from orbical.figures import PAGE, figure


def subplots(
    rows: int,
    columns: int,
    height: float,
    width: float = PAGE,
    grid: Literal["x", "y", "both"] | None = None,
    **options: Any,
) -> tuple[Figure, Any]:
    """Make a figure of some inches and its panels, as matplotlib's `subplots` makes them.

    Args:
        rows: Of panels.
        columns: Of panels.
        height: In inches.
        width: In inches.
        grid: The axis whose grid lines all panels have.
        options: Of matplotlib's `subplots`.
    """
    fig = figure(width, height)
    panels = fig.subplots(rows, columns, **options)
    if grid is not None:
        for axes in fig.axes:
            axes.grid(visible=True, axis=grid)
    return fig, panels


def legend_outside(axes: Any, place: str = "lower center", **look: Any) -> None:
    """Put the key of one of the panels outside of all of them, in one line unless `ncols` is given.

    Args:
        axes: The panel.
        place: Where, as matplotlib names it.
        look: Further options of matplotlib's legend.
    """
    handles, names = axes.get_legend_handles_labels()
    axes.figure.legend(handles, names, loc=f"outside {place}", **{"ncols": len(names), **look})
