"""Calibration error in a kernel's space: MMCE and the unbiased SKCE, with the Laplacian kernel.

With `d = correct - confidence` and `k(a, b) = exp(-|a - b| / phi)`, all are sums of
`d_i d_j k(z_i, z_j)` over pairs, exact in one sort and a few cumulative sums.

Weights are masses of samples. In MMCE, a sample of weight 2 equals two samples. SKCE is an unbiased
estimate over pairs of *different* samples, each counted with the product of its weights: equal
weights change nothing and a weight of 0 removes a sample, but a weight of 2 is not a repetition,
which would pair a sample with itself.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..._arrays import ArrayLike
from ...errors import InputError, errors_with_usage, real_number
from ..numerics import decay_sums, sorting
from ..numerics.gradients import differentiable, differentiable_root
from ..pairs.pairs_and_weights import pair

__all__ = ["mmce", "mmce_squared", "mmce_weighted", "skce"]


def _kernel_form_with_slope(
    confidence: Tensor, correct: Tensor, weight: Tensor | None, phi: float, diagonal: int
) -> tuple[Tensor, Tensor]:
    """Return a sum over pairs of checked tensors `[..., N]`, and its gradient by confidence.

        sum_{i != j} e_i e_j exp(-|z_i - z_j| / phi) + diagonal * sum_i e_i^2,   e = weight * d

    The kernel's derivative at equal places is taken as 0, the middle of its subgradients.
    """
    if sorting.all_pairs_fit(confidence):
        return _kernel_form_of_pairs(confidence, correct, weight, phi, diagonal)
    ordered, order = sorting.sorted_values(confidence)
    ties = sorting.sorted_ties(ordered.detach())
    z = ordered.double()
    errors = sorting.take_by_row(correct, order).double().sub_(z)
    weight = None if weight is None else sorting.take_by_row(weight, order)
    errors = errors if weight is None else errors.mul_(weight)
    left, right = decay_sums.decayed_sums(errors, z, phi)
    reach = left + right
    if diagonal:
        reach.add_(errors)
    value = torch.linalg.vecdot(errors, reach)
    slope = (ties.at_last(right) - ties.at_first(left)).mul_(2 / phi)
    slope = torch.addcmul(-2 * reach if weight is None else reach * weight * -2, slope, errors)
    return value, sorting.undo_sort(slope.to(ordered.dtype), order)


def _laplacian_kernel_form(
    confidence: Tensor, correct: Tensor, weight: Tensor | None, phi: float, diagonal: int
) -> Tensor:
    """Return the value of `_kernel_form_with_slope` alone, at a fraction of its cost."""
    if sorting.all_pairs_fit(confidence):
        return _kernel_form_of_pairs(confidence, correct, weight, phi, diagonal)[0]
    ordered, order = sorting.ascending(confidence)
    z = ordered.double()
    errors = sorting.take_by_row(correct, order).double().sub_(z)
    if weight is not None:
        errors.mul_(sorting.take_by_row(weight, order))
    form = decay_sums.decay_form(errors, z, phi)
    return form if diagonal else form - errors.square().sum(-1)


def _kernel_form_of_pairs(
    confidence: Tensor, correct: Tensor, weight: Tensor | None, phi: float, diagonal: int
) -> tuple[Tensor, Tensor]:
    """Return the same from the matrix of all pairs of samples `[N]`."""
    z = confidence.double()
    errors = correct.double() - z
    errors = errors if weight is None else errors * weight
    apart = z.unsqueeze(1) - z
    kernel = (apart.abs() / -phi).exp()
    if not diagonal:
        kernel = kernel.fill_diagonal_(0.0)
    reach = torch.mv(kernel, errors)
    pull = torch.mv(kernel * apart.sign(), errors)
    slope = reach if weight is None else reach * weight
    slope = torch.addcmul(slope, pull, errors, value=1 / phi) * -2
    return torch.dot(errors, reach), slope


def mmce_squared(
    confidence: ArrayLike, correct: ArrayLike, *, phi: float = 0.4, weights: ArrayLike | None = None
) -> Tensor:
    """Return the squared maximum mean calibration error: the form to train with.

        MMCE^2 = sum_ij w_i w_j d_i d_j exp(-|z_i - z_j| / phi) / (sum_i w_i)^2

    Exact in O(N log N) (Kumar et al. 2018 and other implementations: O(N^2)), with a finite
    gradient at zero error, unlike its root.

    Args:
        confidence: `[..., N]` in [0, 1]; differentiable.
        correct: `[..., N]` boolean, or values in [0, 1].
        phi: the width of the kernel.
        weights: `[..., N]` sample weights >= 0; 1 by default.

    Returns:
        The squared error `[...]`, float64.

    Raises:
        InputError: if the arrays do not fit together, or hold values outside of [0, 1].

    See Also:
        mmce: Its root.
        skce: Its unbiased estimate.
        orbical.losses.mmce: As a loss, on logits.

    References:
        Kumar et al., Trainable calibration measures for neural networks from kernel mean
        embeddings, ICML 2018.

    Example:
        >>> mmce_squared([0.8, 0.8], [True, False])
        tensor(0.0900, dtype=torch.float64)
    """
    confidence, correct, mass = pair(confidence, correct, weights=weights)
    real_number("phi", phi, "> 0")
    return differentiable(
        mmce_with_slope, confidence, correct, mass, phi, value_alone=_mmce_squared_alone
    )


def mmce_with_slope(
    confidence: Tensor, correct: Tensor, mass: Tensor | None, phi: float
) -> tuple[Tensor, Tensor]:
    """Return `mmce_squared` of checked tensors `[..., N]`, and its gradient by confidence."""
    value, slope = _kernel_form_with_slope(confidence, correct, mass, phi, 1)
    if mass is None:
        share = confidence.shape[-1] ** -2
        return value * share, slope.mul_(share).to(confidence.dtype)
    total = mass.sum(-1)
    return value / total**2, slope / total[..., None] ** 2


def _mmce_squared_alone(
    confidence: Tensor, correct: Tensor, mass: Tensor | None, phi: float
) -> Tensor:
    """Return the value of `mmce_with_slope` alone."""
    total = confidence.shape[-1] if mass is None else mass.sum(-1)
    return _laplacian_kernel_form(confidence, correct, mass, phi, 1) / total**2


@errors_with_usage()
def mmce(
    confidence: ArrayLike, correct: ArrayLike, *, phi: float = 0.4, weights: ArrayLike | None = None
) -> Tensor:
    """Return the maximum mean calibration error, the root of `mmce_squared`.

        MMCE = (sum_ij d_i d_j exp(-|z_i - z_j| / phi))^(1/2) / N

    The gradient at zero error, where the root has none, is 0; train with `mmce_squared`.

    Args:
        confidence: `[..., N]` in [0, 1]; differentiable.
        correct: `[..., N]` boolean, or values in [0, 1].
        phi: the width of the kernel.
        weights: `[..., N]` sample weights >= 0; 1 by default.

    Returns:
        The error `[...]`, float64.

    Raises:
        InputError: if the arrays do not fit together, or hold values outside of [0, 1].

    See Also:
        mmce_squared: The form to train with.

    References:
        Kumar et al., Trainable calibration measures for neural networks from kernel mean
        embeddings, ICML 2018.

    Example:
        >>> mmce([0.8, 0.8], [True, False])
        tensor(0.3000, dtype=torch.float64)
    """
    return differentiable_root(mmce_squared(confidence, correct, phi=phi, weights=weights))


def mmce_weighted(
    confidence: ArrayLike, correct: ArrayLike, *, phi: float = 0.4, weights: ArrayLike | None = None
) -> Tensor:
    """Return the weighted squared MMCE of Kumar et al. (2018), their remedy for over-fitting.

        sum_{ij correct} (1-z_i)(1-z_j) k_ij / n^2 + sum_{ij wrong} z_i z_j k_ij / m^2
          - 2 sum_{i correct, j wrong} (1-z_i) z_j k_ij / (n m)

    with n correct and m wrong samples, so that the few wrong ones of a training set count as much
    as the many correct ones. Where one kind is absent its sums are 0. The root is the measure.
    With sample weights, n and m are sums of weights, and each sample counts with its weight.

    Args:
        confidence: `[..., N]` in [0, 1]; differentiable.
        correct: `[..., N]` boolean, or 0 and 1.
        phi: the width of the kernel.
        weights: `[..., N]` sample weights >= 0; 1 by default.

    Returns:
        The squared error `[...]`, float64.

    Raises:
        InputError: if the arrays do not fit together, or hold values outside of [0, 1].

    Example:
        >>> mmce_weighted([0.8, 0.8, 0.8], [True, True, False])
        tensor(0.3600, dtype=torch.float64)
    """
    confidence, correct, mass = pair(confidence, correct, weights=weights)
    real_number("phi", phi, "> 0")
    hit = correct.double()
    if bool(((hit != 0) & (hit != 1)).any()):
        raise InputError("correct", "0 and 1 only", "values between them")
    mass = torch.ones_like(hit) if mass is None else mass
    hits, misses = ((mass * kind).sum(-1, keepdim=True) for kind in (hit, 1 - hit))
    share = mass / torch.where(hit == 1, hits, misses)
    share = share.nan_to_num(0.0)
    return differentiable(
        _kernel_form_with_slope,
        confidence,
        correct,
        share,
        phi,
        1,
        value_alone=_laplacian_kernel_form,
    )


@errors_with_usage()
def skce(
    confidence: ArrayLike, correct: ArrayLike, *, phi: float = 0.4, weights: ArrayLike | None = None
) -> Tensor:
    """Return the unbiased estimate of the squared kernel calibration error of the top label.

        SKCE = sum_{i != j} w_i w_j d_i d_j exp(-|z_i - z_j| / phi) / sum_{i != j} w_i w_j

    Unbiased (Widmann et al. 2019), therefore sometimes negative; `mmce_squared` counts each sample
    with itself and is biased upwards by about `E[d^2] / N`.

    Args:
        confidence: `[..., N]` in [0, 1], N >= 2; differentiable.
        correct: `[..., N]` boolean, or values in [0, 1].
        phi: the width of the kernel.
        weights: `[..., N]` sample weights >= 0, at least 2 of them positive; 1 by default.

    Returns:
        The estimate `[...]`, float64.

    Raises:
        InputError: if the arrays do not fit together, or hold values outside of [0, 1].

    See Also:
        mmce_squared: The biased estimate, never negative.

    References:
        Widmann et al., Calibration tests in multi-class classification: a unifying framework,
        NeurIPS 2019.

    Example:
        >>> skce([0.8, 0.8], [True, False])
        tensor(-0.1600, dtype=torch.float64)
    """
    confidence, correct, mass = pair(confidence, correct, minimum=2, weights=weights)
    real_number("phi", phi, "> 0")
    size = confidence.shape[-1]
    pairs = size * (size - 1) if mass is None else mass.sum(-1) ** 2 - mass.square().sum(-1)
    form = differentiable(
        _kernel_form_with_slope,
        confidence,
        correct,
        mass,
        phi,
        0,
        value_alone=_laplacian_kernel_form,
    )
    return form / pairs
