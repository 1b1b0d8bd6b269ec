"""The trainable losses beside the plain formulas in torch, forward and backward, on one thread.

    python benchmarks/losses.py                   every loss, batches of 16 to 4,096 x 10
    python benchmarks/losses.py esd mmce          some losses
    python benchmarks/losses.py --json out.json   and a file

On an accelerator the rows are of batches of 64 to 4,096, with cross-entropy beside them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator

import torch
from timing import Row, accelerator_seconds, at_most, in_turns, processor_seconds, run
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot

from orbical import losses

Loss = Callable[[Tensor, Tensor], Tensor]


def top_label(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return confidence and `correct`, as a float, of the predicted class."""
    confidence, predicted = logits.softmax(-1).max(-1)
    return confidence, (predicted == labels).float()


def plain_esd(logits: Tensor, labels: Tensor) -> Tensor:
    """The estimator of the ESD paper (eq. 10), over the matrix of all pairs."""
    confidence, correct = top_label(logits, labels)
    n = len(logits)
    others = (confidence <= confidence[:, None]).float().fill_diagonal_(0)
    terms = others * (correct - confidence)
    below, squares = terms.sum(1), terms.square().sum(1)
    return (below.square() - squares).sum() / (n * (n - 1) * (n - 2))


def plain_mmce(logits: Tensor, labels: Tensor) -> Tensor:
    """The squared MMCE of Kumar et al. (2018), over the matrix of all pairs."""
    confidence, correct = top_label(logits, labels)
    error = correct - confidence
    kernel = torch.exp(-(confidence[:, None] - confidence).abs() / 0.4)
    return error @ kernel @ error / len(logits) ** 2


def plain_sb_ece(logits: Tensor, labels: Tensor) -> Tensor:
    """The soft-binned ECE of Karandikar et al. (2021), in the l2 norm."""
    confidence, correct = top_label(logits, labels)
    centers = (torch.arange(15, device=logits.device) + 0.5) / 15
    member = torch.softmax(-(confidence[:, None] - centers).square() / 0.01, -1)
    size = member.sum(0)
    accuracy, mean = correct @ member / size, confidence @ member / size
    return ((accuracy - mean).square() * size / size.sum()).sum().sqrt()


def plain_s_avuc(logits: Tensor, labels: Tensor) -> Tensor:
    """The soft AvUC of Karandikar et al. (2021)."""
    p = logits.softmax(-1)
    accurate = (p.argmax(-1) == labels).float()
    entropy = -(p * p.clamp(min=1e-12).log()).sum(-1) / math.log(p.shape[-1])
    entropy = entropy.clamp(1e-6, 1 - 1e-6)
    uncertain = torch.sigmoid((entropy / (1 - entropy)).log() / 0.1)  # kappa = 1/2
    doubtful, certain = uncertain * entropy.tanh(), (1 - uncertain) * (1 - entropy.tanh())
    accurate_uncertain, inaccurate_certain = accurate @ doubtful, (1 - accurate) @ certain
    accurate_certain, inaccurate_uncertain = accurate @ certain, (1 - accurate) @ doubtful
    wrong, right = accurate_uncertain + inaccurate_certain, accurate_certain + inaccurate_uncertain
    return torch.log1p(wrong / right)


def plain_ece(logits: Tensor, labels: Tensor) -> Tensor:
    """The binned ECE with 20 bins held fixed."""
    confidence, correct = top_label(logits, labels)
    place = (confidence.detach() * 20).ceil().long().sub(1).clamp(0, 19)
    return ((correct - confidence) @ one_hot(place, 20).float()).abs().sum() / len(logits)


PLAIN: dict[str, Loss] = {
    "esd": plain_esd,
    "mmce": plain_mmce,
    "sb_ece": plain_sb_ece,
    "s_avuc": plain_s_avuc,
    "ece": plain_ece,
}


def batch(size: int, device: str) -> tuple[Tensor, Tensor]:
    """Logits of a ten-class problem, and labels of a slightly overconfident model."""
    logits = 2 * torch.randn(size, 10)
    labels = torch.distributions.Categorical(logits=logits / 1.2).sample()
    return logits.to(device).requires_grad_(), labels.to(device)


def step(loss: Loss, logits: Tensor, labels: Tensor) -> Callable[[], None]:
    """Return forward and backward of a loss, `REPEATS` times."""

    def forward_backward() -> None:
        for _ in range(REPEATS):
            logits.grad = None
            loss(logits, labels).backward()

    forward_backward()
    return forward_backward


REPEATS = 5
"""Few, so that among many rounds there are some that nothing interrupts."""


def of(name: str) -> Iterator[Row]:
    """Compare a loss with its plain formula, and on an accelerator with cross-entropy."""
    ours, plain = getattr(losses, name), PLAIN[name]
    cuda = torch.cuda.is_available()
    device, clock = ("cuda", accelerator_seconds) if cuda else ("cpu", processor_seconds)
    sizes = [size for size in (16, 32, 64, 128, 256, 512, 1024, 4096) if size >= 64 or not cuda]
    for size in sizes:
        given = batch(size, device)
        torch.testing.assert_close(ours(*given).float(), plain(*given), rtol=1e-3, atol=1e-5)
        first, second, third = (step(loss, *given) for loss in (ours, plain, cross_entropy))
        work, rounds = f"`{name}`, {size:,} x 10", 2 if size > 1024 and not cuda else 40
        spent, theirs = in_turns(first, second, rounds, clock)
        limit = 0.5 if cuda else 1.0
        yield at_most(work, spent / REPEATS, "plain formula", theirs / REPEATS, limit)
        if cuda:
            spent, theirs = in_turns(first, third, rounds, clock)
            yield at_most(work, spent / REPEATS, "cross-entropy", theirs / REPEATS, 4.0)


def _named(name: str) -> Callable[[], Iterator[Row]]:
    row = functools.partial(of, name)
    row.__name__ = name  # type: ignore[attr-defined]
    return row


ROWS = [_named(name) for name in PLAIN]

if __name__ == "__main__":
    run(ROWS, __doc__)
