"""Calibration from cumulative sums in the order of confidence: KS and ESD, without bins.

With `d = correct - confidence`, a calibrated model has `E[d; confidence <= t] = 0` at every
threshold t. KS is the largest deviation, ESD the expected square of it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..errors import InputError
from . import sorting
from .inputs import ArrayLike, pair


class _FrozenESD(torch.autograd.Function):
    """ESD of `difference` in a given order; the gradient is found with the value, in forward.

    With the indicators fixed, ESD is a quadratic form in d, so it equals half of <d, gradient>.
    """

    @staticmethod
    def forward(difference: Tensor, order_by: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        size = difference.shape[-1]
        ordered, order = sorting.ascending(order_by)
        d = difference.gather(-1, order)
        prefix = d.cumsum(-1)
        last, first = sorting.last_of_ties(ordered), sorting.first_of_ties(ordered)
        below = prefix.gather(-1, last)  # sum of d over all samples with z <= z_i, i included
        others = (below - d).cumsum(-1)
        before = (others - (below - d)).gather(-1, first)
        above = others[..., -1:] - before  # sum of S_i over all samples with z_i >= z_j
        slope = above - below - (size - 2 - first) * d
        scale = 1.0 / (size * (size - 1) * (size - 2))
        value = scale * (d * slope).sum(-1)
        gradient = torch.empty_like(d).scatter_(-1, order, slope.mul_(2 * scale))
        return value, gradient

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(output[1])
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_value: Tensor, _: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        (gradient,) = ctx.saved_tensors
        return grad_value[..., None] * gradient, None


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
    value, _ = _FrozenESD.apply(difference, order_by)
    return value


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
    return ordered_esd(correct.double() - confidence.double(), confidence.detach())
