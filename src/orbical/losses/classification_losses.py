"""Losses of classifiers: calibration measures of the top label, on logits and labels.

As in `torch.nn.functional.cross_entropy`, logits may be dense, `[n, classes, ...]` with labels and
weights `[n, ...]`: every position is a sample. One logit, `[n]` or `[n, 1, ...]`, is that of
class 1 of two, as in `torch.nn.functional.binary_cross_entropy_with_logits`.

Where `ignore_index` leaves fewer samples than a loss needs (three for ESD, else one), the loss is 0
and so is its gradient: a batch without labels adds nothing to an objective. `cross_entropy` returns
NaN there, which would end a training run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .._arrays import (
    ArrayLike,
    as_array,
    as_floating,
    as_label_array,
    both_classes,
    can_inspect_array,
    check_label_range,
    warn_of_probabilities,
)
from ..calibration import (
    Formula,
    can_fuse_gradient,
    check_weights,
    cumulative_esd_softened,
    differentiable,
    esd_with_slope,
    fixed_bins_with_slope,
    mmce_with_slope,
    sb_ece_with_slope,
    soft_avuc_with_slope,
    softmax,
    unchecked_sample_weights,
    without_ignored,
)
from ..errors import InputError, number_of_bins, real_number

__all__ = ["ece", "esd", "esd_softened", "mmce", "s_avuc", "sb_ece"]


_LARGEST = 4096, 1024
"""Samples and classes up to which a GPU does better with the kernels of `_triton_kernels`."""

_LEAST_PHI = 1 / 300
"""Width down to which the two factors of MMCE's kernel neither overflow nor lose digits."""


_KERNELS = {
    esd_with_slope: "launch_triton_esd",
    mmce_with_slope: "launch_triton_mmce",
    sb_ece_with_slope: "launch_triton_sb_ece",
    fixed_bins_with_slope: "launch_triton_ece",
    soft_avuc_with_slope: "launch_triton_s_avuc",
}
"""The function of `_triton_kernels` for each formula."""


def _loss_gradient_by_logits(
    scores: Tensor, truth: Tensor, mass: Tensor | None, formula: Formula, *settings: Any
) -> tuple[Tensor, Tensor]:
    """Apply a formula to what it takes, and return its gradient by the logits."""
    if _has_kernel(scores, mass, formula, settings):
        from . import _triton_kernels  # imports Triton, which only some installations have

        found: tuple[Tensor, Tensor] = getattr(_triton_kernels, _KERNELS[formula])(
            scores, truth, *settings
        )
        return found
    shares = softmax(scores)
    if formula is not soft_avuc_with_slope:  # of the confidence: the gradient is `c (1_k - p)`
        confidence, predicted = shares.max(-1)
        value, slope = formula(confidence, predicted == truth, mass, *settings)
        pull = (slope * confidence).unsqueeze(1)
        return value, (shares * -pull).scatter_add_(1, predicted.unsqueeze(1), pull)
    # Of the share of the entropy H: the gradient is `-p (log p + H) / log C`.
    logs = shares.clamp(min=torch.finfo(shares.dtype).tiny).log()
    entropy = -(shares * logs).sum(-1)
    unit = 1 / math.log(shares.shape[-1])
    certain = (entropy * unit).clamp(0, 1), shares.detach().argmax(-1) == truth
    value, slope = formula(*certain, mass, *settings)
    return value, shares * (logs + entropy[:, None]) * (slope * -unit)[:, None]


def _has_kernel(
    scores: Tensor, mass: Tensor | None, formula: Formula, settings: tuple[Any, ...]
) -> bool:
    """Check whether a formula has kernels for such logits."""
    if not can_fuse_gradient(scores, mass) or scores.dtype == torch.float64:
        return False
    (n, classes), (most, widest) = scores.shape, _LARGEST
    narrow = formula is mmce_with_slope and settings[0] < _LEAST_PHI
    return n <= most and classes <= widest and not narrow


def _of_formula(formula: Formula, *settings: Any) -> Callable[..., Tensor]:
    """Return a loss of logits, truth and weights that knows its gradient."""
    return lambda *batch: differentiable(_loss_gradient_by_logits, *batch, formula, *settings)


