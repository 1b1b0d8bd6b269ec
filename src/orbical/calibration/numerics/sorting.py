"""The one sort of the calibration measures, and what equal values need after it.

The bits of a float order like an integer once those of the negative numbers are mirrored. With its
place behind them in one integer, numpy's vectorized sort of numbers finds the order too: three to
twenty times faster than sorting places by the values they refer to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import torch
from torch import Tensor

from ..._arrays import can_inspect_array

_ALL_BUT_THE_SIGN = 0x7FFFFFFF

_PACKED_FROM = 2048
"""How many values cost less to pack than to sort otherwise."""

_SEARCH_UP_TO = 4096
"""Values up to which two bisections for each place cost less than marking the ties."""

_ALL_PAIRS_UP_TO = {"cpu": 200, "cuda": 4096}
"""Samples up to which, by device, the matrix of all pairs costs less than a sort: fewer steps."""


def all_pairs_fit(values: Tensor) -> bool:
    """Check whether a sum over pairs of `values [..., N]` is found faster from their matrix."""
    size = values.shape[-1]
    return values.ndim == 1 and size <= _ALL_PAIRS_UP_TO.get(values.device.type, 1024)


def ascending(values: Tensor) -> tuple[Tensor, Tensor]:
    """Sort along the last axis; return the sorted values and the order that sorts them.

    -0.0 and 0.0 are one value, and half precision is sorted as float32. Equal values come in no
    particular order. NaN is not expected.

    Example:
        >>> ascending(torch.tensor([0.5, -1.0, 0.25]))
        (tensor([-1.0000,  0.2500,  0.5000]), tensor([1, 2, 0]))
    """
    values = values.detach()
    if values.dtype in (torch.float16, torch.bfloat16):
        values = values.float()
    inspect = can_inspect_array(values)
    # To see whether rows are in order costs a small part of a sort.
    if values.ndim > 1 and inspect and bool((values[..., 1:] >= values[..., :-1]).all()):
        return values, torch.arange(values.shape[-1]).expand(values.shape).contiguous()
    if not inspect or values.numel() < _PACKED_FROM:
        ordered, order = torch.sort(values, dim=-1)
        return ordered, order
    if values.dtype != torch.float32:
        order = torch.from_numpy(np.argsort(values.numpy(), axis=-1))
        return take_by_row(values, order), order
    packed = _mirrored((values + 0.0).view(torch.int32)).long()  # adding 0.0 turns -0.0 into 0.0
    packed.bitwise_left_shift_(32).bitwise_or_(torch.arange(values.shape[-1]))
    packed.numpy().sort(axis=-1)
    order = packed.bitwise_and(0xFFFFFFFF)
    return _mirrored(packed.bitwise_right_shift_(32).int()).view(torch.float32), order


def sorted_values(values: Tensor) -> tuple[Tensor, Tensor]:
    """Sort as `ascending` does; the sorted values are differentiable, their order is held fixed.

    Example:
        >>> sorted_values(torch.tensor([0.5, 0.25], requires_grad=True))[0].requires_grad
        True
    """
    ordered, order = ascending(values)
    if values.requires_grad and torch.is_grad_enabled():
        ordered = take_by_row(values, order).to(ordered.dtype)
    return ordered, order


def _mirrored(bits: Tensor) -> Tensor:
    """Reverse the order of negative floats, seen as integers; this undoes itself."""
    return (bits >> 31).bitwise_and_(_ALL_BUT_THE_SIGN).bitwise_xor_(bits)


def take_by_row(values: Tensor, places: Tensor) -> Tensor:
    """Return `values[..., places]`, row by row.

    Example:
        >>> take_by_row(torch.tensor([0.1, 0.2, 0.3]), torch.tensor([2, 0]))
        tensor([0.3000, 0.1000])
    """
    if values.ndim == 1:  # two to three times faster than gather
        return values.index_select(0, places)
    return values.gather(-1, places.long())


def undo_sort(values: Tensor, order: Tensor) -> Tensor:
    """Undo `take_by_row(values, order)` for a whole order.

    Example:
        >>> undo_sort(torch.tensor([0.3, 0.1, 0.2]), torch.tensor([2, 0, 1]))
        tensor([0.1000, 0.2000, 0.3000])
    """
    return torch.empty_like(values).scatter_(-1, order, values)


def ends_of_ties(ordered: Tensor) -> Tensor:
    """Mark the last place of each run of equal values in a sorted array.

    Example:
        >>> ends_of_ties(torch.tensor([0.1, 0.3, 0.3, 0.7]))
        tensor([ True, False,  True,  True])
    """
    return torch.nn.functional.pad(ordered[..., 1:] != ordered[..., :-1], (0, 1), value=True)


class SortedTies(ABC):
    """Runs of equal values in a sorted array `[..., N]`.

    Example:
        >>> runs = sorted_ties(torch.tensor([0.1, 0.3, 0.3, 0.7]))
        >>> runs.at_last(torch.tensor([1.0, 2.0, 3.0, 4.0]))
        tensor([1., 3., 3., 4.])
        >>> runs.at_first(torch.tensor([1.0, 2.0, 3.0, 4.0]))
        tensor([1., 2., 2., 4.])
        >>> runs.sums_through(torch.tensor([1.0, 2.0, 3.0, 4.0]))
        tensor([ 1.,  6.,  6., 10.])
        >>> runs.sums_before(torch.tensor([1.0, 2.0, 3.0, 4.0]))
        (tensor([0., 1., 1., 6.]), tensor([10.]))
    """

    @abstractmethod
    def at_last(self, values: Tensor) -> Tensor:
        """Return for each place the value at the last place of its run; may write to `values`."""

    @abstractmethod
    def at_first(self, values: Tensor) -> Tensor:
        """Return for each place the value at the first place of its run; may write to `values`."""

    @abstractmethod
    def starts(self, like: Tensor) -> Tensor:
        """Return the index along the last axis where each place's run starts, shaped `like`."""

    def sums_through(self, values: Tensor) -> Tensor:
        """Sum all values up to the end of each place's run."""
        return self.at_last(values.cumsum(-1))

    def sums_before(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Sum all values before the start of each place's run; also return the sum of all."""
        running = values.cumsum(-1)
        total = running[..., -1:].clone()
        return self.at_first(running.sub_(values)), total


def sorted_ties(ordered: Tensor) -> SortedTies:
    """Find the runs of equal values in a sorted array `[..., N]`, in the way that suits it.

    In a long array a processor gains by touching only the places that are tied. Elsewhere each
    place searches for the ends of its run.
    """
    long = ordered.numel() > _SEARCH_UP_TO and can_inspect_array(ordered)
    return _SortedTiedPlaces(ordered) if long else _SortedAllPlaces(ordered)


class _SortedTiedPlaces(SortedTies):
    """Keeps the places that have an equal neighbor: costs little where there are few."""

    def __init__(self, ordered: Tensor) -> None:
        # Flat places that are followed by their equal. Rows never join: the last place of a row
        # is an end. Neighbors among these places belong to one run.
        self._before = (~ends_of_ties(ordered)).view(-1).nonzero()[:, 0]
        self._last = self._first = self._before
        if not len(self._before):
            return
        breaks = self._before[1:] != self._before[:-1] + 1
        run = torch.nn.functional.pad(breaks.long().cumsum(0), (1, 0))
        stops = torch.nn.functional.pad(breaks, (0, 1), value=True).nonzero()[:, 0]
        starts = torch.nn.functional.pad(stops[:-1] + 1, (1, 0))
        self._last = self._before[stops].add_(1).index_select(0, run)
        self._first = self._before[starts].index_select(0, run)

    def at_last(self, values: Tensor) -> Tensor:
        """Overwrite the values of tied places."""
        if len(self._before):
            flat = values.view(-1)
            flat[self._before] = flat.index_select(0, self._last)
        return values

    def at_first(self, values: Tensor) -> Tensor:
        """Overwrite the values of tied places."""
        if len(self._before):
            flat = values.view(-1)
            flat[self._before + 1] = flat.index_select(0, self._first)
        return values

    def starts(self, like: Tensor) -> Tensor:
        """Count, and overwrite the tied places."""
        count = torch.arange(like.shape[-1], dtype=like.dtype).repeat(*like.shape[:-1], 1)
        return self.at_first(count.view(like.shape))


class _SortedAllPlaces(SortedTies):
    """Keeps where each place's run starts and stops: the same work for few ties and many."""

    def __init__(self, ordered: Tensor) -> None:
        # No shape depends on values here, so that nobody waits for an accelerator.
        short = ordered.shape[-1] < 1 << 31
        ordered = ordered.contiguous()  # torch warns of others, and copies them twice
        self._start = torch.searchsorted(ordered, ordered, out_int32=short)
        self._stop = torch.searchsorted(ordered, ordered, right=True, out_int32=short)

    def at_last(self, values: Tensor) -> Tensor:
        """Gather from the ends of the runs."""
        return take_by_row(values, self._stop - 1)

    def at_first(self, values: Tensor) -> Tensor:
        """Gather from the starts of the runs."""
        # The search for NaN ends behind the array: out of bounds is no place to look.
        return take_by_row(values, self._start.clamp(max=values.shape[-1] - 1))

    def starts(self, like: Tensor) -> Tensor:
        """Return whole numbers."""
        return self._start

    def sums_through(self, values: Tensor) -> Tensor:
        """Gather from running sums at the stops."""
        return take_by_row(_running(values), self._stop)

    def sums_before(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Gather from running sums at the starts."""
        running = _running(values)
        return take_by_row(running, self._start), running[..., -1:]


def _running(values: Tensor) -> Tensor:
    """Sum the first 0, 1, .. N values: N + 1 sums, so that a start finds what lies before."""
    return torch.nn.functional.pad(values, (1, 0)).cumsum(-1)
