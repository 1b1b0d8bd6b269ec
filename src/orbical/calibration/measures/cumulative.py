"""Calibration from cumulative sums in the order of confidence: KS and ESD, without bins.

With `d = correct - confidence`, a calibrated model has `E[d; confidence <= t] = 0` at every
threshold t. KS is the largest deviation, ESD the expected square of it.

Weights are masses of samples. In KS, a sample of weight 2 equals two samples. ESD is an unbiased
estimate over triples of *different* samples, each counted with the product of its weights: equal
weights change nothing and a weight of 0 removes a sample, but a weight of 2 is not a repetition,
which would pair a sample with itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..._arrays import ArrayLike, as_array
from ...errors import InputError, errors_with_usage, real_number
from ..numerics import decay_sums, sorting
from ..numerics.gradients import can_fuse_gradient, differentiable
from ..pairs.pairs_and_weights import pair

__all__ = ["CumulativeCurve", "cumulative_curve", "esd", "esd_softened", "ks", "ordered_esd"]


def _cumulative_form_in_order(
    d: Tensor, ties: sorting.SortedTies, mass: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return ESD of `d [..., N]`, in the order of confidence, and its gradient by -d.

    The gradient is a linear and self-adjoint map of d, so that ESD, a quadratic form, is half of
    <d, gradient by d>.
    """
    size = d.shape[-1]
    d = d if mass is None else d * mass
    below = ties.sums_through(d)  # over all samples with z <= z_i, i included
    others = below - d
    if mass is None:
        before, total = ties.sums_before(others)  # of S_i over z_i < z_j
        reach = ties.starts(d) - (size - 2)  # samples with z_i >= z_j, less 2, negative
        rest = before.add_(below).addcmul_(reach, d, value=-1)
        share = 1.0 / (size * (size - 1) * (size - 2))
        value = (total * below[..., -1:] - _inner(d, rest)) * share
        return value[..., 0], torch.add(total * (-2 * share), rest, alpha=2 * share)
    others = others.mul_(mass)
    before, total = ties.sums_before(others)
    lighter, whole = ties.sums_before(mass)
    rest = before.add_(others).addcmul_(whole - lighter - mass, d)
    scale = _scale_of(mass)
    value = (total * below[..., -1:] - _inner(d, rest)) * (scale / 2)
    return value[..., 0], (rest - total).mul_(scale).mul_(mass)


