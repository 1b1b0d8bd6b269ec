"""Figures, each drawn from finished arrays: nothing here looks at a model or a scan.

Every function returns a `matplotlib.figure.Figure` of its own, apart from pyplot, and shows
nothing; `save` writes it. Those of calibration and of bounds are in `figures.calibration` and
`figures.bounds`. Models keep their colors, by their order, in every figure.
"""

from __future__ import annotations

from . import bounds, calibration
from .maps import embedding
from .orbit import aggregate, individual
from .style import model_colors, save

__all__ = [
    "aggregate",
    "bounds",
    "calibration",
    "embedding",
    "individual",
    "model_colors",
    "save",
]
