"""Gather the batches of all processes, for one loss over all of them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributed

from ..errors import InputError

__all__ = ["gather_across_ranks"]


class _Gather(torch.autograd.Function):
    """Gather all ranks' rows, in the order of ranks.

    Every rank computes the same loss of the same rows, so the gradient that arrives for this
    rank's rows is the whole one; times the number of ranks, because DDP divides by it.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, sizes: list[int]) -> Tensor:
        ctx.sizes = sizes
        longest = max(sizes)
        padded = rows.new_zeros((longest, *rows.shape[1:]))
        padded[: len(rows)] = rows
        parts = [torch.empty_like(padded) for _ in sizes]
        distributed.all_gather(parts, padded)
        return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        own = gradients[0].split(ctx.sizes)[distributed.get_rank()]
        return own * len(ctx.sizes), None


def gather_across_ranks(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Collect the batches of all ranks, so that a calibration loss under DDP is exact.

    Calibration losses are not sums over samples: the mean of the ranks' losses differs from the
    loss of the whole batch. Under DDP, which averages gradients over ranks,

        loss = cross_entropy(logits, labels) + weight * esd(*gather_across_ranks(held, held_labels))

    has the gradient of one process with the concatenated batches. Every rank must compute the
    same loss from what this returns. Without a process group it returns what it is given.

    Args:
        logits: `[n, classes]`; n may differ between ranks.
        labels: `[n]`.

    Returns:
        Logits and labels of all ranks, in the order of ranks; differentiable in the logits.

    Raises:
        InputError: if logits and labels differ in length.

    Example:
        >>> gathered, _ = gather_across_ranks(torch.zeros(2, 3), torch.tensor([0, 1]))
        >>> gathered.shape  # one process: unchanged
        torch.Size([2, 3])
    """
    if len(logits) != len(labels):
        raise InputError("labels", f"{len(logits)}, one for each row of logits", len(labels))
    if not (distributed.is_available() and distributed.is_initialized()):
        return logits, labels
    counts = [
        torch.zeros(1, dtype=torch.int64, device=logits.device)
        for _ in range(distributed.get_world_size())
    ]
    distributed.all_gather(counts, torch.full_like(counts[0], len(logits)))
    sizes = [int(count) for count in counts]
    every_logit: Tensor = _Gather.apply(logits, sizes)  # type: ignore[no-untyped-call]
    every_label: Tensor = _Gather.apply(labels, sizes)  # type: ignore[no-untyped-call]
    return every_logit, every_label