def _cumulative_form_of_pairs(
    d: Tensor, order_by: Tensor, mass: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return ESD of `d [N]` in any order, and its gradient by -d, from the matrix of all pairs."""
    below = (order_by.unsqueeze(1) >= order_by).double().fill_diagonal_(0.0)
    if mass is None:
        size, above = len(d), below.sum(0)
        scale = 2.0 / (size * (size - 1) * (size - 2))
        sums = torch.mv(below, d)
        slope = torch.addmv(above * d, below.t(), sums, beta=scale, alpha=-scale)
        return torch.dot(d, slope) * -0.5, slope  # d falls as confidence rises
    d = d * mass
    slope = torch.addcmul((below @ d * mass) @ below, mass @ below, d, value=-1)
    slope = slope * -_scale_of(mass)[0]
    return torch.dot(d, slope) * -0.5, slope * mass


def _scale_of(mass: Tensor) -> Tensor:
    """Return 2 over the mass of all triples of different samples, `[..., 1]`."""
    total, squares, cubes = (mass.pow(power).sum(-1, keepdim=True) for power in (1, 2, 3))
    return 2.0 / (total.pow(3) - 3 * total * squares + 2 * cubes)


def _inner(first: Tensor, second: Tensor) -> Tensor:
    """Return `sum_i first_i second_i` along the last axis, `[..., 1]`, without the products."""
    if first.ndim == 1:
        return torch.dot(first, second)[None]
    products: Tensor = torch.linalg.vecdot(first, second)
    return products[..., None]


def _ordered(difference: Tensor, order_by: Tensor, mass: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return `ordered_esd` and its gradient by the differences."""
    ordered, order = sorting.ascending(order_by)
    mass = None if mass is None else sorting.take_by_row(mass, order)
    d = sorting.take_by_row(difference, order)
    value, slope = _cumulative_form_in_order(d, sorting.sorted_ties(ordered), mass)
    return value, sorting.undo_sort(-slope, order)


def esd_with_slope(
    confidence: Tensor, correct: Tensor, mass: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return `esd` of checked tensors `[..., N]`, and its gradient by confidence.

    Everything between the sort and the gradient happens in the order of confidence; only the
    outcomes go there and the gradient comes back, no wider than the confidences are.
    """
    if sorting.all_pairs_fit(confidence):
        d = correct.double() - confidence
        value, slope = _cumulative_form_of_pairs(d, confidence.detach(), mass)
        return value, slope.to(confidence.dtype)
    ordered, order = sorting.sorted_values(confidence)
    if ordered.ndim == 1 and correct.dtype == torch.bool and can_fuse_gradient(ordered, mass):
        # This imports Triton, which only some installations have.
        from ..numerics.esd_kernels import esd_by_kernels

        value, slope = esd_by_kernels(ordered, order, correct)
        return value, slope.to(confidence.dtype)
    mass = None if mass is None else sorting.take_by_row(mass, order)
    d = sorting.take_by_row(correct, order).double().sub_(ordered)
    value, slope = _cumulative_form_in_order(d, sorting.sorted_ties(ordered.detach()), mass)
    return value, sorting.undo_sort(slope.to(ordered.dtype), order)


def _esd_alone(confidence: Tensor, correct: Tensor, mass: Tensor | None) -> Tensor:
    """Return the value of `esd_with_slope` alone, without bringing a gradient into order."""
    if sorting.all_pairs_fit(confidence) or can_fuse_gradient(confidence, mass):
        return esd_with_slope(confidence, correct, mass)[0]
    ordered, order = sorting.ascending(confidence)
    mass = None if mass is None else sorting.take_by_row(mass, order)
    d = sorting.take_by_row(correct, order).double().sub_(ordered)
    return _cumulative_form_in_order(d, sorting.sorted_ties(ordered), mass)[0]


def ordered_esd(
    difference: ArrayLike, order_by: ArrayLike, weights: ArrayLike | None = None
) -> Tensor:
    """Return the ESD of any differences, accumulated in the order of `order_by`.

        S_i = sum of d_j over j != i with z_j <= z_i,    Q_i the same sum of d_j^2
        ESD = sum_i (S_i^2 - Q_i) / (N (N-1) (N-2))

    `esd` has d = correct - confidence and z = confidence; in regression d = error^2 - variance and
    z = variance. Differentiable in `difference`, the order being held fixed.

    Args:
        difference: `[..., N]`, N >= 3.
        order_by: `[..., N]`, the values z that order the differences.
        weights: `[..., N]` float64 sample weights >= 0, at least 3 of them positive; see `esd`.

    Returns:
        The estimate `[...]`, float64.

    Raises:
        InputError: if there are fewer than 3 samples.

    Example:
        >>> ordered_esd(torch.tensor([0.5, -0.5, 0.5]), torch.tensor([1.0, 2.0, 3.0]))
        tensor(-0.0833, dtype=torch.float64)
    """
    difference = as_array("difference", difference)
    if difference.ndim == 0 or difference.shape[-1] < 3:
        raise InputError("difference", "at least 3 samples", difference)
    order_by = as_array("order_by", order_by)
    difference, order_by = torch.broadcast_tensors(difference.double(), order_by)
    weights = None if weights is None else as_array("weights", weights).expand(difference.shape)
    return differentiable(_ordered, difference, order_by.detach(), weights)


def cumulative_distance(
    difference: Tensor, order_by: Tensor, weights: Tensor | None = None
) -> Tensor:
    """Return the root of the biased form of `ordered_esd`."""
    ordered, order = sorting.ascending(order_by)
    share = torch.full_like(difference, 1 / difference.shape[-1])
    if weights is not None:
        share = (weights / weights.sum(-1, keepdim=True)).expand(difference.shape)
    sums = (difference * share).gather(-1, order).cumsum(-1)
    squares = sorting.sorted_ties(ordered).at_last(sums).square()
    return (squares * share.gather(-1, order)).sum(-1).sqrt()


@errors_with_usage()
def esd(confidence: ArrayLike, correct: ArrayLike, *, weights: ArrayLike | None = None) -> Tensor:
    """Return the expected squared difference, exact, in O(N log N) time and O(N) memory.

        d_i = correct_i - z_i,   S_i = sum_{j != i, z_j <= z_i} d_j,   Q_i = sum_{...} d_j^2
        ESD = sum_i (S_i^2 - Q_i) / (N (N-1) (N-2))
        dESD/dz_j = -2 / (N (N-1) (N-2)) * sum_{i != j, z_i >= z_j} (S_i - d_j)

    Equal to eq. 10 of the ESD paper (Yoon et al. 2023), ties included: unbiased for
    `E_z'[(E[(correct - z) 1(z <= z')])^2]`, therefore sometimes negative. The gradient holds the
    indicators fixed, as automatic differentiation of the paper's code does. Appendix D of the
    paper calls it unbiased, which it is not: see `esd_softened`.

    With weights, the mean over triples of different samples becomes the weighted one, with
    `w_i w_j w_k` for each: `S_i` and `Q_i` sum `w_j d_j` and its square, and

        ESD = sum_i w_i (S_i^2 - Q_i) / (W_1^3 - 3 W_1 W_2 + 2 W_3),   W_n = sum_i w_i^n

    Args:
        confidence: `[..., N]` in [0, 1], N >= 3; differentiable.
        correct: `[..., N]` boolean, or values in [0, 1].
        weights: `[..., N]` sample weights >= 0, at least 3 of them positive.

    Returns:
        The estimate `[...]`, float64.

    Raises:
        InputError: if the arrays do not fit together, or hold values outside of [0, 1].

    See Also:
        esd_softened: With a gradient that sees changes of order.
        ks: The largest difference instead of the mean square.
        orbical.losses.esd: As a loss, on logits.

    References:
        Yoon et al., ESD: expected squared difference as a tuning-free trainable calibration
        measure, ICLR 2023.

    Example:
        >>> esd([0.6, 0.7, 0.8], [True, False, True])
        tensor(-0.0933, dtype=torch.float64)
    """
    confidence, correct, mass = pair(confidence, correct, minimum=3, weights=weights)
    return differentiable(esd_with_slope, confidence, correct, mass, value_alone=_esd_alone)


@errors_with_usage()
def ks(confidence: ArrayLike, correct: ArrayLike, *, weights: ArrayLike | None = None) -> Tensor:
    """Return the Kolmogorov-Smirnov calibration error, with equal confidences taken together.

        KS = max_t |sum_{z_j <= t} w_j (correct_j - z_j)| / sum_j w_j

    No bins and no parameter (Gupta et al. 2021). At most the ECE in the population. Differentiable
    almost everywhere.

    Args:
        confidence: `[..., N]` in [0, 1]; differentiable.
        correct: `[..., N]` boolean, or values in [0, 1].
        weights: `[..., N]` sample weights >= 0; 1 by default.

    Returns:
        The error `[...]`, float64.

    Raises:
        InputError: if the arrays do not fit together, or hold values outside of [0, 1].

    See Also:
        cumulative_curve: The curve whose largest value it is.
        esd: The mean square instead of the maximum.

    References:
        Gupta et al., Calibration of neural networks using splines, ICLR 2021.

    Example:
        >>> ks([0.9, 0.9, 0.6], [True, False, True])
        tensor(0.1333, dtype=torch.float64)
    """
    confidence, correct, mass = pair(confidence, correct, weights=weights)
    ordered, order = sorting.ascending(confidence)
    difference = correct.double() - confidence.double()
    difference = sorting.take_by_row(difference if mass is None else difference * mass, order)
    deviation = difference.cumsum(-1).abs()
    # Inside a run of equal confidences the sum depends on the order of the samples: only its end
    # is a threshold.
    largest = torch.where(sorting.ends_of_ties(ordered), deviation, 0.0).amax(-1)
    return largest / (order.shape[-1] if mass is None else mass.sum(-1))


@dataclass(frozen=True)
class CumulativeCurve:
    """Cumulative accuracy and confidence against the quantile of confidence (ESD paper, Fig. 4).

    All are `[..., N]` float64, one place for each sample in ascending order of confidence; equal
    confidences share the values at the end of their run.

    Attributes:
        threshold: the confidence t.
        quantile: (weighted) share of samples with confidence <= t.
        accuracy: (weighted) share of samples that are correct and have confidence <= t.
        confidence: (weighted) sum of the confidences <= t, divided by N (or the sum of weights).
    """

    threshold: Tensor
    quantile: Tensor
    accuracy: Tensor
    confidence: Tensor

    @property
    def difference(self) -> Tensor:
        """Cumulative accuracy minus cumulative confidence; KS is its largest absolute value."""
        return self.accuracy - self.confidence


def cumulative_curve(
    confidence: ArrayLike, correct: ArrayLike, *, weights: ArrayLike | None = None
) -> CumulativeCurve:
    """Return the numbers of the cumulative accuracy / confidence plot (ESD paper, Fig. 4).

        accuracy(t) = sum_i 1(z_i <= t) correct_i / N,   confidence(t) = sum_i 1(z_i <= t) z_i / N

    Args:
        confidence: `[..., N]` in [0, 1].
        correct: `[..., N]` boolean, or values in [0, 1].
        weights: `[..., N]` sample weights >= 0; 1 by default.

    Returns:
        The curve, one place for each sample.

    Raises:
        InputError: if the arrays do not fit together, or hold values outside of [0, 1].

    See Also:
        ks: The largest difference.
        reliability: Bin by bin.

    Example:
        >>> curve = cumulative_curve([0.5, 0.9], [True, True])
        >>> curve.difference
        tensor([0.2500, 0.3000], dtype=torch.float64)
    """
    confidence, correct, mass = pair(confidence, correct, weights=weights)
    ordered, order = sorting.ascending(confidence)
    ties, threshold = sorting.sorted_ties(ordered), ordered.double()
    hits = sorting.take_by_row(correct.detach().double(), order)
    each = torch.ones_like(threshold) if mass is None else sorting.take_by_row(mass, order)
    total = each.sum(-1, keepdim=True)
    return CumulativeCurve(
        threshold=threshold,
        quantile=ties.sums_through(each) / total,
        accuracy=ties.sums_through(hits * each) / total,
        confidence=ties.sums_through(threshold * each) / total,
    )


def esd_softened(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    width: float = 0.01,
    weights: ArrayLike | None = None,
) -> Tensor:
    """Return ESD with a softened indicator: its gradient also sees samples that change order.

        H(x) = 1 - exp(-x/width)/2 for x >= 0,  exp(x/width)/2 for x < 0
        S_i = sum_{j != i} H(z_i - z_j) d_j,    Q_i = sum_{j != i} H(z_i - z_j)^2 d_j^2
        ESD = sum_i (S_i^2 - Q_i) / (N (N-1) (N-2))

    Freezing the indicators, as `esd` and the ESD paper's code do, drops a boundary term of the
    gradient, which is therefore biased (appendix D of the paper says otherwise): in a world of two
    groups whose confidences overlap the true derivative is +0.0725 and the frozen one -0.0166. H
    is the distribution function of a Laplace variable, once continuously differentiable and a sum
    of exponentials, so value and gradient are exact in O(N log N) here too. For distinct
    confidences the value tends to `esd` as the width goes to 0.

    Args:
        confidence: `[..., N]` in [0, 1], N >= 3; differentiable.
        correct: `[..., N]` boolean, or values in [0, 1].
        width: the scale of H, in units of confidence.
        weights: `[..., N]` sample weights >= 0, at least 3 of them positive; see `esd`.

    Returns:
        The estimate `[...]`, float64.

    Raises:
        InputError: if the arrays do not fit together, or hold values outside of [0, 1].

    Example:
        >>> esd_softened([0.6, 0.7, 0.8], [True, False, True], width=1e-3)
        tensor(-0.0933, dtype=torch.float64)
    """
    confidence, correct, mass = pair(confidence, correct, minimum=3, weights=weights)
    real_number("width", width, "> 0")
    return cumulative_esd_softened(confidence, correct, mass, width)


def cumulative_esd_softened(
    confidence: Tensor, correct: Tensor, mass: Tensor | None, width: float
) -> Tensor:
    """Return `esd_softened` of checked tensors `[..., N]`."""
    size = confidence.shape[-1]
    _, order = sorting.ascending(confidence)
    places = sorting.take_by_row(confidence.double(), order)
    d = sorting.take_by_row(correct.double(), order) - places
    mass = None if mass is None else sorting.take_by_row(mass, order)
    d = d if mass is None else d * mass
    squares = d.square()
    before, after = decay_sums.decayed_sums(d, places, width)
    s = d.cumsum(-1) - d + (after - before) / 2
    # H^2 is 1 - exp(-x/w) + exp(-2x/w)/4 on the right of 0 and exp(2x/w)/4 on its left.
    once, _ = decay_sums.decayed_sums(squares, places, width)
    twice = sum(decay_sums.decayed_sums(squares, places, width / 2))
    q = squares.cumsum(-1) - squares - once + twice / 4
    if mass is None:
        return (s.square() - q).sum(-1) / (size * (size - 1) * (size - 2))
    return (mass * (s.square() - q)).sum(-1) * _scale_of(mass)[..., 0] / 2
