"""Figures, each drawn from finished arrays; models and scans are not needed.

Every function returns a `matplotlib.figure.Figure` that is not registered with pyplot, and does not
show it; `save` writes it to a file. `figures.calibration` and `figures.bounds` have the figures of
calibration and of bounds. A model has the same color, by its order, in every figure.
"""

from __future__ import annotations

from . import bounds, calibration
from ._panels import show_picture
from .clouds import cloud_picture
from .embedding_maps import embedding
from .nero_plots import aggregate, individual
from .style import (
    CLASSES,
    COLUMN,
    FAINT,
    INK,
    LINES,
    MODELS,
    PAGE,
    SEQUENTIAL,
    SOFT,
    class_colors,
    figure,
    model_colors,
    model_lines,
    readable,
    save,
    styled,
)

__all__ = [
    "CLASSES",
    "COLUMN",
    "FAINT",
    "INK",
    "LINES",
    "MODELS",
    "PAGE",
    "SEQUENTIAL",
    "SOFT",
    "aggregate",
    "bounds",
    "calibration",
    "class_colors",
    "cloud_picture",
    "embedding",
    "figure",
    "individual",
    "model_colors",
    "model_lines",
    "readable",
    "save",
    "show_picture",
    "styled",
]
