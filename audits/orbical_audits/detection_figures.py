"""Figures of the audits of detectors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import orbical as ob

__all__ = ["positions", "steadiness"]

_DARK = 1.3
"""Sum of red, green and blue below which text is white."""

_WRITTEN = 5
"""Shifts a side up to which their numbers are written, in percent."""


def positions(maps: Mapping[str, np.ndarray], radius: int) -> Any:
    """Draw maps over the shifts of the view, `[element]` each; the last one is signed."""
    with ob.figures.styled():
        fig = ob.figures.figure(ob.figures.PAGE, 2.45)
        for place, (title, column) in enumerate(maps.items(), 1):
            side = math.isqrt(len(column))  # the first row is up
            edge = radius * (1 + 1 / (side - 1))
            signed = place == len(maps)
            limit = max(0.2, float(np.abs(column).max()))
            axes = fig.add_subplot(1, len(maps), place)
            image = axes.imshow(
                column.reshape(side, side),
                extent=(-edge, edge, -edge, edge),
                cmap="RdBu_r" if signed else "viridis",
                vmin=-limit if signed else 0,
                vmax=limit if signed else 1,
            )
            for index, value in enumerate(column if side <= _WRITTEN else ()):
                up, right = (
                    1 - 2 * (index // side) / (side - 1),
                    2 * (index % side) / (side - 1) - 1,
                )
                color = "white" if sum(image.to_rgba(value)[:3]) < _DARK else "black"
                text = f"{100 * value:.0f}"
                axes.text(radius * right, radius * up, text, ha="center", va="center", color=color)
            axes.set_title(title.replace(" minus", "\nminus"))
            axes.set_xlabel("right (px)")
            axes.set_ylabel("up (px)" if place == 1 else "")
            axes.set_xticks([-radius, 0, radius])
            axes.set_yticks([-radius, 0, radius] if place == 1 else [])
            fig.colorbar(image, ax=axes, orientation="horizontal").outline.set_visible(False)
    return fig


def steadiness(found: Mapping[str, np.ndarray]) -> Any:
    """Draw the shares of key objects `[sample, element]` found always, sometimes and never."""
    kinds = {"always found": "#56B4E9", "sometimes": "#E69F00", "never": "#D0D0D0"}
    with ob.figures.styled():
        fig = ob.figures.figure(ob.figures.PAGE, 2.2)
        axes = fig.add_subplot()
        for place, hit in enumerate(found.values()):
            parts = [hit.all(1).mean(), (hit.any(1) & ~hit.all(1)).mean(), (~hit.any(1)).mean()]
            starts = np.cumsum([0, *parts])
            for part, start, color in zip(parts, starts, kinds.values(), strict=False):
                axes.barh(place, part, left=start, color=color, height=0.7)
                if part > 0.03:
                    middle = start + part / 2
                    axes.text(middle, place, f"{100 * part:.0f} %", ha="center", va="center")
        axes.set_yticks(range(len(found)), list(found))
        axes.invert_yaxis()
        axes.set_xlim(0, 1)
        axes.set_xlabel("share of key objects")
        handles = [axes.barh(0, 0, color=color) for color in kinds.values()]
        axes.legend(handles, list(kinds), ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return fig
