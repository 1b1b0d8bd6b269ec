"""One number for each answer, so that answers of several parts can be compared and counted."""

from __future__ import annotations

import torch
from torch import Tensor

from .._trees import to_device
from .base import Variable, per_element

ANSWER: Variable = per_element("number of the answer, the same for equal answers")


def answer_codes(rows: Tensor) -> Tensor:
    """Return a number `[...]` for each row of whole numbers `[..., n]`, equal where rows are.

    Different rows differ but for a chance of about 2^-40.

    >>> codes = answer_codes(torch.tensor([[0, 1, 1], [0, 1, 1], [1, 0, 1]]))
    >>> (codes[0] == codes).tolist()
    [True, True, False]
    """
    seeded = torch.Generator().manual_seed(0)
    factors = torch.randint(-(2**62), 2**62, (rows.shape[-1],), generator=seeded)
    weighted: Tensor = rows.long() * to_device(factors, rows.device)
    return weighted.sum(-1)


def majority(codes: Tensor, weights: Tensor) -> Tensor:
    """Return the index `[B]` of the first of K answers whose equals weigh most, from `[K, B]`.

    >>> majority(torch.tensor([[7], [3], [3]]), torch.tensor([0.4, 0.3, 0.3])).tolist()
    [1]
    """
    ordered, order = codes.sort(dim=0)
    starts = torch.zeros_like(ordered)
    starts[1:] = ordered[1:] != ordered[:-1]
    run = starts.cumsum(0)
    mass = torch.zeros(codes.shape, dtype=torch.float64, device=codes.device)
    mass.scatter_add_(0, run, weights.double()[order])
    each = torch.empty_like(mass).scatter_(0, order, mass.gather(0, run))
    # Sums of equal weights in another order may differ in their last bits.
    return (each > each.amax(0) - 1e-9).to(torch.uint8).argmax(0)
