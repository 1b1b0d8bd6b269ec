"""The one sort of the calibration measures.

The bits of a float order like an integer once those of the negative numbers are mirrored, and
integers are sorted by radix: several times faster than comparing floats.
"""

from __future__ import annotations

import torch
from torch import Tensor

_MANTISSA_AND_EXPONENT = {torch.int32: 0x7FFFFFFF, torch.int64: 0x7FFFFFFFFFFFFFFF}


def ascending(values: Tensor) -> tuple[Tensor, Tensor]:
    """Sort along the last axis; return the sorted values and the order that sorts them.

    -0.0 and 0.0 are one value, and half precision is sorted as float32. Equal values come in no
    particular order. NaN is not expected.

    >>> ascending(torch.tensor([0.5, -1.0, 0.25]))
    (tensor([-1.0000,  0.2500,  0.5000]), tensor([1, 2, 0]))
    """
    values = values.detach()
    if values.dtype in (torch.float16, torch.bfloat16):
        values = values.float()
    if values.device.type != "cpu":
        return torch.sort(values, dim=-1)
    integer = torch.int64 if values.dtype == torch.float64 else torch.int32
    bits = (values + 0.0).view(integer)  # adding 0.0 turns -0.0 into 0.0
    mask = _MANTISSA_AND_EXPONENT[integer]
    shift = 63 if integer == torch.int64 else 31
    keys, order = torch.sort(bits ^ ((bits >> shift) & mask), dim=-1)
    return (keys ^ ((keys >> shift) & mask)).view(values.dtype), order


def ends_of_ties(ordered: Tensor) -> Tensor:
    """Mark the last place of each run of equal values in a sorted array.

    >>> ends_of_ties(torch.tensor([0.1, 0.3, 0.3, 0.7]))
    tensor([ True, False,  True,  True])
    """
    return torch.nn.functional.pad(ordered[..., 1:] != ordered[..., :-1], (0, 1), value=True)


def last_of_ties(ordered: Tensor) -> Tensor:
    """For each place of a sorted array, return the last place that holds the same value.

    >>> last_of_ties(torch.tensor([0.1, 0.3, 0.3, 0.7]))
    tensor([0, 2, 2, 3])
    """
    size = ordered.shape[-1]
    places = torch.arange(size, device=ordered.device)
    # The last place of a run is the nearest end at or after it: a running minimum from the right.
    ends = torch.where(ends_of_ties(ordered), places, size)
    return ends.flip(-1).cummin(-1).values.flip(-1)


def first_of_ties(ordered: Tensor) -> Tensor:
    """For each place of a sorted array, return the first place that holds the same value.

    >>> first_of_ties(torch.tensor([0.1, 0.3, 0.3, 0.7]))
    tensor([0, 1, 1, 3])
    """
    places = torch.arange(ordered.shape[-1], device=ordered.device)
    starts = torch.where(ends_of_ties(ordered).roll(1, -1), places, 0)
    return starts.cummax(-1).values
