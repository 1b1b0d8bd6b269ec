"""A plain training loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from orbical.training import likelihood

Scores = dict[str, float]


def fit(
    model: nn.Module,
    batches: Iterable[Any],
    *,
    optimizer: Optimizer,
    epochs: int,
    objective: Callable[[nn.Module, Any], Tensor] = likelihood,
    scheduler: LRScheduler | None = None,
    validate: Callable[[nn.Module, int], Scores] | None = None,
    autocast: torch.dtype | None = None,
) -> list[Scores]:
    """Train a model for some epochs; return `epoch`, `loss` and the scores of `validate` of each.

    Args:
        model: The network, on the device to train on; batches are moved there.
        batches: A loader of what `objective` takes: `(inputs, labels)`, or pairs of those from
            `orbical.training.interleave`.
        optimizer: Of the model's parameters.
        epochs: The number of passes over `batches`.
        objective: The loss of the model on a batch.
        scheduler: Stepped after each epoch.
        validate: Called after each epoch, in evaluation mode and without gradients, with the model
            and the epoch's number (from 1).
        autocast: Dtype of mixed precision, or None.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> inputs = torch.randn(64, 2)
        >>> model = nn.Linear(2, 2)
        >>> rows = fit(model, [(inputs, (inputs[:, 0] > 0).long())], epochs=3,
        ...            optimizer=torch.optim.Adam(model.parameters()))
        >>> rows[2]["loss"] < rows[0]["loss"]
        True
    """
    device, rows = next(model.parameters()).device, []
    precision = nullcontext() if autocast is None else torch.autocast(device.type, autocast)
    for epoch in range(1, epochs + 1):
        model.train()
        losses = []  # read after the epoch: each reading makes the host wait for the device
        for batch in batches:
            with precision:
                loss = objective(model, _moved(batch, device))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach().double())
        if scheduler is not None:
            scheduler.step()
        row: Scores = {"epoch": epoch, "loss": float(torch.stack(losses).mean())}
        if validate is not None:
            with torch.no_grad():
                row |= validate(model.eval(), epoch)
            model.train()
        rows.append(row)
    return rows


def _moved(batch: Any, device: torch.device) -> Any:
    if isinstance(batch, tuple | list):
        return tuple(_moved(part, device) for part in batch)
    return batch.to(device, non_blocking=True)
