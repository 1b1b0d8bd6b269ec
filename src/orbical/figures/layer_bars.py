"""A figure of where a network loses its symmetry: a bar for each layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._text import percent
from .style import FAINT, INK, MODELS, PAGE, SOFT, figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..testing import LayerErrors


def layer_errors(found: LayerErrors) -> Figure:
    """Draw what each layer adds to the error of the predictions, and the error of its features.

    Layers run from top to bottom. Features flow around a layer without a bar on the left.

    Args:
        found: from `orbical.testing.layer_errors`.

    Returns:
        The figure.

    Example:
        >>> import torch
        >>> from orbical.testing import layer_errors as measure
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 3))
        >>> found = measure(net, torch.rand(16, 1, 8, 8), group="cyclic:4", task="classification")
        >>> layer_errors(found).axes[0].get_xlabel()
        'share of the error of the predictions'
    """
    places = np.arange(len(found.layers))
    with styled():
        fig = figure(PAGE, 0.8 + 0.2 * len(places))
        left, right = fig.subplots(1, 2, sharey=True, width_ratios=(3, 2))
        shares = np.nan_to_num(found.share)
        first = places == np.flatnonzero(np.array(found.layers) == found.first)[:1].sum()
        colors = np.where(first & bool(found.first), MODELS[1], MODELS[0])
        left.barh(places, shares, color=colors, height=0.7)
        left.axvline(0, color=SOFT, linewidth=0.8)
        for place, share in zip(places, shares, strict=True):
            if abs(share) >= 0.005:
                text = f" {percent(share)} "
                side = "left" if share > 0 else "right"
                left.text(share, place, text, va="center", ha=side, color=INK, fontsize=7)
        left.margins(x=0.15)
        left.set(xlabel="share of the error of the predictions", yticks=places)
        left.set_yticklabels(found.titles)
        left.invert_yaxis()
        right.barh(places, found.error, color=FAINT, edgecolor=SOFT, height=0.7)
        right.set(xlabel="error of the features")
        right.tick_params(axis="y", length=0)
    return fig
