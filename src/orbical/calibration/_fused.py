"""Whether Triton kernels can take the place of many operations in torch."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from .._arrays import is_traced


def can_fuse(values: Tensor, mass: Tensor | None) -> bool:
    """Check whether kernels may compute a measure of unweighted values and its gradient.

    Autograd, which second derivatives need, and compilation see through torch only.
    """
    if not values.is_cuda or mass is not None or torch.is_grad_enabled() or is_traced():
        return False
    here = values.get_device()
    return here == torch.cuda.current_device() and _triton_works(here)


@cache
def _triton_works(device: int) -> bool:
    """Check whether Triton, which comes with torch, finds the C compiler that it needs."""
    try:
        from ._sorted_kernels import esd

        confidence = torch.tensor([0.25, 0.5, 0.75], device=device)
        esd(confidence, torch.arange(3, device=device), confidence > 0)
    except Exception:  # whatever is amiss, torch computes the same
        return False
    return True
