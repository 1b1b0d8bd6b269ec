"""Formulas of measures applied to logits: the value, and its gradient by the logits."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ..calibration import (
    Formula,
    avuc_with_slope,
    can_fuse,
    differentiable,
    esd_with_slope,
    fixed_bins_with_slope,
    mmce_with_slope,
    sb_ece_with_slope,
    softmax,
)

_LARGEST = 4096, 1024
"""Samples and classes up to which a GPU does better with the kernels of `_kernels`."""

_LEAST_PHI = 1 / 300
"""Width down to which the two factors of MMCE's kernel neither overflow nor lose digits."""


def of_top_label(
    formula: Formula, scores: Tensor, truth: Tensor, mass: Tensor | None, *settings: Any
) -> Tensor:
    """Return the measure, by its formula, of the predicted classes of logits `[n, classes]`."""
    return differentiable(_top_label, scores, truth, mass, formula, *settings)


def of_entropy(
    formula: Formula, scores: Tensor, truth: Tensor, mass: Tensor | None, *settings: Any
) -> Tensor:
    """Return the measure, by its formula, of the normalized entropies of logits."""
    return differentiable(_entropy, scores, truth, mass, formula, *settings)


def _top_label(
    scores: Tensor, truth: Tensor, mass: Tensor | None, formula: Formula, *settings: Any
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
    scores: Tensor, truth: Tensor, mass: Tensor | None, formula: Formula, *settings: Any
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
    from . import _kernels  # imports Triton, which only some installations have

    kernels: dict[Formula, Formula] = {
        esd_with_slope: _kernels.esd,
        mmce_with_slope: _kernels.mmce,
        sb_ece_with_slope: _kernels.sb_ece,
        fixed_bins_with_slope: _kernels.ece,
        avuc_with_slope: _kernels.s_avuc,
    }
    return kernels.get(formula)
