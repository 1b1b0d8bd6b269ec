"""Sums over sorted samples that decay exponentially with distance, in O(N).

`exp(-|a - b| / width)` is a product of a factor in a and a factor in b on each side of the
diagonal, so that a sum over all pairs is one cumulative sum. The Laplacian kernel of MMCE and the
softened indicator of ESD are built from these two scans.
"""

from __future__ import annotations

import torch
from torch import Tensor

_LARGEST_EXPONENT = 300.0
"""Range / width up to which the two factors neither overflow nor lose digits in float64."""


def before(values: Tensor, places: Tensor, width: float) -> Tensor:
    """Return `sum_{j < i} values_j exp(-(places_i - places_j) / width)` for each i.

    Args:
        values: `[..., N]` float64.
        places: `[..., N]` float64, ascending along the last axis.
        width: the distance over which a value decays by a factor e.

    >>> before(torch.tensor([1.0, 1.0, 1.0]), torch.tensor([0.0, 0.0, 1.0]), 1.0)
    tensor([0.0000, 1.0000, 0.7358])
    """
    steps = places / width
    span = (steps[..., -1] - steps[..., 0]).detach().amax().item()
    if span <= _LARGEST_EXPONENT:
        growth = (steps - (steps[..., :1] + steps[..., -1:]).detach() / 2).exp()
        return (values * growth).cumsum(-1) / growth - values
    return _doubling(values, steps) - values


def after(values: Tensor, places: Tensor, width: float) -> Tensor:
    """Return `sum_{j > i} values_j exp(-(places_j - places_i) / width)` for each i.

    >>> after(torch.tensor([1.0, 1.0, 1.0]), torch.tensor([0.0, 0.0, 1.0]), 1.0)
    tensor([1.3679, 0.3679, 0.0000])
    """
    return before(values.flip(-1), -places.flip(-1), width).flip(-1)


def _doubling(values: Tensor, steps: Tensor) -> Tensor:
    """Return the inclusive scan for any range, by summing over windows of 1, 2, 4, ... samples.

    Only differences of neighbouring places are exponentiated, so nothing can overflow. It ends as
    soon as no two places a window apart reach each other.
    """
    window = 1
    while window < steps.shape[-1]:
        decay = (steps[..., :-window] - steps[..., window:]).exp()
        if not bool(decay.detach().any()):
            break
        values = torch.cat(
            [values[..., :window], values[..., window:] + values[..., :-window] * decay], dim=-1
        )
        window *= 2
    return values
