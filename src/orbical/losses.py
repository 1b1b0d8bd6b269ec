"""Losses that train for calibration, on what a network gives: logits and labels, or parameters.

    loss = cross_entropy(logits, labels) + 2.0 * orbical.losses.esd(held_logits, held_labels)

The classification losses are the measures of `orbical.calibration` on the top label. They compute
in float32 or more under autocast too, and are float64 scalars. Values (labels in range, positive
variances) are checked on the CPU only: on an accelerator a check would make the host wait for the
device at every step.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, distributed

from . import calibration
from .errors import InputError


def _values_can_be_read(tensor: Tensor) -> bool:
    return tensor.device.type == "cpu" and not torch.compiler.is_compiling()


def _checked(logits: Tensor, labels: Tensor) -> Tensor:
    """Check logits `[n, classes]` and labels `[n]`; return the logits in float32 at least."""
    if logits.ndim != 2 or logits.shape[1] < 2 or not logits.is_floating_point():
        raise InputError(
            f"logits: got shape {tuple(logits.shape)} and dtype {logits.dtype}; "
            "expected [n, classes], floating point, with at least 2 classes"
        )
    if labels.shape != logits.shape[:1] or labels.dtype.is_floating_point:
        raise InputError(
            f"labels: got shape {tuple(labels.shape)} and dtype {labels.dtype}; "
            f"expected {len(logits)} class indices"
        )
    if _values_can_be_read(labels) and len(labels):
        low, high = (int(end) for end in labels.aminmax())
        if low < 0 or high >= logits.shape[1]:
            raise InputError(
                f"labels: values span [{low}, {high}]; "
                f"expected class indices 0 to {logits.shape[1] - 1}"
            )
    half = logits.dtype in (torch.float16, torch.bfloat16)
    return logits.float() if half else logits


def top_label(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Confidence `[n]` of the predicted class, differentiable, and whether it is right `[n]`.

    Args:
        logits: `[n, classes]`.
        labels: `[n]`, class indices.

    Example:
        >>> top_label(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
        (tensor([0.8808]), tensor([True]))
    """
    scores = _checked(logits, labels)
    with torch.autocast(scores.device.type, enabled=False):
        confidence, predicted = torch.softmax(scores, dim=-1).max(dim=-1)
    return confidence, predicted == labels


