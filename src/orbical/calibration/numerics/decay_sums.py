"""Sums over sorted samples that decay exponentially with distance, in O(N).

`exp(-|a - b| / width)` is a product of a factor in a and a factor in b on each side of the
diagonal, so that a sum over all pairs is a cumulative sum. The Laplacian kernel of MMCE and the
softened indicator of ESD are built from these scans.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..._arrays import can_inspect_array

_LEAST_WIDTH = 1 / 300
"""Width down to which, on [0, 1], the two factors neither overflow nor lose digits in float64."""


def decayed_sums(values: Tensor, places: Tensor, width: float) -> tuple[Tensor, Tensor]:
    """Return, for each i, the decayed sums over the samples before and over those after it.

        before_i = sum_{j < i} values_j exp(-(places_i - places_j) / width)
        after_i  = sum_{j > i} values_j exp(-(places_j - places_i) / width)

    Args:
        values: `[..., N]` float64.
        places: `[..., N]` float64 in [0, 1], ascending along the last axis.
        width: the distance over which a value decays by a factor e.

    Example:
        >>> decayed_sums(torch.tensor([1.0, 1.0, 1.0]), torch.tensor([0.0, 0.0, 1.0]), 1.0)
        (tensor([0.0000, 1.0000, 0.7358]), tensor([1.3679, 0.3679, 0.0000]))
    """
    if width >= _LEAST_WIDTH:
        growth = _growth(places, width)
        before = (values * growth).cumsum(-1) / growth
        # Summed from the far end: the difference of a total and a prefix would cancel.
        after = (values / growth).flip(-1).cumsum(-1).flip(-1) * growth
    else:
        before = _decay_sums_by_doubling(values, places / width)
        after = _decay_sums_by_doubling(values.flip(-1), -places.flip(-1) / width).flip(-1)
    return before - values, after - values


def decay_form(values: Tensor, places: Tensor, width: float) -> Tensor:
    """Return the sum over all pairs `values_i values_j exp(-|places_i - places_j| / width)`.

    Example:
        >>> decay_form(torch.tensor([1.0, 1.0]), torch.tensor([0.0, 1.0]), 1.0)
        tensor(2.7358)
    """
    if width >= _LEAST_WIDTH:
        growth = _growth(places, width)
        reach = (values * growth).cumsum(-1).div_(growth)
    else:
        reach = _decay_sums_by_doubling(values, places / width)
    # Each pair is counted twice, and a sample with itself once.
    form: Tensor = torch.linalg.vecdot(values, reach.mul_(2).sub_(values))
    return form


def _growth(places: Tensor, width: float) -> Tensor:
    return ((places - 0.5) / width).exp()


def _decay_sums_by_doubling(values: Tensor, steps: Tensor) -> Tensor:
    """Return the inclusive scan for any range, by summing over windows of 1, 2, 4, ... samples.

    Only differences of places are exponentiated, so nothing can overflow. It ends as soon as no
    two places a window apart reach each other, if that can be seen without waiting for a device.
    """
    window = 1
    while window < steps.shape[-1]:
        decay = (steps[..., :-window] - steps[..., window:]).exp()
        if can_inspect_array(decay) and not bool(decay.detach().any()):
            break
        values = torch.cat(
            [values[..., :window], values[..., window:] + values[..., :-window] * decay], dim=-1
        )
        window *= 2
    return values
