"""Figures, each drawn from finished arrays: nothing here looks at a model or a scan.

Every function returns a `matplotlib.figure.Figure` of its own, apart from pyplot, and shows
nothing; `save` writes it. Those of calibration and of bounds are in `figures.calibration` and
`figures.bounds`. Models keep their colours, by their order, in every figure.
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
