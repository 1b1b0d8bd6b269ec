"""Scores of probabilistic classification: NLL, Brier with its parts, accuracy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..._arrays import ArrayLike
from ...errors import InputError
from ..numerics import sorting
from ..pairs.from_outputs import (
    classifier_outputs,
    log_probabilities,
    named_outputs,
    probabilities,
    top_label,
)
from ..pairs.pairs_and_weights import labels_and_weights, weighted_mean

__all__ = ["BrierParts", "accuracy", "brier", "brier_parts", "nll"]


_BLOCK = 1 << 20
"""Probabilities that are sorted at once."""


@named_outputs
def accuracy(
    *,
    probs: ArrayLike | None = None,
    logits: ArrayLike | None = None,
    labels: ArrayLike,
    weights: ArrayLike | None = None,
    ignore_index: int | None = None,
) -> Tensor:
    """Return the share of samples whose most probable class is the label.

    Args:
        probs: probabilities `[..., N, C]`; or
        logits: scores `[..., N, C]`. Pass exactly one of the two.
        labels: class indices `[N]`, `[N, 1]` or `[..., N]`; booleans for two classes.
        weights: `[..., N]` sample weights >= 0; 1 by default.
        ignore_index: samples with this label are left out.

    Returns:
        The accuracy `[...]`, float64.

    Raises:
        InputError: if outputs and labels do not fit together, or rows are not probabilities.

    Example:
        >>> accuracy(probs=[[0.7, 0.3], [0.4, 0.6]], labels=[0, 0])
        tensor(0.5000, dtype=torch.float64)
    """
    _, outputs = classifier_outputs(probs, logits)
    truth, mass = labels_and_weights(labels, outputs, weights, ignore_index)
    _, correct = top_label(probs=probs, logits=logits, labels=truth)
    return weighted_mean(correct.double(), mass)


@named_outputs
def nll(
    *,
    probs: ArrayLike | None = None,
    logits: ArrayLike | None = None,
    labels: ArrayLike,
    weights: ArrayLike | None = None,
    ignore_index: int | None = None,
) -> Tensor:
    """Return the mean negative log-likelihood, in nats.

        NLL = - sum_i w_i log p_i,label(i) / sum_i w_i

    Infinite where a label was given probability 0: nothing is clipped.

    Args:
        probs: probabilities `[..., N, C]`; or
        logits: scores `[..., N, C]`; differentiable. Pass exactly one of the two.
        labels: class indices `[N]`, `[N, 1]` or `[..., N]`; booleans for two classes.
        weights: `[..., N]` sample weights >= 0; 1 by default.
        ignore_index: samples with this label are left out.

    Returns:
        The score `[...]`, float64.

    Raises:
        InputError: if outputs and labels do not fit together, or rows are not probabilities.

    See Also:
        brier: A bounded score.
        score_terms: Sample by sample, for `compare_means`.

    Example:
        >>> nll(probs=[[0.5, 0.5], [0.25, 0.75]], labels=[0, 1])
        tensor(0.4904, dtype=torch.float64)
    """
    log_p = log_probabilities(probs=probs, logits=logits)
    truth, mass = labels_and_weights(labels, log_p, weights, ignore_index)
    return weighted_mean(nll_terms(log_p, truth), mass)


def nll_terms(log_p: Tensor, truth: Tensor) -> Tensor:
    """Return each sample's negative log-likelihood from log-probabilities, in float64.

    Example:
        >>> nll_terms(torch.tensor([[0.5, 0.5]]).log(), torch.tensor([0]))
        tensor([0.6931], dtype=torch.float64)
    """
    return -log_p.gather(-1, truth[..., None])[..., 0].double()


def brier_terms(p: Tensor, truth: Tensor) -> Tensor:
    """Return each sample's squared distance `sum_k (p_k - 1(label = k))^2`, in float64.

    Example:
        >>> brier_terms(torch.tensor([[0.5, 0.5]]), torch.tensor([0]))
        tensor([0.5000], dtype=torch.float64)
    """
    p = p.double()
    hit = p.gather(-1, truth[..., None])[..., 0]
    return p.square().sum(-1) - 2 * hit + 1


@named_outputs
def brier(
    *,
    probs: ArrayLike | None = None,
    logits: ArrayLike | None = None,
    labels: ArrayLike,
    weights: ArrayLike | None = None,
    ignore_index: int | None = None,
) -> Tensor:
    """Return the Brier score, over all classes (from 0 to 2).

        Brier = sum_i w_i sum_k (p_ik - 1(label_i = k))^2 / sum_i w_i

    Args:
        probs: probabilities `[..., N, C]`; or
        logits: scores `[..., N, C]`; differentiable. Pass exactly one of the two.
        labels: class indices `[N]`, `[N, 1]` or `[..., N]`; booleans for two classes.
        weights: `[..., N]` sample weights >= 0; 1 by default.
        ignore_index: samples with this label are left out.

    Returns:
        The score `[...]`, float64.

    Raises:
        InputError: if outputs and labels do not fit together, or rows are not probabilities.

    See Also:
        brier_parts: Its calibration and refinement.

    References:
        Brier, Verification of forecasts expressed in terms of probability, Monthly Weather Review
        1950.

    Example:
        >>> brier(probs=[[0.5, 0.5], [0.25, 0.75]], labels=[0, 1])
        tensor(0.3125, dtype=torch.float64)
    """
    p = probabilities(probs=probs, logits=logits)
    truth, mass = labels_and_weights(labels, p, weights, ignore_index)
    return weighted_mean(brier_terms(p, truth), mass)


@dataclass(frozen=True)
class BrierParts:
    """A Brier score and its parts: `score = calibration + refinement`.

    Attributes:
        score: the Brier score.
        calibration: what recalibration (isotonic, class by class) would gain; never negative.
        refinement: what would remain.
        uncertainty: the score of always predicting the class frequencies; the refinement never
            exceeds it, and `uncertainty - refinement` is the resolution.
    """

    score: Tensor
    calibration: Tensor
    refinement: Tensor
    uncertainty: Tensor

    @property
    def resolution(self) -> Tensor:
        """How much better than the class frequencies the model orders its samples."""
        return self.uncertainty - self.refinement


@named_outputs
def brier_parts(
    *,
    probs: ArrayLike | None = None,
    logits: ArrayLike | None = None,
    labels: ArrayLike,
    weights: ArrayLike | None = None,
    ignore_index: int | None = None,
) -> BrierParts:
    """Split the Brier score into calibration and refinement, exactly and without bins.

        refinement = sum_k mean_i (iso_k(p_ik) - 1(label_i = k))^2
        calibration = Brier - refinement

    where iso_k is the isotonic regression of `label = k` on p_k, the optimal monotone
    recalibration of class k (Dimitriadis, Gneiting and Jordan 2021). Runs class by class, on one
    set of samples: no leading axes.

    Args:
        probs: probabilities `[N, C]`; or
        logits: scores `[N, C]`. Pass exactly one of the two.
        labels: class indices `[N]` or `[N, 1]`; booleans for two classes.
        weights: `[N]` sample weights >= 0; 1 by default.
        ignore_index: samples with this label are left out.

    Returns:
        The score and its parts, float64.

    Raises:
        InputError: if outputs and labels do not fit together, or rows are not probabilities.

    See Also:
        brier_part_intervals: With their uncertainty.

    References:
        Dimitriadis et al., Stable reliability diagrams for probabilistic classifiers, PNAS 2021.

    Example:
        >>> parts = brier_parts(probs=[[0.9, 0.1], [0.9, 0.1], [0.2, 0.8]], labels=[0, 1, 1])
        >>> parts.score, parts.refinement
        (tensor(0.5733, dtype=torch.float64), tensor(0.3333, dtype=torch.float64))
    """
    p = probabilities(probs=probs, logits=logits).detach()
    truth, mass = labels_and_weights(labels, p, weights, ignore_index)
    if p.ndim != 2:
        raise InputError("probs, logits", "shape [N, C]", p)
    score = weighted_mean(brier_terms(p, truth), mass)
    refinement, uncertainty = 0.0, 0.0
    total = float(len(p)) if mass is None else mass.sum().item()
    for classes in torch.arange(p.shape[-1], device=p.device).split(max(1, _BLOCK // len(p))):
        hit = truth == classes[:, None]
        refinement += _isotonic_brier_score(p[:, classes].T.double(), hit, mass) / total
        often = weighted_mean(hit.double(), mass)
        uncertainty += (often * (1 - often)).sum().item()
    left = torch.tensor(refinement, dtype=torch.float64, device=p.device)
    most = torch.tensor(uncertainty, dtype=torch.float64, device=p.device)
    return BrierParts(score, calibration=score - left, refinement=left, uncertainty=most)


def _isotonic_brier_score(confidence: Tensor, hit: Tensor, mass: Tensor | None) -> float:
    """Return the sum of squared errors of the isotonic regressions of `hit` on rows `[K, N]`."""
    ordered, order = sorting.ascending(confidence)
    # Equal confidences get one value: each run of them is one cell, at its first place.
    first = sorting.sorted_ties(ordered).starts(order)
    rows, size = order.shape
    at = sorting.take_by_row(hit, order)
    place = (first + size * torch.arange(rows, device=order.device)[:, None])[at].cpu().numpy()
    if mass is None:
        return isotonic_brier_remainder(place, None, np.arange(rows * size + 1.0), size)
    each = mass[order]
    before = np.append(0.0, each.flatten().cumsum(0).cpu().numpy())
    return isotonic_brier_remainder(place, each[at].cpu().numpy(), before, size)


def isotonic_brier_remainder(
    place: np.ndarray, weight: np.ndarray | None, before: np.ndarray, width: int
) -> float:
    """Return `sum w (fit - hit)^2`, with one isotonic fit for each row of `width` ordered cells.

    A cell without hits joins the pool of the last cell before it that has some, since a fit never
    falls; so the work is that of the cells with hits, and a sum of counts for the rest.

    Args:
        place: The cells of the hits `[H]`, numbered through all rows.
        weight: The weights `[H]` of the hits; 1 by default.
        before: The weight of all samples in the cells before each cell, `[rows * width + 1]`.
        width: The number of cells of a row.

    Example:
        >>> isotonic_brier_remainder(np.array([0, 2]), None, np.arange(4.0), 3)
        0.5
    """
    hits = np.bincount(place, weight, minlength=len(before) - 1)
    filled = np.flatnonzero(hits > 0)  # several times faster than that of numbers
    row, right = filled // width, hits[filled].astype(np.float64)
    stop = np.minimum(np.append(filled[1:], len(before) - 1), (row + 1) * width)
    right, number = _pooled_for_isotonic_score(right, before[stop] - before[filled], row)
    return float((right * (1 - right / number)).sum())


def _pooled_for_isotonic_score(
    right: np.ndarray, number: np.ndarray, row: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Pool neighbors of a row, all that violate the order at once, until their shares rise."""
    while True:
        share = right / number
        opens = np.concatenate([[True], (share[1:] > share[:-1]) | (row[1:] != row[:-1])])
        if opens.all():
            return right, number
        starts = np.flatnonzero(opens)
        right, number = (np.add.reduceat(part, starts) for part in (right, number))
        row = row[starts]
