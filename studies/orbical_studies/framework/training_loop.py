"""The training loop of the studies: by steps, or by passes over batches."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import chain, islice, repeat
from typing import Any

import torch
from torch import Tensor, nn

AfterStep = Callable[[int, Any], None]
"""Called with the number of finished steps (or epochs) and the last loss, a float or a scalar."""


class Rows:
    """Batches of the numbers of samples, in a new order each time; the last one may be smaller.

    Args:
        count: The number of samples.
        batch: Samples in a batch.
        generator: Draws the order, on its device.

    Example:
        >>> [len(rows) for rows in Rows(10, 4, torch.Generator())]
        [4, 4, 2]
    """

    def __init__(self, count: int, batch: int, generator: torch.Generator) -> None:
        self.count, self.batch, self.generator = count, batch, generator

    def __len__(self) -> int:
        return -(-self.count // self.batch)

    def __iter__(self) -> Iterator[Tensor]:
        draw = self.generator
        order = torch.randperm(self.count, generator=draw, device=draw.device)
        return iter(order.split(self.batch))


class WholeBatches(Rows):
    """The same without the last, incomplete batch, so that every step has one batch size.

    Example:
        >>> [len(rows) for rows in WholeBatches(10, 4, torch.Generator())]
        [4, 4]
    """

    def __len__(self) -> int:
        return self.count // self.batch

    def __iter__(self) -> Iterator[Tensor]:
        return islice(super().__iter__(), len(self))


def constant(progress: float) -> float:
    """Return the factor of a learning rate that does not change."""
    return 1.0


def cosine(progress: float) -> float:
    """Return the factor of the learning rate: a half cosine from 1 to 0."""
    return (1 + math.cos(math.pi * progress)) / 2


def fit(
    net: nn.Module,
    loss_of: Callable[[int], Tensor],
    steps: int,
    rate: float,
    decay: float = 0.0,
    schedule: Callable[[float], float] = constant,
    seconds: float = math.inf,
    clip: float | None = None,
    after_step: AfterStep | None = None,
) -> int:
    """Train a network with AdamW, switch it to evaluation mode, and return the steps taken.

    Args:
        net: The network, trained in place.
        loss_of: Function that returns the loss of a step, by its number from 0.
        steps: Largest number of steps.
        rate: Largest learning rate.
        decay: Weight decay; without it this is Adam.
        schedule: Function from the share of the training that is done to the factor of the rate.
        seconds: Time limit, from the end of the first step, which initializes the device.
        clip: Largest norm of the gradient.
        after_step: Called with the number of finished steps and the loss.
    """
    on_gpu = next(net.parameters()).is_cuda
    optimizer = torch.optim.AdamW(net.parameters(), rate, weight_decay=decay, fused=on_gpu)
    taken, done, begun = 0, 0.0, math.inf
    net.train()
    while done < 1:
        optimizer.param_groups[0]["lr"] = rate * schedule(done)
        loss = loss_of(taken)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(net.parameters(), clip)
        optimizer.step()
        taken += 1
        begun = time.monotonic() if taken == 1 else begun
        done = max(taken / steps, (time.monotonic() - begun) / seconds)
        if after_step is not None:
            after_step(taken, loss.detach())
    net.eval()
    return taken


def fit_epochs(
    net: nn.Module,
    batches: Any,
    epochs: int,
    rate: float,
    objective: Callable[[nn.Module, Any], Tensor],
    *,
    decay: float = 0.0,
    schedule: Callable[[float], float] = constant,
    autocast: torch.dtype | None = None,
    after_epoch: AfterStep | None = None,
) -> None:
    """Train a network for some passes over batches, as `fit` does.

    Args:
        net: The network, on the device of the batches; trained in place.
        batches: A loader of what `objective` takes, such as `Rows`.
        epochs: The number of passes.
        rate: Largest learning rate.
        objective: The loss of the network on a batch.
        decay: Weight decay.
        schedule: As in `fit`.
        autocast: Dtype of mixed precision, or None.
        after_epoch: Called with the number of finished epochs and the mean loss of the last, in
            evaluation mode and without gradients.

    Example:
        >>> net, losses = nn.Linear(1, 1), []
        >>> fit_epochs(net, Rows(8, 4, torch.Generator()), 3, 1e-3,
        ...            lambda net, rows: net(rows[:, None].float()).square().mean(),
        ...            after_epoch=lambda epoch, loss: losses.append(loss))
        >>> losses[2] < losses[0]
        True
    """
    stream, losses = chain.from_iterable(repeat(batches)), list[Tensor]()
    place = next(net.parameters()).device.type
    precision = nullcontext() if autocast is None else torch.autocast(place, autocast)

    def loss_of(step: int) -> Tensor:
        with precision:
            return objective(net, next(stream))

    def follow(step: int, loss: Tensor) -> None:
        losses.append(loss.double())  # read after the epoch: the host would wait for the device
        if step % len(batches) == 0:
            if after_epoch is not None:
                net.eval()
                with torch.no_grad():
                    after_epoch(step // len(batches), float(torch.stack(losses).mean()))
                net.train()
            losses.clear()

    fit(net, loss_of, epochs * len(batches), rate, decay, schedule, after_step=follow)
