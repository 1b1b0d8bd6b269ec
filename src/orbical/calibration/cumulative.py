"""Calibration from cumulative sums in the order of confidence: KS and ESD, without bins.

With `d = correct - confidence`, a calibrated model has `E[d; confidence <= t] = 0` at every
threshold t. KS is the largest deviation, ESD the expected square of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..errors import InputError
from . import _decay_sums, sorting
from .inputs import ArrayLike, pair, positive


def _slope_in_order(d: Tensor, ties: sorting.Ties) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradient of ESD by the differences `d`, both in the order of confidence, unscaled.

    As `total [..., 1]` and `rest [..., N]`, whose difference it is: a pass over the array less.
    The gradient is a linear and self-adjoint map of d, so that ESD, a quadratic form, is half of
    <d, gradient>. To be multiplied by `_scale(N)`. Also returns the sum of d, `[..., 1]`.
    """
    size = d.shape[-1]
    below = ties.sums_through(d)  # over all samples with z <= z_i, i included
    before, total = ties.sums_before(below - d)  # of S_i over z_i < z_j
    reach = ties.starts(d) - (size - 2)  # samples with z_i >= z_j, less 2, negative
    return total, before.add_(below).addcmul_(reach, d, value=-1), below[..., -1:]


def _scale(size: int) -> float:
    return 2.0 / (size * (size - 1) * (size - 2))


def _inner(first: Tensor, second: Tensor) -> Tensor:
    """Return `sum_i first_i second_i` along the last axis, `[..., 1]`, without the products."""
    if first.ndim == 1:
        return torch.dot(first, second)[None]
    return torch.linalg.vecdot(first, second)[..., None]


class _Slope(torch.autograd.Function):
    """The gradient of ESD by differences in a given order, as a map whose derivative is itself."""

    @staticmethod
    def forward(difference: Tensor, order_by: Tensor) -> Tensor:
        ordered, order = sorting.ascending(order_by)
        d = sorting.take(difference, order)
        total, rest, _ = _slope_in_order(d, sorting.ties(ordered))
        slope = torch.sub(total, rest, out=rest).mul_(_scale(d.shape[-1]))
        return sorting.put_back(slope, order)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[1])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (order_by,) = ctx.saved_tensors
        return _Slope.apply(gradient, order_by), None


class _ESD(torch.autograd.Function):
    """ESD with its gradient by confidence, which is found with the value, in forward.

    Everything between the sort and the gradient happens in the order of confidence; only the
    outcomes go there and the gradient comes back, no wider than the confidences are.
    """

    @staticmethod
    def forward(confidence: Tensor, correct: Tensor) -> tuple[Tensor, Tensor]:
        ordered, order = sorting.ascending(confidence)
        d = sorting.take(correct, order).double().sub_(ordered)
        total, rest, sum_of_d = _slope_in_order(d, sorting.ties(ordered))
        scale = _scale(d.shape[-1])
        value = (total * sum_of_d - _inner(d, rest))[..., 0] * (scale / 2)
        gradient = torch.add(total * -scale, rest, alpha=scale, out=torch.empty_like(ordered))
        return value, sorting.put_back(gradient, order)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs, output[1])
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)  # else zeros are made for the second output

    @staticmethod
    def backward(ctx: Any, grad_value: Tensor | None, _: None) -> tuple[Tensor | None, None]:
        if grad_value is None:
            return None, None
        confidence, correct, gradient = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is asked for
            gradient = -_Slope.apply(correct.double() - confidence, confidence.detach())
        return (grad_value[..., None].to(gradient.dtype) * gradient).to(confidence.dtype), None


def ordered_esd(difference: Tensor, order_by: Tensor) -> Tensor:
    """Return the ESD of any differences `[..., N]` accumulated in the order of `order_by`.

        S_i = sum of d_j over j != i with z_j <= z_i,    Q_i the same sum of d_j^2
        ESD = sum_i (S_i^2 - Q_i) / (N (N-1) (N-2))

    `esd` has d = correct - confidence and z = confidence; in regression d = error^2 - variance and
    z = variance. Differentiable in `difference`, the order being held fixed. N >= 3.

    >>> ordered_esd(torch.tensor([0.5, -0.5, 0.5]), torch.tensor([1.0, 2.0, 3.0]))
    tensor(-0.0833, dtype=torch.float64)
    """
    if difference.shape[-1] < 3:
        raise InputError(f"difference: got {difference.shape[-1]} samples, expected at least 3")
    difference, order_by = torch.broadcast_tensors(difference.double(), order_by)
    slope = _Slope.apply(difference, order_by.detach())
    return (difference * slope).sum(-1) / 2


