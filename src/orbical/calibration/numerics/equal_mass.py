"""Bins of equal mass for positive values, without sorting all of them."""

from __future__ import annotations

import torch
from torch import Tensor

from ...errors import number_of_bins
from . import sorting

_SELECT_FROM = 1 << 15
"""Number of values from which selection beats the sort."""

_COMPARE_UP_TO = 64
"""Number of bins up to which one comparison for each edge beats a binary search for each value."""


def equal_mass_order_statistics(values: Tensor, places: Tensor) -> Tensor:
    """Return the values that a sort would put at `places [P]`; values `[R, N]` are positive.

    The leading bits of positive floats order like the floats: the exponent and 7 bits more split
    each octave in 128 parts. Counting them finds the few parts that hold the wanted places, and
    only the values in those are sorted.

    Example:
        >>> equal_mass_order_statistics(torch.tensor([[4.0, 1.0, 3.0]]), torch.tensor([0, 2]))
        tensor([[1., 4.]])
    """
    if len(values) > 1 or values.device.type != "cpu" or values.shape[-1] < _SELECT_FROM:
        return sorting.ascending(values)[0].index_select(-1, places)
    row = values[0]
    integer, shift = (torch.int64, 45) if row.dtype == torch.float64 else (torch.int32, 16)
    part = (row.view(integer) >> shift).long()
    count = torch.bincount(part)
    upto = count.cumsum(0)
    holder = torch.searchsorted(upto, places, right=True)
    wanted = torch.zeros_like(count, dtype=torch.bool).index_fill_(0, holder, True)
    candidates = sorting.ascending(row[wanted.index_select(0, part)])[0]
    kept = torch.where(wanted, count, 0)
    # A place among the candidates is its place among all, less the values in parts left out.
    left_out = (upto - count) - (kept.cumsum(0) - kept)
    return candidates.index_select(0, places - left_out.index_select(0, holder))[None]


def equal_mass_places(size: int, bins: int, mass: Tensor | None, device: torch.device) -> Tensor:
    """Return the places, in ascending order, of the values that are inner edges of equal-mass bins.

    Their ranks are `ceil(j N / bins)`. Weights `mass [..., N]` are in ascending order of values.

    Example:
        >>> equal_mass_places(4, 2, None, torch.device("cpu"))
        tensor([1])
    """
    steps = torch.arange(1, bins, device=device)
    if mass is None:
        return (-(-steps * size // bins) - 1).clamp_(min=0)
    running = mass.cumsum(-1)
    return torch.searchsorted(running * bins, steps * running[..., -1:]).clamp_(max=size - 1)


def equal_mass_index(key: Tensor, bins: int, mass: Tensor | None = None) -> Tensor:
    """Return the bin of equal mass that holds each value of `key [..., N]`; keys are positive.

    Bins are `(lo, hi]` between values at ranks `ceil(j N / bins)`; equal values share a bin, so the
    result does not depend on the order of the samples. Weights `mass [..., N]` count as repetition.

    Example:
        >>> equal_mass_index(torch.tensor([4.0, 1.0, 3.0, 2.0]), 2)
        tensor([1, 0, 1, 0])
    """
    bins = number_of_bins(bins)
    rows = key.detach().reshape(-1, key.shape[-1]).contiguous()
    size, device = rows.shape[-1], rows.device
    if mass is None:
        edges = equal_mass_order_statistics(rows, equal_mass_places(size, bins, None, device))
    else:
        ordered, order = sorting.ascending(rows)
        sorted_mass = mass.expand(key.shape).reshape(rows.shape).gather(-1, order)
        edges = ordered.gather(-1, equal_mass_places(size, bins, sorted_mass, device))
    if bins > _COMPARE_UP_TO:
        return torch.searchsorted(edges.contiguous(), rows).reshape(key.shape)
    index = torch.zeros_like(rows, dtype=torch.uint8)
    for edge in edges.unbind(-1):
        index += (rows > edge[:, None]).view(torch.uint8)  # one dtype: no conversion
    return index.long().reshape(key.shape)


def bin_mass(index: Tensor, bins: int, mass: Tensor | None = None) -> Tensor:
    """Return how many samples, or how much of their mass, each bin holds, `[..., B]`, in float64.

    Example:
        >>> bin_mass(torch.tensor([0, 0, 1]), 2)
        tensor([2., 1.], dtype=torch.float64)
    """
    count = torch.zeros(*index.shape[:-1], int(bins), dtype=torch.float64, device=index.device)
    each = count.new_ones(()) if mass is None else mass
    return count.scatter_add_(-1, index, each.expand(index.shape))


def bin_means(values: Tensor, index: Tensor, count: Tensor, mass: Tensor | None = None) -> Tensor:
    """Return the mean of `values [..., N]` in each bin, `[..., B]`; 0 in an empty bin.

    Example:
        >>> index = torch.tensor([0, 0, 1])
        >>> bin_means(torch.tensor([1.0, 3.0, 8.0]), index, bin_mass(index, 2))
        tensor([2., 8.], dtype=torch.float64)
    """
    values = values.double() if mass is None else values.double() * mass
    total = torch.zeros_like(count).scatter_add(-1, index, values)
    return total / torch.where(count > 0, count, 1.0)
