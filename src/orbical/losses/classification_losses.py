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
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from .._arrays import (
    ArrayLike,
    as_array,
    as_floating,
    both_classes,
    can_inspect,
    check_range,
    labels_of,
    warn_of_probabilities,
)
from ..calibration import (
    Formula,
    avuc_with_slope,
    can_fuse,
    check_weights,
    differentiable,
    esd_with_slope,
    fixed_bins_with_slope,
    mmce_with_slope,
    sb_ece_with_slope,
    softened,
    softmax,
    weights_of,
    without_ignored,
)
from ..errors import InputError, number_of_bins, real_number

__all__ = ["ece", "esd", "esd_softened", "mmce", "s_avuc", "sb_ece"]


_LARGEST = 4096, 1024
"""Samples and classes up to which a GPU does better with the kernels of `_triton_kernels`."""

_LEAST_PHI = 1 / 300
"""Width down to which the two factors of MMCE's kernel neither overflow nor lose digits."""


def _top_label(
    scores: Tensor, truth: Tensor, mass: Tensor | None, formula: Formula, *settings: object
) -> tuple[Tensor, Tensor]:
    """Apply a formula to the confidences, whose gradient by the logits is `c (1_k - p)`."""
    if (kernel := _kernel_of(formula, scores, mass, settings)) is not None:
        return kernel(scores, truth, *settings)
    shares = softmax(scores)
    confidence, predicted = shares.max(-1)
    value, slope = formula(confidence, predicted == truth, mass, *settings)
    pull = (slope * confidence).unsqueeze(1)
    return value, (shares * -pull).scatter_add_(1, predicted.unsqueeze(1), pull)


def _entropy(
    scores: Tensor, truth: Tensor, mass: Tensor | None, formula: Formula, *settings: object
) -> tuple[Tensor, Tensor]:
    """Apply a formula to the shares of the entropy H; its gradient is `-p (log p + H) / log C`."""
    if (kernel := _kernel_of(formula, scores, mass, settings)) is not None:
        return kernel(scores, truth, *settings)
    shares = softmax(scores)
    logs = shares.clamp(min=torch.finfo(shares.dtype).tiny).log()
    entropy = -(shares * logs).sum(-1)
    unit = 1 / math.log(shares.shape[-1])
    certain = (entropy * unit).clamp(0, 1), shares.detach().argmax(-1) == truth
    value, slope = formula(*certain, mass, *settings)
    return value, shares * (logs + entropy[:, None]) * (slope * -unit)[:, None]


def _kernel_of(
    formula: Formula, scores: Tensor, mass: Tensor | None, settings: tuple[Any, ...]
) -> Formula | None:
    """Return the kernels of a formula, where there are some for such logits."""
    if not can_fuse(scores, mass) or scores.dtype == torch.float64:
        return None
    (n, classes), (most, widest) = scores.shape, _LARGEST
    if n > most or classes > widest or (formula is mmce_with_slope and settings[0] < _LEAST_PHI):
        return None
    from . import _triton_kernels  # imports Triton, which only some installations have

    kernels: dict[Formula, Formula] = {
        esd_with_slope: _triton_kernels.esd,
        mmce_with_slope: _triton_kernels.mmce,
        sb_ece_with_slope: _triton_kernels.sb_ece,
        fixed_bins_with_slope: _triton_kernels.ece,
        avuc_with_slope: _triton_kernels.s_avuc,
    }
    return kernels.get(formula)


def _read(
    logits: ArrayLike,
    labels: ArrayLike,
    weights: ArrayLike | None,
    ignore_index: int | None,
    minimum: int = 1,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return logits `[n, classes]`, and labels and weights `[n]`.

    Ignored samples get the weight 0 instead of being removed: no shape depends on values.
    """
    given = as_floating("logits", logits)
    if given.ndim == 0:
        raise InputError("logits", "shape [n, classes, ...]", "a single number")
    scores = both_classes(given, logits=True, axis=1)
    if scores.ndim > 2:
        labels = _flattened("labels", labels, scores)
        weights = None if weights is None else _flattened("weights", weights, scores)
        scores = scores.movedim(1, -1).reshape(-1, scores.shape[1])
    if len(scores) < minimum:
        raise InputError(
            "logits",
            f"at least {minimum} samples",
            len(scores),
            remedy="a DataLoader with drop_last=True leaves out a short last batch",
        )
    truth = labels_of(scores, labels)
    mass = weights_of(truth, weights)
    inspect = can_inspect(scores)
    if inspect:
        check_range(truth, scores.shape[1], ignore_index)
        warn_of_probabilities(scores, "pass the scores before the softmax")
    truth, mass = without_ignored(truth, mass, ignore_index)
    if inspect and mass is not None:
        check_weights(mass, minimum, ignore_index)
    return scores, truth, mass


def _of_numbers(loss: Tensor) -> Tensor:
    """Return a loss that is a number; one value that is not makes all of it none."""
    if can_inspect(loss) and math.isnan(loss.item()):
        raise InputError(
            "logits", "finite values", "NaN or infinity", remedy="has the training diverged?"
        )
    return loss


def _flattened(name: str, values: ArrayLike, scores: Tensor) -> Tensor:
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


def _zero_below(minimum: int) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """Make a loss 0, gradient included, where fewer samples than `minimum` are not ignored.

    Then all samples are given some class, so that the gradient is finite, and the loss is
    multiplied by 0: neither a shape nor a branch depends on values.
    """

    def decorate(loss: Callable[..., Tensor]) -> Callable[..., Tensor]:
        @wraps(loss)
        def guarded(
            logits: ArrayLike,
            labels: ArrayLike,
            *,
            ignore_index: int | None = None,
            **settings: ArrayLike | None,
        ) -> Tensor:
            if ignore_index is None:
                return loss(logits, labels, **settings)
            truth = as_array("labels", labels)
            enough = (truth != ignore_index).sum() >= minimum
            some_class = int(ignore_index == 0)
            truth = torch.where(enough, truth, some_class)
            return loss(logits, truth, ignore_index=ignore_index, **settings) * enough

        return guarded

    return decorate


@_zero_below(3)
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
    batch = _read(logits, labels, weights, ignore_index, minimum=3)
    return _of_numbers(differentiable(_top_label, *batch, esd_with_slope))


@_zero_below(3)
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
    scores, truth, mass = _read(logits, labels, weights, ignore_index, minimum=3)
    confidence, predicted = softmax(scores).max(-1)
    return _of_numbers(softened(confidence, predicted == truth, mass, width))


@_zero_below(1)
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
    batch = _read(logits, labels, weights, ignore_index)
    return _of_numbers(differentiable(_top_label, *batch, mmce_with_slope, phi))


@_zero_below(1)
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
    bins = number_of_bins(bins)
    real_number("temperature", temperature, "> 0")
    batch = _read(logits, labels, weights, ignore_index)
    return _of_numbers(differentiable(_top_label, *batch, sb_ece_with_slope, bins, temperature))


@_zero_below(1)
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
    batch = _read(logits, labels, weights, ignore_index)
    return _of_numbers(differentiable(_entropy, *batch, avuc_with_slope, kappa, temperature))


@_zero_below(1)
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
    bins = number_of_bins(bins)
    batch = _read(logits, labels, weights, ignore_index)
    return _of_numbers(differentiable(_top_label, *batch, fixed_bins_with_slope, bins, "l1"))
