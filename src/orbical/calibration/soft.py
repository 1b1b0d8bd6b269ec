"""Calibration errors made differentiable: soft bins, soft counts, and bins held fixed."""

from __future__ import annotations

import torch
from torch import Tensor

from .._arrays import ArrayLike
from ..errors import InputError, check_name
from ._math import root
from .binned import bin_index
from .inputs import counted_labels, pair, positive, whole_number
from .outputs import entropy_share, probabilities, top_label

__all__ = ["ece_loss", "s_avuc", "sb_ece"]


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

    Example:
        >>> sb_ece([0.9, 0.9, 0.9], [True, False, False], bins=5, temperature=1e-4)
        tensor(0.5667, dtype=torch.float64)
    """
    confidence, correct, mass = pair(confidence, correct, weights=weights)
    whole_number("bins", bins)
    positive("temperature", temperature)
    return soft_error(*soft_sums(confidence, correct, bins, temperature, mass))


def soft_sums(
    confidence: Tensor, correct: Tensor, bins: int, temperature: float, mass: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the size and the summed `correct - confidence` of each soft bin, `[..., B]`.

    Example:
        >>> size, gap = soft_sums(torch.tensor([0.9]), torch.tensor([True]), 2, 1e-3)
        >>> size.sum()
        tensor(1., dtype=torch.float64)
    """
    z, hit = confidence.double(), correct.double()
    shares = membership(z, bins, temperature)
    shares = shares if mass is None else shares * mass[..., None]
    return shares.sum(-2), ((hit - z)[..., None] * shares).sum(-2)


def membership(confidence: Tensor, bins: int, temperature: float) -> Tensor:
    """Return the share of each confidence in each soft bin, `[..., B]`."""
    centers = (torch.arange(bins, dtype=torch.float64, device=confidence.device) + 0.5) / bins
    return torch.softmax(-(confidence[..., None] - centers).square() / temperature, dim=-1)


def soft_error(size: Tensor, gap: Tensor) -> Tensor:
    """Return SB-ECE from the sums of its bins `[..., B]`.

    Example:
        >>> soft_error(torch.tensor([2.0, 2.0]), torch.tensor([0.4, 0.0]))
        tensor(0.1414)
    """
    # S_j |A_j - C_j|^2 = (sum_i u_ij d_i)^2 / S_j; a bin far from all samples has size 0, adds 0.
    occupied = size > 0
    terms = torch.where(occupied, gap.square() / torch.where(occupied, size, 1.0), 0.0)
    return root(terms.sum(-1) / size.sum(-1))


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

    Example:
        >>> s_avuc(probs=[[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
        tensor(0.0794, dtype=torch.float64)
    """
    checked_kappa(kappa)
    positive("temperature", temperature)
    p = probabilities(probs=probs, logits=logits)
    truth, mass = counted_labels(labels, p, weights, ignore_index)
    _, correct = top_label(probs=probs, logits=logits, labels=truth)
    return avuc_of(*soft_counts(correct, entropy_share(p), kappa, temperature, mass))


def checked_kappa(kappa: float) -> float:
    """Return the entropy that separates certain from uncertain if it can.

    Example:
        >>> checked_kappa(0.5)
        0.5
    """
    if not 0 < kappa < 1:
        raise InputError(f"kappa: expected a number in (0, 1), got {kappa!r}")
    return kappa


def avuc_of(against: Tensor, for_it: Tensor) -> Tensor:
    """Return S-AvUC from the soft counts of answers whose certainty is wrong, and right.

    Example:
        >>> avuc_of(torch.tensor(1.0), torch.tensor(1.0))
        tensor(0.6931)
    """
    return torch.log1p(against / for_it.clamp(min=torch.finfo(for_it.dtype).tiny))


def soft_counts(
    correct: Tensor, entropy: Tensor, kappa: float, temperature: float, mass: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return `n_AU + n_IC` and `n_AC + n_IU` from normalized entropies `[..., N]`."""
    h = entropy.double()
    inside = h.clamp(1e-12, 1 - 1e-12)  # the log odds of an entropy of exactly 0 or 1 are infinite
    odds = torch.logit(inside) - torch.logit(torch.tensor(kappa, dtype=h.dtype, device=h.device))
    uncertain = torch.sigmoid(odds / temperature)
    weight_uncertain = uncertain * torch.tanh(h)
    weight_certain = (1 - uncertain) * (1 - torch.tanh(h))
    against = torch.where(correct, weight_uncertain, weight_certain)
    for_it = torch.where(correct, weight_certain, weight_uncertain)
    if mass is not None:
        against, for_it = against * mass, for_it * mass
    return against.sum(-1), for_it.sum(-1)


def ece_loss(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    bins: int = 15,
    norm: str = "l1",
    weights: ArrayLike | None = None,
) -> Tensor:
    """Return the binned ECE as a function to differentiate, each sample's bin being held fixed.

        l1: sum_b |sum_{i in b} w_i d_i| / W
        l2: (sum_b (sum_{i in b} w_i d_i)^2 / (W W_b))^(1/2)

    with `W_b` the weight in bin b and W that of all. Equal in value to `ece`. This is the "ECE"
    that the ESD paper trains with in its table 3; its gradient misses that a sample may change its
    bin.

    Args:
        confidence: `[..., N]` in [0, 1]; differentiable.
        correct: `[..., N]` boolean, or values in [0, 1].
        bins: the number of equal-width bins `(lo, hi]`, the first closed at 0.
        norm: "l1" or "l2".
        weights: `[..., N]` sample weights >= 0; 1 by default.

    Returns:
        The error `[...]`, float64.

    Raises:
        InputError: if the arrays do not fit together, or hold values outside of [0, 1].

    Example:
        >>> ece_loss([0.9, 0.9], [True, False])
        tensor(0.4000, dtype=torch.float64)
    """
    whole_number("bins", bins)
    check_name("norm", norm, ("l1", "l2"))
    confidence, correct, mass = pair(confidence, correct, weights=weights)
    return fixed_bins_error(confidence, correct, mass, bins, norm)


def fixed_bins_error(
    confidence: Tensor, correct: Tensor, mass: Tensor | None, bins: int, norm: str = "l1"
) -> Tensor:
    """Return `ece_loss` of checked tensors `[..., N]`."""
    d = correct.double() - confidence.double()
    index = bin_index(confidence.detach(), bins)
    empty = d.new_zeros(*d.shape[:-1], bins)
    sums = empty.scatter_add(-1, index, d if mass is None else d * mass)
    total = d.shape[-1] if mass is None else mass.sum(-1)
    if norm == "l1":
        return sums.abs().sum(-1) / total
    inside = empty.scatter_add(-1, index, torch.ones_like(d) if mass is None else mass)
    return root((sums.square() / torch.where(inside > 0, inside, 1.0)).sum(-1) / total)
