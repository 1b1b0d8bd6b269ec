"""Figures, each drawn from finished arrays: nothing here looks at a model or a scan.

Every function returns a `matplotlib.figure.Figure` of its own, apart from pyplot, and shows
nothing; `save` writes it. Those of calibration and of bounds are in `figures.calibration` and
`figures.bounds`. Models keep their colours, by their order, in every figure.
"""

from __future__ import annotations

from . import bounds, calibration
from .maps import embedding
from .orbit import aggregate, individual
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
    class_colours,
    figure,
    model_colours,
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
    "class_colours",
    "embedding",
    "figure",
    "individual",
    "model_colours",
    "model_lines",
    "readable",
    "save",
    "styled",
]