def _at_least_three(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    pair = top_label(logits, labels)
    if len(logits) < 3:
        raise InputError(f"logits: got {len(logits)} samples, expected at least 3")
    return pair


def esd(logits: Tensor, labels: Tensor) -> Tensor:
    """Expected squared difference of the top label: bin-free, unbiased, nothing to tune.

        S_i = sum_{j != i, z_j <= z_i} (correct_j - z_j),   Q_i the same sum of squares
        ESD = sum_i (S_i^2 - Q_i) / (N (N-1) (N-2))

    Args:
        logits: `[n, classes]`, n >= 3.
        labels: `[n]`, class indices.

    Returns:
        The loss, a scalar; it may be negative. Its gradient holds the order of the confidences
        fixed, which is biased: see `esd_softened`.

    Example:
        >>> logits = torch.tensor([[4.0, 0.0], [3.0, 0.0], [0.0, 2.0], [5.0, 0.0]])
        >>> esd(logits, torch.tensor([0, 1, 1, 1]))
        tensor(-0.0202, dtype=torch.float64)

    Paper: ESD, eq. 10, in O(n log n) where the paper's code takes O(n^2). Its appendix D calls
    the gradient unbiased; it is not.
    """
    confidence, correct = _at_least_three(logits, labels)
    return calibration.ordered_esd(correct.double() - confidence.double(), confidence.detach())


def esd_softened(logits: Tensor, labels: Tensor, *, width: float = 0.01) -> Tensor:
    """ESD with a softened indicator, whose gradient also sees samples that change order.

    Args:
        logits: `[n, classes]`, n >= 3.
        labels: `[n]`, class indices.
        width: how soft, in units of confidence.

    Returns:
        The loss, a scalar.

    Example:
        >>> logits = torch.tensor([[4.0, 0.0], [3.0, 0.0], [0.0, 2.0], [5.0, 0.0]])
        >>> esd_softened(logits, torch.tensor([0, 1, 1, 1]), width=1e-4)
        tensor(-0.0202, dtype=torch.float64)

    Paper: ours; it mends the bias that the ESD paper's appendix D overlooks.
    """
    return calibration.esd_softened(*_at_least_three(logits, labels), width=width)


def mmce(logits: Tensor, labels: Tensor, *, phi: float = 0.4) -> Tensor:
    """Squared maximum mean calibration error with the Laplacian kernel.

        sum_ij d_i d_j exp(-|z_i - z_j| / phi) / n^2,    d = correct - z

    The square, not its root: the root has no gradient at zero error.

    Args:
        logits: `[n, classes]`.
        labels: `[n]`, class indices.
        phi: the width of the kernel.

    Returns:
        The loss, a scalar.

    Example:
        >>> mmce(torch.tensor([[4.0, 0.0], [4.0, 0.0]]), torch.tensor([0, 1]))
        tensor(0.2323, dtype=torch.float64)

    Paper: Kumar et al. 2018, the unweighted form, as the ESD paper uses it.
    """
    return calibration.mmce_squared(*top_label(logits, labels), phi=phi)


def sb_ece(logits: Tensor, labels: Tensor, *, bins: int = 15, temperature: float = 0.01) -> Tensor:
    """Soft-binned calibration error, l2.

    Args:
        logits: `[n, classes]`.
        labels: `[n]`, class indices.
        bins: number of bins.
        temperature: how soft the membership of a bin is.

    Returns:
        The loss, a scalar.

    Example:
        >>> sb_ece(torch.tensor([[4.0, 0.0], [4.0, 0.0]]), torch.tensor([0, 1]))
        tensor(0.4820, dtype=torch.float64)

    Paper: Karandikar et al. 2021; formula at `orbical.calibration.sb_ece`.
    """
    confidence, correct = top_label(logits, labels)
    return calibration.sb_ece(confidence, correct, bins=bins, temperature=temperature)


def s_avuc(
    logits: Tensor, labels: Tensor, *, kappa: float = 0.5, temperature: float = 0.1
) -> Tensor:
    """Soft accuracy-versus-uncertainty loss: right answers certain, wrong ones uncertain.

    Args:
        logits: `[n, classes]`.
        labels: `[n]`, class indices.
        kappa: the normalised entropy that separates certain from uncertain.
        temperature: how soft the separation is.

    Returns:
        The loss, a scalar.

    Example:
        >>> s_avuc(torch.tensor([[2.0, 0.0], [2.0, 0.0]]), torch.tensor([0, 1]))
        tensor(0.6931, dtype=torch.float64)

    Paper: Karandikar et al. 2021; formula at `orbical.calibration.s_avuc`.
    """
    scores = _checked(logits, labels)
    with torch.autocast(scores.device.type, enabled=False):
        return calibration.s_avuc(
            logits=scores, labels=labels, kappa=kappa, temperature=temperature
        )


def ece(logits: Tensor, labels: Tensor, *, bins: int = 20) -> Tensor:
    """Binned calibration error (l1, equal width) with each sample's bin held fixed.

        sum_b |sum_{i in b} (correct_i - z_i)| / n

    Biased in small batches, where it trains badly; 20 bins as in the ESD paper.

    Args:
        logits: `[n, classes]`.
        labels: `[n]`, class indices.
        bins: number of bins.

    Returns:
        The loss, a scalar.

    Example:
        >>> ece(torch.tensor([[4.0, 0.0], [4.0, 0.0]]), torch.tensor([0, 1]))
        tensor(0.4820, dtype=torch.float64)

    Paper: ESD, section 7.3 and table 3 (eq. 3 is misprinted).
    """
    return calibration.ece_loss(*top_label(logits, labels), bins=bins)


def _matched(target: Tensor, **parameters: Tensor) -> None:
    """Check that every parameter fits the target, and that all but the centre are positive."""
    if target.ndim == 0 or target.numel() == 0:
        raise InputError(f"target: got shape {tuple(target.shape)}, expected [n] or [n, d]")
    for name, value in parameters.items():
        try:
            fits = torch.broadcast_shapes(value.shape, target.shape) == target.shape
        except RuntimeError:
            fits = False
        if not fits:
            raise InputError(
                f"{name}: got shape {tuple(value.shape)}, "
                f"expected one that fits target {tuple(target.shape)}"
            )
        if name in ("mean", "gamma") or not _values_can_be_read(value):
            continue
        if not bool((value > 0).all()):
            raise InputError(f"{name}: expected positive values, got {float(value.min())}")


def _mean_over_samples(terms: Tensor) -> Tensor:
    return terms.reshape(len(terms), -1).sum(-1).mean()


def gaussian_nll(mean: Tensor, variance: Tensor, target: Tensor) -> Tensor:
    """Negative log-density of a Gaussian with independent coordinates.

        (log(2 pi s) + (y - m)^2 / s) / 2, summed over coordinates, averaged over samples

    Args:
        mean: `[n]` for scalar targets, `[n, d]` for vectors.
        variance: positive, of the same shape, or `[n, 1]` for one variance a vector.
        target: `[n]` or `[n, d]`.

    Returns:
        The loss, a scalar.

    Example:
        >>> gaussian_nll(torch.zeros(2), torch.ones(2), torch.tensor([1.0, -1.0]))
        tensor(1.4189)
    """
    _matched(target, mean=mean, variance=variance)
    squared = (target - mean).square()
    return _mean_over_samples((torch.log(2 * math.pi * variance) + squared / variance) / 2)


def beta_nll(mean: Tensor, variance: Tensor, target: Tensor, *, beta: float = 0.5) -> Tensor:
    """Gaussian negative log-density, each coordinate weighted by its variance to the power beta.

        stop_gradient(s^beta) * (log(2 pi s) + (y - m)^2 / s) / 2, summed over coordinates

    The weight keeps samples of large variance from being ignored: beta = 0 is `gaussian_nll`, and
    beta = 1 gives the mean the gradient of the squared error.

    Args:
        mean: `[n]` or `[n, d]`.
        variance: positive, of the same shape, or `[n, 1]`.
        target: `[n]` or `[n, d]`.
        beta: in 0..1.

    Returns:
        The loss, a scalar.

    Example:
        >>> beta_nll(torch.zeros(2), torch.full((2,), 4.0), torch.tensor([1.0, -1.0]), beta=1.0)
        tensor(6.9483)

    Paper: Seitzer et al. 2022; the equivariance paper's appendix B, which averages over
    coordinates where this sums.
    """
    _matched(target, mean=mean, variance=variance)
    if not 0 <= beta <= 1:
        raise InputError(f"beta: got {beta}, expected a number in 0..1")
    squared = (target - mean).square()
    terms = (torch.log(2 * math.pi * variance) + squared / variance) / 2
    return _mean_over_samples(variance.detach() ** beta * terms)


def nig_nll(gamma: Tensor, nu: Tensor, alpha: Tensor, beta: Tensor, target: Tensor) -> Tensor:
    """Evidential negative log-density: Student's t from a normal-inverse-gamma prior.

        y ~ t with 2 alpha degrees of freedom, centre gamma, scale sqrt(beta (1+nu) / (alpha nu))
        omega = 2 beta (1 + nu)
        log(pi / nu) / 2 - alpha log omega + (alpha + 1/2) log(nu (y - gamma)^2 + omega)
          + log Gamma(alpha) - log Gamma(alpha + 1/2)

    summed over coordinates, averaged over samples. The aleatoric variance beta / (alpha - 1) and
    the epistemic one beta / (nu (alpha - 1)) exist for alpha > 1 only.

    Args:
        gamma: `[n]` for scalar targets, `[n, d]` for vectors.
        nu: positive, fits the target's shape; alpha and beta likewise.
        alpha: positive.
        beta: positive.
        target: `[n]` or `[n, d]`.

    Returns:
        The loss, a scalar.

    Example:
        >>> one = torch.ones(1, dtype=torch.float64)
        >>> nig_nll(0 * one, one, 2 * one, one, one)  # -log t(1; 4 degrees, scale 1)
        tensor(1.5387, dtype=torch.float64)

    Paper: the equivariance paper's appendix E (after Amini et al. 2020), which is right; the
    density printed in its section 3.5 has sqrt(sigma) for sigma and does not integrate to 1.
    """
    _matched(target, gamma=gamma, nu=nu, alpha=alpha, beta=beta)
    omega = 2 * beta * (1 + nu)
    return _mean_over_samples(
        torch.log(math.pi / nu) / 2
        - alpha * torch.log(omega)
        + (alpha + 0.5) * torch.log(nu * (target - gamma).square() + omega)
        + torch.lgamma(alpha)
        - torch.lgamma(alpha + 0.5)
    )


def nig_regulariser(gamma: Tensor, nu: Tensor, alpha: Tensor, target: Tensor) -> Tensor:
    """What evidence costs where the prediction is wrong: `|y - gamma| (2 nu + alpha)`.

    Add it to `nig_nll` with a weight (0.1 or 1 in the paper); summed over coordinates, averaged
    over samples.

    Args:
        gamma: `[n]` or `[n, d]`.
        nu: positive, fits the target's shape; alpha likewise.
        alpha: positive.
        target: `[n]` or `[n, d]`.

    Returns:
        The penalty, a scalar.

    Example:
        >>> one = torch.ones(2)
        >>> nig_regulariser(0 * one, one, 2 * one, 3 * one)
        tensor(12.)

    Paper: the equivariance paper's appendix E.
    """
    _matched(target, gamma=gamma, nu=nu, alpha=alpha)
    return _mean_over_samples((target - gamma).abs() * (2 * nu + alpha))


class _Gather(torch.autograd.Function):
    """All ranks' rows, in the order of ranks.

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

    Calibration losses are not sums over samples: the mean of the ranks' losses is another number
    than the loss of the whole batch. Under DDP, which averages gradients over ranks,

        loss = cross_entropy(logits, labels) + weight * esd(*gather_across_ranks(held, held_labels))

    has the gradient of one process with the concatenated batches. Every rank must compute the
    same loss from what this returns. Without a process group it returns what it is given.

    Args:
        logits: `[n, classes]`; n may differ between ranks.
        labels: `[n]`.

    Returns:
        logits and labels of all ranks, in the order of ranks; differentiable in the logits.

    Example:
        >>> gathered, _ = gather_across_ranks(torch.zeros(2, 3), torch.tensor([0, 1]))
        >>> gathered.shape  # one process: unchanged
        torch.Size([2, 3])
    """
    if len(logits) != len(labels):
        raise InputError(f"labels: got {len(labels)}, expected {len(logits)}, one a row of logits")
    if not (distributed.is_available() and distributed.is_initialized()):
        return logits, labels
    counts = [
        torch.zeros(1, dtype=torch.int64, device=logits.device)
        for _ in range(distributed.get_world_size())
    ]
    distributed.all_gather(counts, torch.full_like(counts[0], len(logits)))
    sizes = [int(count) for count in counts]
    return _Gather.apply(logits, sizes), _Gather.apply(labels, sizes)
