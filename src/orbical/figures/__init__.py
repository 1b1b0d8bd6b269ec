"""Figures, each drawn from finished arrays; models and scans are not needed.

Every function returns a `matplotlib.figure.Figure` that is not registered with pyplot, and does not
show it; `save` writes it to a file. `figures.calibration` and `figures.bounds` have the figures of
calibration and of bounds. A model has the same color, by its order, in every figure.
"""

from __future__ import annotations

from . import bounds, calibration, style
from ._panel_sheets import show_picture
from .calibration import risk_coverage_plot
from .embedding_maps import embedding
from .layer_bars import layer_errors
from .nero_plots import aggregate, averaging, individual
from .pictures import ATOMS, cloud_picture, group_picture, molecule_picture
from .style import *

__all__ = [
    "aggregate", "averaging", "bounds", "calibration", "cloud_picture", "embedding",
    "group_picture", "individual", "layer_errors", "molecule_picture", "risk_coverage_plot",
    "show_picture",
]  # fmt: skip
__all__ += style.__all__
