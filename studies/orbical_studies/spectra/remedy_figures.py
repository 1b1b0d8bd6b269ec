"""Figures of means by squared error beside the paper's training, from finished rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .figures import COLOURS, band
from .learning import exponent, extended, learning_rows
from .numbers import Data, chosen
from .settings import (
    LIKELIHOOD,
    NETWORKS,
    PAPER_MOLECULES,
    PAPER_R2,
    PENALTY,
    SQUARES,
    STEERABLE,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVELS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Ticks of what is not explained."""


def remedy_figure(data: Data) -> Figure:
    """Draw error, bleed and share called noise at each wavenumber, before and after."""
    from orbical.figures.style import MODELS, PAGE, SOFT, figure, styled

    ways = {LIKELIHOOD: ("means by likelihood", SOFT), SQUARES: ("by squared error", MODELS[0])}
    names = {
        "mse": "mean squared error",
        "typical": "typical bleed",
        "noise_share": "share of the variance that is called noise",
    }
    with styled():
        fig = figure(PAGE, 5.4)
        panels = dict(zip(names, fig.subplots(3, 1, sharex=True), strict=True))
        for means, (label, colour) in ways.items():
            rows = chosen(data["wavenumbers"], STEERABLE, PENALTY, means=means)
            x = np.array(sorted({row["wavenumber"] for row in rows}))
            for name, ax in panels.items():
                band(ax, x, rows, name, color=colour, label=label)
        for name, ax in panels.items():
            ax.set_title(names[name], loc="left")
            ax.grid()
        panels["mse"].set(ylim=(0, None), ylabel="squared error")
        panels["typical"].set(yscale="log", ylabel="bleed")
        panels["noise_share"].set(ylim=(0, None), ylabel="share", xlabel="wavenumber (cm⁻¹)")
        handles = panels["mse"].get_legend_handles_labels()
        fig.legend(*handles, loc="outside upper right", ncols=2)
    return fig


def learning_figure(data: Data) -> Figure:
    """Draw what is not explained against the number of molecules, and the power law beyond."""
    from orbical.figures.style import MODELS, PAGE, SOFT, figure, styled

    with styled():
        fig = figure(PAGE, 2.9)
        ax = fig.subplots()
        for network in reversed(NETWORKS):
            rows, colour = learning_rows(data, network), MODELS[COLOURS[network]]
            x = np.array([row["train"] for row in rows])
            y = 1 - np.array([row["r2_median"] for row in rows])
            ax.plot(x, y, "o-", ms=4, color=colour, label=network)
            if len(rows) > 1:
                beyond = np.geomspace(x[-1], PAPER_MOLECULES, 20)
                power = exponent(*rows[-2:])
                line = [1 - extended(rows[-1], power, count) for count in beyond]
                ax.plot(beyond, line, ":", lw=1.1, color=colour)
            before = [1 - row["r2_median"] for row in chosen(data["results"], network, PENALTY)]
            ax.plot([x[-1]] * len(before), before, "x", ms=4, color=colour)
        ax.plot([], [], "x", ms=4, color=SOFT, label="the paper's training")
        ax.axhline(1 - PAPER_R2, color=SOFT, lw=0.8, ls="--")
        ax.axvline(PAPER_MOLECULES, color=SOFT, lw=0.8, ls="--")
        ax.set(xscale="log", yscale="log", xlabel="training molecules", ylabel="1 − median R²")
        lowest, highest = ax.get_ylim()
        ax.set_yticks([level for level in LEVELS if lowest <= level <= highest])
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter("")
        ax.xaxis.set_major_formatter("{x:,.0f}")
        ax.set_xlim(None, 1.25 * PAPER_MOLECULES)
        ax.grid()
        ax.legend(loc="upper right", bbox_to_anchor=(0.97, 1.0))
    return fig
