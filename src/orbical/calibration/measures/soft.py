"""Calibration errors made differentiable: soft bins and soft counts."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..._arrays import ArrayLike
from ...errors import errors_with_usage, number_of_bins, real_number
from ..numerics.gradients import differentiable, differentiable_root
from ..pairs.from_outputs import entropy_share_of_outputs, named_outputs, probabilities, top_label
from ..pairs.pairs_and_weights import labels_and_weights, pair

__all__ = ["s_avuc", "sb_ece"]


_TINY = torch.finfo(torch.float64).tiny
"""A divisor in place of 0, where what is divided is 0 too."""


@errors_with_usage()
def sb_ece(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    bins: int = 15,
    temperature: float = 0.01,
    weights: ArrayLike | None = None,
) -> Tensor:
    """Return the soft-binned ECE of Karandikar et al. (2021), in the l2 norm they train with.

        u_ij = softmax_j(-(z_i - center_j)^2 / T),   S_j = sum_i w_i u_ij
        SB-ECE = (sum_j S_j |A_j - C_j|^2 / sum_j S_j)^(1/2)

    with A_j and C_j the accuracy and confidence of bin j, weighted by membership, and centers in
    the middle of equal-width bins. The gradient at zero error is 0.

    Args:
        confidence: `[..., N]` in [0, 1]; differentiable.
        correct: `[..., N]` boolean, or values in [0, 1].
        bins: the number of bins.
        temperature: how soft membership is; bins are hard in the limit 0.
        weights: `[..., N]` sample weights >= 0; 1 by default.

    Returns:
        The error `[...]`, float64.

    Raises:
        InputError: if the arrays do not fit together, or hold values outside of [0, 1].

    See Also:
        ece: With hard bins.
        orbical.losses.sb_ece: As a loss, on logits.

    References:
        Karandikar et al., Soft calibration objectives for neural networks, NeurIPS 2021.

    Example:
        >>> sb_ece([0.9, 0.9, 0.9], [True, False, False], bins=5, temperature=1e-4)
        tensor(0.5667, dtype=torch.float64)
    """
    confidence, correct, mass = pair(confidence, correct, weights=weights)
    bins = number_of_bins(bins)
    real_number("temperature", temperature, "> 0")
    return differentiable(sb_ece_with_slope, confidence, correct, mass, bins, temperature)


def sb_ece_with_slope(
    confidence: Tensor, correct: Tensor, mass: Tensor | None, bins: int, temperature: float
) -> tuple[Tensor, Tensor]:
    """Return `sb_ece` of checked tensors `[..., N]`, and its gradient by confidence.

    With `r_j = A_j - C_j`, means over the bins of a sample, `<x>_i = sum_j u_ij x_j`, and V, W the
    error and the weight of all:

        dV/dz_i = w_i ((2 d_i cov_i(r, center) - cov_i(r^2, center)) / T - <r>_i) / (V W)
    """
    z = confidence.double()
    d = correct.double() - z
    centers = _centers(bins, z.device)
    shares = _shares(z, centers, temperature)
    size, gap = _sums_of(shares, d, mass)
    total = z.shape[-1] if mass is None else mass.sum(-1)
    r = gap / size.clamp(min=_TINY)  # a bin far from all samples has size 0 and adds 0
    value = differentiable_root(torch.linalg.vecdot(gap, r) / total)
    pull = shares * r[..., None, :] * ((2 * d)[..., None] - r[..., None, :])
    bend = pull @ centers - pull.sum(-1) * (shares @ centers)
    slope = bend / temperature - (shares @ r[..., None])[..., 0]
    slope = slope / (value * total).clamp(min=_TINY)[..., None]
    return value, (slope if mass is None else slope * mass).to(confidence.dtype)


def soft_bin_sums(
    confidence: Tensor, correct: Tensor, bins: int, temperature: float, mass: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the size and the summed `correct - confidence` of each soft bin, `[..., B]`.

    Example:
        >>> size, gap = soft_bin_sums(torch.tensor([0.9]), torch.tensor([True]), 2, 1e-3)
        >>> size.sum()
        tensor(1., dtype=torch.float64)
    """
    z = confidence.double()
    return _sums_of(soft_membership(z, bins, temperature), correct.double() - z, mass)


def _sums_of(shares: Tensor, d: Tensor, mass: Tensor | None) -> tuple[Tensor, Tensor]:
    """Sum shares `[..., N, B]`, and their products with differences `[..., N]`, over samples."""
    if mass is None:
        return shares.sum(-2), (d[..., None, :] @ shares)[..., 0, :]
    sums = torch.stack([mass.expand_as(d), d * mass], -2) @ shares
    return sums[..., 0, :], sums[..., 1, :]


def soft_membership(confidence: Tensor, bins: int, temperature: float) -> Tensor:
    """Return the share of each confidence in each soft bin, `[..., B]`."""
    return _shares(confidence, _centers(bins, confidence.device), temperature)


def _centers(bins: int, device: torch.device) -> Tensor:
    return (torch.arange(bins, dtype=torch.float64, device=device) + 0.5) / bins


def _shares(confidence: Tensor, centers: Tensor, temperature: float) -> Tensor:
    # -(z - c)^2 without z^2, which all bins share
    places = centers * (2 / temperature)
    return torch.softmax(confidence[..., None] * places - centers.square() / temperature, dim=-1)