def esd(confidence: ArrayLike, correct: ArrayLike) -> Tensor:
    """Return the expected squared difference, exact, in O(N log N) time and O(N) memory.

        d_i = correct_i - z_i,   S_i = sum_{j != i, z_j <= z_i} d_j,   Q_i = sum_{...} d_j^2
        ESD = sum_i (S_i^2 - Q_i) / (N (N-1) (N-2))
        dESD/dz_j = -2 / (N (N-1) (N-2)) * sum_{i != j, z_i >= z_j} (S_i - d_j)

    Equal to eq. 10 of the ESD paper (Yoon et al. 2023), ties included: unbiased for
    `E_z'[(E[(correct - z) 1(z <= z')])^2]`, therefore sometimes negative. The gradient holds the
    indicators fixed, as automatic differentiation of the paper's code does. Appendix D of the
    paper calls it unbiased, which it is not: see `esd_softened`.

    Args:
        confidence: `[..., N]` in [0, 1], N >= 3; differentiable.
        correct: `[..., N]` boolean, or values in [0, 1].

    >>> esd([0.6, 0.7, 0.8], [True, False, True])
    tensor(-0.0933, dtype=torch.float64)
    """
    confidence, correct, _ = pair(confidence, correct, minimum=3)
    value, _ = _ESD.apply(confidence, correct)
    return value


def ks(confidence: ArrayLike, correct: ArrayLike) -> Tensor:
    """Return the Kolmogorov-Smirnov calibration error, with equal confidences taken together.

        KS = max_t |sum_{z_j <= t} (correct_j - z_j)| / N

    No bins and no parameter (Gupta et al. 2021). At most the ECE in the population. Differentiable
    almost everywhere.

    Args:
        confidence: `[..., N]` in [0, 1]; differentiable.
        correct: `[..., N]` boolean, or values in [0, 1].

    >>> ks([0.9, 0.9, 0.6], [True, False, True])
    tensor(0.1333, dtype=torch.float64)
    """
    confidence, correct, _ = pair(confidence, correct)
    ordered, order = sorting.ascending(confidence)
    difference = sorting.take(correct.double() - confidence.double(), order)
    deviation = difference.cumsum(-1).abs()
    # Inside a run of equal confidences the sum depends on the order of the samples: only its end
    # is a threshold.
    return torch.where(sorting.ends_of_ties(ordered), deviation, 0.0).amax(-1) / order.shape[-1]


@dataclass(frozen=True)
class CumulativeCurve:
    """Cumulative accuracy and confidence against the quantile of confidence (ESD paper, Fig. 4).

    All are `[..., N]` float64, one place for each sample in ascending order of confidence; equal
    confidences share the values at the end of their run.

    Attributes:
        threshold: the confidence t.
        quantile: share of samples with confidence <= t.
        accuracy: share of samples that are correct and have confidence <= t.
        confidence: sum of the confidences <= t, divided by N.
    """

    threshold: Tensor
    quantile: Tensor
    accuracy: Tensor
    confidence: Tensor

    @property
    def difference(self) -> Tensor:
        """Cumulative accuracy minus cumulative confidence; KS is its largest absolute value."""
        return self.accuracy - self.confidence


def cumulative_curve(confidence: ArrayLike, correct: ArrayLike) -> CumulativeCurve:
    """Return the numbers of the cumulative accuracy / confidence plot (ESD paper, Fig. 4).

        accuracy(t) = sum_i 1(z_i <= t) correct_i / N,   confidence(t) = sum_i 1(z_i <= t) z_i / N

    Args:
        confidence: `[..., N]` in [0, 1].
        correct: `[..., N]` boolean, or values in [0, 1].

    >>> curve = cumulative_curve([0.5, 0.9], [True, True])
    >>> curve.accuracy, curve.difference
    (tensor([0.5000, 1.0000], dtype=torch.float64), tensor([0.2500, 0.3000], dtype=torch.float64))
    """
    confidence, correct, _ = pair(confidence, correct)
    ordered, order = sorting.ascending(confidence)
    size, ties = order.shape[-1], sorting.ties(ordered)
    threshold = ordered.double()
    hits = sorting.take(correct.detach().double(), order)
    count = torch.ones_like(threshold).cumsum(-1)
    return CumulativeCurve(
        threshold=threshold,
        quantile=ties.at_last(count) / size,
        accuracy=ties.at_last(hits.cumsum(-1)) / size,
        confidence=ties.at_last(threshold.cumsum(-1)) / size,
    )


def esd_softened(confidence: ArrayLike, correct: ArrayLike, *, width: float = 0.01) -> Tensor:
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

    >>> esd_softened([0.6, 0.7, 0.8], [True, False, True], width=1e-3)
    tensor(-0.0933, dtype=torch.float64)
    """
    confidence, correct, _ = pair(confidence, correct, minimum=3)
    positive("width", width)
    size = confidence.shape[-1]
    _, order = sorting.ascending(confidence)
    places = sorting.take(confidence.double(), order)
    d = sorting.take(correct.double(), order) - places
    squares = d.square()
    before, after = _decay_sums.decayed(d, places, width)
    s = d.cumsum(-1) - d + (after - before) / 2
    # H^2 is 1 - exp(-x/w) + exp(-2x/w)/4 on the right of 0 and exp(2x/w)/4 on its left.
    once, _ = _decay_sums.decayed(squares, places, width)
    twice = sum(_decay_sums.decayed(squares, places, width / 2))
    q = squares.cumsum(-1) - squares - once + twice / 4
    return (s.square() - q).sum(-1) / (size * (size - 1) * (size - 2))
