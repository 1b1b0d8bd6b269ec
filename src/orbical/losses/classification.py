"""Losses of classifiers: calibration measures of the top label, on logits and labels."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import calibration
from ..errors import InputError
from .reading import values_can_be_read


def _checked(logits: Tensor, labels: Tensor) -> Tensor:
    """Check logits `[n, classes]` and labels `[n]`; return the logits in float32 at least."""
    for name, given in (("logits", logits), ("labels", labels)):
        if not isinstance(given, Tensor):
            raise InputError(
                f"{name}: got {type(given).__name__}, expected a torch tensor (a loss trains; "
                "orbical.calibration measures any array)"
            )
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
    if values_can_be_read(labels) and len(labels):
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
    if values_can_be_read(confidence) and bool(confidence.isnan().any()):
        raise InputError("logits: contains NaN or infinity; has the training diverged?")
    return confidence, predicted == labels


def _at_least_three(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    pair = top_label(logits, labels)
    if len(logits) < 3:
        raise InputError(
            f"logits: got {len(logits)} samples, expected at least 3 (drop_last=True of a "
            "DataLoader leaves out a short last batch)"
        )
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
        kappa: the normalized entropy that separates certain from uncertain.
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