def soft_ece_from_sums(size: Tensor, gap: Tensor) -> Tensor:
    """Return SB-ECE from the sums of its bins `[..., B]`.

    Example:
        >>> soft_ece_from_sums(torch.tensor([2.0, 2.0]), torch.tensor([0.4, 0.0]))
        tensor(0.1414)
    """
    # S_j |A_j - C_j|^2 = (sum_i u_ij d_i)^2 / S_j; a bin far from all samples has size 0, adds 0.
    return differentiable_root((gap.square() / size.clamp(min=_TINY)).sum(-1) / size.sum(-1))


@named_outputs
def s_avuc(
    *,
    probs: ArrayLike | None = None,
    logits: ArrayLike | None = None,
    labels: ArrayLike,
    kappa: float = 0.5,
    temperature: float = 0.1,
    weights: ArrayLike | None = None,
    ignore_index: int | None = None,
) -> Tensor:
    """Return the soft accuracy-versus-uncertainty loss of Karandikar et al. (2021).

        t(h) = sigmoid(log(h (1-kappa) / ((1-h) kappa)) / T)
        n_AU = sum_{accurate} t tanh h,         n_AC = sum_{accurate} (1-t) (1 - tanh h)
        n_IU = sum_{inaccurate} t tanh h,       n_IC = sum_{inaccurate} (1-t) (1 - tanh h)
        S-AvUC = log(1 + (n_AU + n_IC) / (n_AC + n_IU))

    with h the entropy divided by its largest value log C: accurate predictions should be certain,
    and inaccurate ones uncertain. With weights, each sample's terms are multiplied by its weight.

    Args:
        probs: probabilities `[..., N, C]`; or
        logits: scores `[..., N, C]`; differentiable. Pass exactly one of the two.
        labels: class indices `[N]` or `[..., N]`.
        kappa: the entropy, in (0, 1), that separates certain from uncertain.
        temperature: how soft the separation is.
        weights: `[..., N]` sample weights >= 0; 1 by default.
        ignore_index: samples with this label are left out.

    Returns:
        The loss `[...]`, float64.

    Raises:
        InputError: if outputs and labels do not fit together, or rows are not probabilities.

    See Also:
        orbical.losses.s_avuc: As a loss, on logits.

    References:
        Karandikar et al., Soft calibration objectives for neural networks, NeurIPS 2021.

    Example:
        >>> s_avuc(probs=[[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
        tensor(0.0794, dtype=torch.float64)
    """
    real_number("kappa", kappa, "in (0, 1)")
    real_number("temperature", temperature, "> 0")
    p = probabilities(probs=probs, logits=logits)
    truth, mass = labels_and_weights(labels, p, weights, ignore_index)
    _, correct = top_label(probs=probs, logits=logits, labels=truth)
    return differentiable(
        soft_avuc_with_slope, entropy_share_of_outputs(p), correct, mass, kappa, temperature
    )


def avuc_of_counts(against: Tensor, for_it: Tensor) -> Tensor:
    """Return S-AvUC from the soft counts of answers whose certainty is wrong, and right.

    Example:
        >>> avuc_of_counts(torch.tensor(1.0), torch.tensor(1.0))
        tensor(0.6931)
    """
    return torch.log1p(against / for_it.clamp(min=_TINY))


def soft_avuc_with_slope(
    entropy: Tensor, correct: Tensor, mass: Tensor | None, kappa: float, temperature: float
) -> tuple[Tensor, Tensor]:
    """Return S-AvUC of normalized entropies `[..., N]`, and its gradient by them."""
    h, tanh, uncertain = _uncertainty(entropy, kappa, temperature)
    confident, flatness = 1 - uncertain, 1 - tanh
    doubtful, certain = uncertain * tanh, confident * flatness
    against, for_it = _counts(correct, doubtful, certain, mass)
    for_it = for_it.clamp(min=_TINY)
    ratio = against / for_it
    # Derivatives of t, and of the weights of an uncertain answer and of a certain one.
    steepness = uncertain * confident / (h - h * h) / temperature
    bend = flatness * (1 + tanh)
    of_doubtful = steepness * tanh + uncertain * bend
    of_certain = steepness * flatness + confident * bend  # with the opposite sign
    # dV = (d(against) - ratio d(for_it)) / (for_it + against)
    ratio_each = ratio[..., None]
    slope = torch.where(
        correct, of_doubtful + ratio_each * of_certain, -of_certain - ratio_each * of_doubtful
    )
    slope = slope / (for_it + against)[..., None]
    return ratio.log1p(), (slope if mass is None else slope * mass).to(entropy.dtype)


def avuc_counts(
    correct: Tensor, entropy: Tensor, kappa: float, temperature: float, mass: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return `n_AU + n_IC` and `n_AC + n_IU` from normalized entropies `[..., N]`."""
    _, tanh, uncertain = _uncertainty(entropy, kappa, temperature)
    return _counts(correct, uncertain * tanh, (1 - uncertain) * (1 - tanh), mass)


def _uncertainty(
    entropy: Tensor, kappa: float, temperature: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return h, tanh h and t(h) in float64; the log odds of an h of 0 or 1 would be infinite."""
    h = entropy.double().clamp(1e-12, 1 - 1e-12)
    odds = torch.logit(h) - math.log(kappa / (1 - kappa))
    return h, torch.tanh(h), torch.sigmoid(odds / temperature)


def _counts(
    correct: Tensor, doubtful: Tensor, certain: Tensor, mass: Tensor | None
) -> tuple[Tensor, Tensor]:
    against = torch.where(correct, doubtful, certain)
    for_it = torch.where(correct, certain, doubtful)
    if mass is not None:
        against, for_it = against * mass, for_it * mass
    return against.sum(-1), for_it.sum(-1)
