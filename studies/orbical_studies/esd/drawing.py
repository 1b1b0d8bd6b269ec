"""What the figures of the study share: a style for each loss, panels, and a key."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from orbical.figures import PAGE, figure

# Okabe and Ito's colors, which most readers can tell apart; a marker for those who cannot.
STYLE = {
    "NLL": ("#222222", "o"),
    "MMCE": ("#E69F00", "s"),
    "SB-ECE": ("#56B4E9", "^"),
    "ESD": ("#D55E00", "D"),
    "S-AvUC": ("#009E73", "v"),
    "ECE": ("#CC79A7", "P"),
}


def panels(rows: int, columns: int, height: float, **shared: Any) -> tuple[Figure, Any]:
    """Make a figure of panels with grids."""
    made = figure(PAGE, height)
    panels = made.subplots(rows, columns, squeeze=False, **shared)
    for axes in panels.flat:
        axes.grid(visible=True)
    return made, panels


def legend_below(fig: Figure, axes: Any) -> None:
    """Put the key of one of the panels below all of them."""
    handles, names = axes.get_legend_handles_labels()
    fig.legend(handles, names, loc="outside lower center", ncols=len(names))


def line(axes: Any, rows: pd.DataFrame, along: str, column: str, loss: str) -> None:
    """Draw means over seeds along a column, with a band of their standard deviation."""
    values = 100 * rows.groupby(along)[column].agg(["mean", "std"]).fillna(0.0)
    color, marker = STYLE[loss]
    axes.plot(values["mean"], color=color, marker=marker, markersize=3.5, label=loss)
    low, high = (values["mean"] - values["std"]).clip(0), values["mean"] + values["std"]
    axes.fill_between(values.index, low, high, color=color, alpha=0.15, linewidth=0)
