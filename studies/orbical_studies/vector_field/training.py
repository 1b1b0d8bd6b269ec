"""Training of many small networks of one kind at once, each on data of its own."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from orbical.losses import beta_nll, covariance_nll
from orbical_studies.networks.vector_fields import VectorFieldNet, VectorPerceptron

EQUIVARIANT, PLAIN = "equivariant", "perceptron"
KINDS: dict[tuple[str, str], Callable[[], nn.Module]] = {
    (EQUIVARIANT, "scalar"): lambda: VectorFieldNet("scalar"),
    (EQUIVARIANT, "full"): lambda: VectorFieldNet("full"),
    (PLAIN, "scalar"): lambda: VectorPerceptron("scalar"),
    (PLAIN, "diagonal"): lambda: VectorPerceptron("diagonal"),
}
"""Networks by name and form of variance."""


def loss_of(mean: Tensor, spread: Tensor, target: Tensor) -> Tensor:
    """Squared error plus likelihood, as the paper: beta-NLL at beta = 1.

    A full covariance is trained with its own likelihood, weighted alike. Both are least where the
    variance is the mean squared error of samples alike; beta only weighs the samples.

    Args:
        mean: `[n, d]`.
        spread: variance `[n, 1]` or `[n, d]`, or covariance `[n, d, d]`.
        target: `[n, d]`.

    >>> loss_of(torch.zeros(2, 3), torch.ones(2, 1), torch.zeros(2, 3)).round(decimals=4)
    tensor(2.7568)
    """
    squared = (mean - target).square().sum(-1).mean()
    if spread.ndim == 3:
        return squared + covariance_nll(mean, spread, target, beta=1.0)
    return squared + beta_nll(mean, spread, target, beta=1.0)


def train_together(
    networks: Sequence[nn.Module],
    x: Tensor,
    target: Tensor,
    *,
    epochs: Sequence[int],
    batch: int,
    rate: float,
    seed: int,
) -> Iterator[tuple[int, list[nn.Module]]]:
    """Train M networks of one kind, each on its own data, as if each were alone.

    Their parameters lie side by side, and one step moves all of them: Adam treats every parameter
    by itself, and the loss is the sum of theirs. The rate falls to 0 along a cosine.

    Args:
        networks: M modules of one shape, which are left as they are.
        x: `[M, n, 3]`.
        target: `[M, n, 3]`.
        epochs: when to look; training ends at the last.
        batch: samples a step, of each network; a rest is left out.
        rate: of Adam, at first.
        seed: of the order of samples.

    Yields:
        the epoch, and M trained networks in double precision.
    """
    count, samples = x.shape[:2]
    parameters, buffers = stack_module_state(list(networks))
    shape = copy.deepcopy(networks[0]).to("meta")

    def answer(weights: dict[str, Tensor], kept: dict[str, Tensor], points: Tensor) -> tuple:
        return tuple(functional_call(shape, (weights, kept), (points,)))

    batch = min(batch, samples)
    last, steps = max(epochs), samples // batch
    optimizer = torch.optim.Adam(list(parameters.values()), lr=rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, last * steps)
    generator = torch.Generator().manual_seed(seed)
    for epoch in range(1, last + 1):
        order = torch.rand(count, samples, generator=generator).argsort(1)
        for step in range(steps):
            rows = order[:, step * batch : (step + 1) * batch, None].expand(-1, -1, 3)
            mean, spread = vmap(answer)(parameters, buffers, x.gather(1, rows))
            truth = target.gather(1, rows)
            loss = count * loss_of(*(part.flatten(0, 1) for part in (mean, spread, truth)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        if epoch in epochs:
            yield epoch, _apart(networks, parameters)


def _apart(networks: Sequence[nn.Module], parameters: dict[str, Tensor]) -> list[nn.Module]:
    """Give each network its parameters back, in a copy."""
    apart = []
    for place, network in enumerate(networks):
        copied = copy.deepcopy(network)
        own = {name: values[place].detach().clone() for name, values in parameters.items()}
        copied.load_state_dict(own, strict=False)
        apart.append(copied.double().eval())
    return apart


class AsGaussian(nn.Module):
    """A network's mean, and whatever variance it has as a full covariance `[n, d, d]`.

    >>> AsGaussian(VectorPerceptron("diagonal"))(torch.zeros(2, 3))[1].shape
    torch.Size([2, 3, 3])
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Answer for points `[n, 3]`."""
        mean, spread = self.network(x)
        if spread.ndim == mean.ndim:
            spread = torch.diag_embed(spread.expand_as(mean))
        return mean, spread
