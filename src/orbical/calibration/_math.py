"""The square root of an error, safe to differentiate."""

from __future__ import annotations

import torch
from torch import Tensor


def root(squared: Tensor) -> Tensor:
    """Return the square root, 0 for values below 0, with gradient 0 instead of infinity there.

    Example:
        >>> root(torch.tensor([4.0, 0.0, -1e-18]))
        tensor([2., 0., 0.])
    """
    least = torch.finfo(squared.dtype).tiny
    return torch.where(squared <= 0, 0.0, squared.clamp(min=least).sqrt())  # NaN stays NaN
