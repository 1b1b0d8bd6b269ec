"""Train many small networks of one kind at once, each on data of its own."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from orbical.errors import InputError
from orbical.losses import beta_nll, covariance_nll

from .. import framework
from ..framework import option
from ..networks.vector_fields import VectorFieldNet, VectorPerceptron

EQUIVARIANT, PLAIN = "equivariant", "perceptron"
KINDS: dict[tuple[str, str], Callable[[], nn.Module]] = {
    (EQUIVARIANT, "scalar"): lambda: VectorFieldNet("scalar"),
    (EQUIVARIANT, "full"): lambda: VectorFieldNet("full"),
    (PLAIN, "scalar"): lambda: VectorPerceptron("scalar"),
    (PLAIN, "diagonal"): lambda: VectorPerceptron("diagonal"),
}
"""Networks by name and form of variance."""


@dataclass(frozen=True)
class Settings(framework.Settings):
    """What is trained and measured."""

    seeds: int = option(3, "trainings of each network on each field", least=1)
    train: int = option(2000, "training points", least=1)
    epochs: tuple[int, ...] = option((50, 100, 300), "when to measure", least=1)
    side: int = option(40, "points on a side of the test set, an even number", least=2)
    angles: int = option(32, "rotations in the plane", least=1)
    batch: int = 64
    rate: float = 5e-3  # of Adam at first; it falls to 0
    arrows: int = 12  # points on a side of the drawn fields

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.side % 2:
            raise InputError("side", "an even number", self.side)


def loss_of(mean: Tensor, spread: Tensor, target: Tensor) -> Tensor:
    """Compute the paper's loss: squared error plus beta-NLL at beta = 1.

    A full covariance is trained with its own likelihood and the same weights. Both are smallest
    where the variance is the mean squared error of similar samples; beta only weighs the samples.

    Args:
        mean: `[n, d]`.
        spread: Variance `[n, 1]` or `[n, d]`, or covariance `[n, d, d]`.
        target: `[n, d]`.

    >>> loss_of(torch.zeros(2, 3), torch.ones(2, 1), torch.zeros(2, 3)).round(decimals=4)
    tensor(2.7568)
    """
    squared = (mean - target).square().sum(-1).mean()
    likelihood = covariance_nll if spread.ndim == 3 else beta_nll
    return squared + likelihood(mean, spread, target, beta=1.0)


def train_together(
    networks: Sequence[nn.Module], x: Tensor, target: Tensor, settings: Settings
) -> Iterator[tuple[int, list[nn.Module]]]:
    """Train M networks of one kind, each on its own data, as if each were alone.

    Their parameters are stacked, and one step moves all of them: Adam treats every parameter by
    itself, and the loss is the sum of theirs. The rate falls to 0 along a cosine.

    Args:
        networks: M modules of one shape; not changed.
        x: `[M, n, 3]`.
        target: `[M, n, 3]`.
        settings: Epochs, batch size and rate. A last batch that is not full is left out.

    Yields:
        The epoch, and M trained networks in double precision, at each of `settings.epochs`.
    """
    count, samples = x.shape[:2]
    parameters, buffers = stack_module_state(list(networks))
    shape = copy.deepcopy(networks[0]).to("meta")

    def answer(weights: dict[str, Tensor], kept: dict[str, Tensor], points: Tensor) -> tuple:
        return tuple(functional_call(shape, (weights, kept), (points,)))

    batch, last = min(settings.batch, samples), max(settings.epochs)
    steps = samples // batch
    optimizer = torch.optim.Adam(list(parameters.values()), lr=settings.rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, last * steps)
    generator = torch.Generator().manual_seed(0)
    for epoch in range(1, last + 1):
        order = torch.rand(count, samples, generator=generator).argsort(1)
        for rows in order[:, : steps * batch, None].expand(-1, -1, 3).split(batch, 1):
            mean, spread = vmap(answer)(parameters, buffers, x.gather(1, rows))
            truth = target.gather(1, rows)
            loss = count * loss_of(*(part.flatten(0, 1) for part in (mean, spread, truth)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        if epoch in settings.epochs:
            yield epoch, [_own(networks, parameters, place) for place in range(count)]


def _own(networks: Sequence[nn.Module], stacked: dict[str, Tensor], place: int) -> nn.Module:
    """Return a copy of a network with its parameters out of the stacked ones."""
    network = copy.deepcopy(networks[place])
    own = {name: values[place].detach().clone() for name, values in stacked.items()}
    network.load_state_dict(own, strict=False)
    return network.double().eval()


class AsGaussian(nn.Module):
    """A network's mean, and its variance of any form as a full covariance `[n, d, d]`.

    >>> AsGaussian(VectorPerceptron("diagonal"))(torch.zeros(2, 3))[1].shape
    torch.Size([2, 3, 3])
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Predict at points `[n, 3]`."""
        mean, spread = self.network(x)
        if spread.ndim == mean.ndim:
            spread = torch.diag_embed(spread.expand_as(mean))
        return mean, spread