def _classification_loss(
    evaluate: Callable[..., Tensor],
    logits: ArrayLike,
    labels: ArrayLike,
    weights: ArrayLike | None,
    ignore_index: int | None,
    minimum: int = 1,
) -> Tensor:
    """Read a batch and evaluate a loss, 0 where fewer samples than `minimum` are not ignored.

    Then all samples are given some class, so that the gradient is finite, and the loss is
    multiplied by 0: neither a shape nor a branch depends on values.
    """
    enough = None
    if ignore_index is not None:
        truth = as_array("labels", labels)
        enough = (truth != ignore_index).sum() >= minimum
        labels = torch.where(enough, truth, int(ignore_index == 0))
    loss = evaluate(*_read_logits_and_labels(logits, labels, weights, ignore_index, minimum))
    if can_inspect_array(loss) and math.isnan(
        loss.item()
    ):  # one value that is no number spoils the sum
        raise InputError(
            "logits", "finite values", "NaN or infinity", remedy="has the training diverged?"
        )
    return loss if enough is None else loss * enough


def _read_logits_and_labels(
    logits: ArrayLike,
    labels: ArrayLike,
    weights: ArrayLike | None,
    ignore_index: int | None,
    minimum: int,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return logits `[n, classes]`, and labels and weights `[n]`.

    Ignored samples get the weight 0 instead of being removed: no shape depends on values.
    """
    given = as_floating("logits", logits)
    if given.ndim == 0:
        raise InputError("logits", "shape [n, classes, ...]", "a single number")
    scores = both_classes(given, logits=True, axis=1)
    if scores.ndim > 2:
        labels = _flattened_labels_of_loss("labels", labels, scores)
        weights = None if weights is None else _flattened_labels_of_loss("weights", weights, scores)
        scores = scores.movedim(1, -1).reshape(-1, scores.shape[1])
    if len(scores) < minimum:
        raise InputError(
            "logits",
            f"at least {minimum} samples",
            len(scores),
            remedy="a DataLoader with drop_last=True leaves out a short last batch",
        )
    truth = as_label_array(scores, labels)
    mass = unchecked_sample_weights(truth, weights)
    inspect = can_inspect_array(scores)
    if inspect:
        check_label_range(truth, scores.shape[1], ignore_index)
        warn_of_probabilities(scores, "pass the scores before the softmax")
    truth, mass = without_ignored(truth, mass, ignore_index)
    if inspect and mass is not None:
        check_weights(mass, minimum, ignore_index)
    return scores, truth, mass


def _flattened_labels_of_loss(name: str, values: ArrayLike, scores: Tensor) -> Tensor:
    """Read a value for each position of dense predictions `[n, classes, ...]`, in one axis."""
    shape, given = (len(scores), *scores.shape[2:]), as_array(name, values, scores.device)
    if given.shape != shape:
        raise InputError(
            name,
            f"shape {shape}, as logits are {tuple(scores.shape)}",
            given,
            remedy="for logits with the classes last pass logits.movedim(-1, 1)",
        )
    return given.reshape(-1)


def esd(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    ignore_index: int | None = None,
) -> Tensor:
    """Return the expected squared difference of the top label: bin-free, unbiased, nothing to tune.

        S_i = sum_{j != i, z_j <= z_i} (correct_j - z_j),   Q_i the same sum of squares
        ESD = sum_i (S_i^2 - Q_i) / (N (N-1) (N-2))

    Paper: ESD, eq. 10, in O(n log n) where the paper's code takes O(n^2). Its appendix D calls
    the gradient unbiased; it is not. Weights as in `orbical.calibration.esd`.

    Args:
        logits: `[n, classes]`, n >= 3, or `[n, classes, ...]`.
        labels: `[n]` or `[n, 1]`, class indices; `[n, ...]` if logits are dense.
        weights: sample weights >= 0, of the labels' shape; 1 by default.
        ignore_index: samples with this label do not count.

    Returns:
        The loss, a scalar; it may be negative. Its gradient holds the order of the confidences
        fixed, which is biased: see `esd_softened`.

    Raises:
        InputError: if an argument does not fit; values are checked on the CPU only.

    See Also:
        ESDLoss: As a module.
        orbical.calibration.esd: The measure.

    References:
        Yoon et al., ESD: expected squared difference as a tuning-free trainable calibration
        measure, ICLR 2023.

    Example:
        >>> import torch
        >>> logits = torch.tensor([[4.0, 0.0], [3.0, 0.0], [0.0, 2.0], [5.0, 0.0]])
        >>> esd(logits, torch.tensor([0, 1, 1, 1]))
        tensor(-0.0202, dtype=torch.float64)
    """
    return _classification_loss(
        _of_formula(esd_with_slope), logits, labels, weights, ignore_index, minimum=3
    )


def esd_softened(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    width: float = 0.01,
    weights: ArrayLike | None = None,
    ignore_index: int | None = None,
) -> Tensor:
    """Return ESD with a softened indicator, whose gradient also sees samples that change order.

    Paper: ours; it corrects the bias that the ESD paper's appendix D overlooks. Formula at
    `orbical.calibration.esd_softened`.

    Args:
        logits: `[n, classes]`, n >= 3, or `[n, classes, ...]`.
        labels: `[n]` or `[n, 1]`, class indices; `[n, ...]` if logits are dense.
        width: how soft, in units of confidence.
        weights: sample weights >= 0, of the labels' shape; 1 by default.
        ignore_index: samples with this label do not count.

    Returns:
        The loss, a scalar.

    Raises:
        InputError: if an argument does not fit; values are checked on the CPU only.

    Example:
        >>> import torch
        >>> logits = torch.tensor([[4.0, 0.0], [3.0, 0.0], [0.0, 2.0], [5.0, 0.0]])
        >>> esd_softened(logits, torch.tensor([0, 1, 1, 1]), width=1e-4)
        tensor(-0.0202, dtype=torch.float64)
    """
    real_number("width", width, "> 0")

    def evaluate(scores: Tensor, truth: Tensor, mass: Tensor | None) -> Tensor:
        confidence, predicted = softmax(scores).max(-1)
        return cumulative_esd_softened(confidence, predicted == truth, mass, width)

    return _classification_loss(evaluate, logits, labels, weights, ignore_index, minimum=3)


def mmce(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    phi: float = 0.4,
    weights: ArrayLike | None = None,
    ignore_index: int | None = None,
) -> Tensor:
    """Return the squared maximum mean calibration error with the Laplacian kernel.

        sum_ij d_i d_j exp(-|z_i - z_j| / phi) / n^2,    d = correct - z

    The square, not its root: the root has no gradient at zero error.

    Paper: Kumar et al. 2018, the unweighted form, as the ESD paper uses it.

    Args:
        logits: `[n, classes]` or `[n, classes, ...]`.
        labels: `[n]` or `[n, 1]`, class indices; `[n, ...]` if logits are dense.
        phi: the width of the kernel, the papers' φ.
        weights: sample weights >= 0, of the labels' shape; 1 by default.
        ignore_index: samples with this label do not count.

    Returns:
        The loss, a scalar.

    Raises:
        InputError: if an argument does not fit; values are checked on the CPU only.

    See Also:
        MMCELoss: As a module.
        orbical.calibration.mmce_squared: The measure.

    References:
        Kumar et al., Trainable calibration measures for neural networks from kernel mean
        embeddings, ICML 2018.

    Example:
        >>> import torch
        >>> mmce(torch.tensor([[4.0, 0.0], [4.0, 0.0]]), torch.tensor([0, 1]))
        tensor(0.2323, dtype=torch.float64)
    """
    real_number("phi", phi, "> 0")
    return _classification_loss(
        _of_formula(mmce_with_slope, phi), logits, labels, weights, ignore_index
    )


def sb_ece(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    bins: int = 15,
    temperature: float = 0.01,
    weights: ArrayLike | None = None,
    ignore_index: int | None = None,
) -> Tensor:
    """Return the soft-binned calibration error, l2.

    Paper: Karandikar et al. 2021; formula at `orbical.calibration.sb_ece`.

    Args:
        logits: `[n, classes]` or `[n, classes, ...]`.
        labels: `[n]` or `[n, 1]`, class indices; `[n, ...]` if logits are dense.
        bins: the number of bins.
        temperature: how soft the membership of a bin is, the paper's T.
        weights: sample weights >= 0, of the labels' shape; 1 by default.
        ignore_index: samples with this label do not count.

    Returns:
        The loss, a scalar.

    Raises:
        InputError: if an argument does not fit; values are checked on the CPU only.

    See Also:
        SBECELoss: As a module.
        orbical.calibration.sb_ece: The measure.

    References:
        Karandikar et al., Soft calibration objectives for neural networks, NeurIPS 2021.

    Example:
        >>> import torch
        >>> sb_ece(torch.tensor([[4.0, 0.0], [4.0, 0.0]]), torch.tensor([0, 1]))
        tensor(0.4820, dtype=torch.float64)
    """
    real_number("temperature", temperature, "> 0")
    formula = _of_formula(sb_ece_with_slope, number_of_bins(bins), temperature)
    return _classification_loss(formula, logits, labels, weights, ignore_index)


def s_avuc(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    kappa: float = 0.5,
    temperature: float = 0.1,
    weights: ArrayLike | None = None,
    ignore_index: int | None = None,
) -> Tensor:
    """Return the soft accuracy-versus-uncertainty loss: certain where right, uncertain where wrong.

    Paper: Karandikar et al. 2021; formula at `orbical.calibration.s_avuc`.

    Args:
        logits: `[n, classes]` or `[n, classes, ...]`.
        labels: `[n]` or `[n, 1]`, class indices; `[n, ...]` if logits are dense.
        kappa: the normalized entropy that separates certain from uncertain, the paper's κ.
        temperature: how soft the separation is, the paper's T.
        weights: sample weights >= 0, of the labels' shape; 1 by default.
        ignore_index: samples with this label do not count.

    Returns:
        The loss, a scalar.

    Raises:
        InputError: if an argument does not fit; values are checked on the CPU only.

    See Also:
        SAvUCLoss: As a module.
        orbical.calibration.s_avuc: The measure.

    References:
        Karandikar et al., Soft calibration objectives for neural networks, NeurIPS 2021.

    Example:
        >>> import torch
        >>> s_avuc(torch.tensor([[2.0, 0.0], [2.0, 0.0]]), torch.tensor([0, 1]))
        tensor(0.6931, dtype=torch.float64)
    """
    real_number("kappa", kappa, "in (0, 1)")
    real_number("temperature", temperature, "> 0")
    formula = _of_formula(soft_avuc_with_slope, kappa, temperature)
    return _classification_loss(formula, logits, labels, weights, ignore_index)


def ece(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    bins: int = 20,
    weights: ArrayLike | None = None,
    ignore_index: int | None = None,
) -> Tensor:
    """Return the binned calibration error (l1, equal width) with each sample's bin held fixed.

        sum_b |sum_{i in b} (correct_i - z_i)| / n

    Biased in small batches, where it trains badly in the ESD paper; 20 bins as there.

    Paper: ESD, section 7.3 and table 3 (eq. 3 is misprinted).

    Args:
        logits: `[n, classes]` or `[n, classes, ...]`.
        labels: `[n]` or `[n, 1]`, class indices; `[n, ...]` if logits are dense.
        bins: the number of bins.
        weights: sample weights >= 0, of the labels' shape; 1 by default.
        ignore_index: samples with this label do not count.

    Returns:
        The loss, a scalar.

    Raises:
        InputError: if an argument does not fit; values are checked on the CPU only.

    Example:
        >>> import torch
        >>> ece(torch.tensor([[4.0, 0.0], [4.0, 0.0]]), torch.tensor([0, 1]))
        tensor(0.4820, dtype=torch.float64)
    """
    formula = _of_formula(fixed_bins_with_slope, number_of_bins(bins), "l1")
    return _classification_loss(formula, logits, labels, weights, ignore_index)
