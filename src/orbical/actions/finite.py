"""Actions that need finite numbers, and the search for what is not."""

from __future__ import annotations

import torch
from torch import Tensor

from ..errors import InputError
from .action import Action


def maybe_lacking(x: Tensor) -> Tensor | None:
    """Return a flag for an array that may hold NaN or infinity, from its sum; None for integers.

    Of numbers too large to be added the mark is set in vain: only a look at each of them knows.
    """
    if not x.is_floating_point():
        return None
    half = x.dtype in (torch.float16, torch.bfloat16)
    return ~torch.isfinite(x.sum(dtype=torch.float32 if half else None))


def first_lacking(x: Tensor) -> int | None:
    """Return the first sample of `x[B, ...]` with NaN or infinity, or None.

    >>> first_lacking(torch.tensor([[1.0, 2.0], [3.0, torch.inf]]))
    1
    """
    if not x.is_floating_point():
        return None
    found = (~torch.isfinite(x[:, None])).flatten(1).any(1).nonzero()
    return int(found[0]) if len(found) else None


class OfFinite(Action):
    """Actions that would spread NaN and infinity."""

    def doubt(self, x: Tensor) -> Tensor | None:
        """Return a flag for NaN and infinity."""
        return maybe_lacking(x)

    def check_values(self, x: Tensor, first: int = 0) -> None:
        """Refuse values that are not finite."""
        sample = first_lacking(x)
        if sample is not None:
            place = (~torch.isfinite(x[sample])).nonzero()[0].tolist()
            axes = max(2, len(self.dims) - 2)
            where = ", ".join(map("{} {}".format, self.dims[-axes:], place[-axes:]))
            raise InputError(
                "data",
                "finite numbers",
                f"NaN or infinity at {where} of sample {first + sample}",
                remedy="orbical.datasets.padded pads samples of different sizes",
            )
