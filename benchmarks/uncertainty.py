"""Losses of regressors that say how sure they are, on one thread.

python benchmarks/uncertainty.py                   every row
python benchmarks/uncertainty.py --json out.json   and a file
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from timing import Row, at_most, run, seconds
from torch import Tensor
from torch.nn import functional

from orbical import losses

SIZE = 1_000_000


def step(loss: Callable[..., Tensor], *given: Tensor) -> Callable[[], None]:
    """Make one forward and backward pass of a loss by all its arguments but the last."""
    *leaves, target = given
    leaves = [leaf.clone().requires_grad_() for leaf in leaves]

    def work() -> None:
        for leaf in leaves:
            leaf.grad = None
        loss(*leaves, target).backward()

    return work


def plain_evidential(
    gamma: Tensor, nu: Tensor, alpha: Tensor, beta: Tensor, target: Tensor
) -> Tensor:
    """The formula of the equivariance paper's appendix E, operation by operation."""
    omega = 2 * beta * (1 + nu)
    return (
        torch.log(torch.pi / nu) / 2
        - alpha * torch.log(omega)
        + (alpha + 0.5) * torch.log(nu * (target - gamma).square() + omega)
        + torch.lgamma(alpha)
        - torch.lgamma(alpha + 0.5)
    ).mean()


def evidential() -> Iterator[Row]:
    """The evidential likelihood beside a Gaussian one, and beside its own formula."""
    positive = [torch.rand(SIZE) + 0.1 for _ in range(3)]
    mean, target = torch.randn(SIZE), torch.randn(SIZE)
    evidence = (mean, positive[0], 1 + positive[1], positive[2], target)
    ours = seconds(step(losses.nig_nll, *evidence), runs=9)
    gaussian = seconds(step(losses.gaussian_nll, mean, positive[0], target), runs=9)
    torchs = seconds(
        step(
            lambda m, v, y: functional.gaussian_nll_loss(m, y, v, full=True), *evidence[:2], target
        ),
        runs=9,
    )
    plain = seconds(step(plain_evidential, *evidence), runs=9)
    work = "evidential loss, forward + backward, 1e6"
    yield at_most(work, ours, "`losses.gaussian_nll`", gaussian, 3)
    yield at_most(work, ours, "`torch` Gaussian NLL", torchs, 3)
    yield at_most(work, ours, "its formula, operation by operation", plain, 1)


ROWS = (evidential,)

if __name__ == "__main__":
    run(ROWS, __doc__ or "")
