"""Calibration error over bins of confidence, and the numbers of a reliability diagram.

Bins are `(lo, hi]`, the first one closed at 0. Counts are int64 and sums float64 for every input
dtype. Everything reduces over the last axis and broadcasts over leading ones.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..._arrays import ArrayLike, few_as_numpy, single_precision
from ...errors import InputError, check_name, errors_with_usage, number_of_bins
from ..numerics import sorting
from ..numerics.equal_mass import equal_mass_places
from ..numerics.gradients import differentiable, differentiable_root
from ..pairs.pairs_and_weights import pair

__all__ = ["Reliability", "ece", "ece_debiased", "ece_loss", "error_of", "reliability"]


_NORMS = ("l1", "l2", "max")

_TINY = torch.finfo(torch.float64).tiny
"""A divisor in place of 0, where what is divided is 0 too."""

_SEARCH_UP_TO = 512
"""Values up to which a processor finds bins faster by bisection than by five passes."""


@dataclass(frozen=True)
class Reliability:
    """The numbers of a reliability diagram, for each of B bins.

    Attributes:
        edges: `[..., B+1]` float64; bin b is `(edges[b], edges[b+1]]`, the first closed at 0.
        count: `[..., B]` int64, samples in the bin.
        share: `[..., B]` float64, the bin's share of all samples (of all weight, if weighted).
        confidence: `[..., B]` float64, mean confidence; NaN in an empty bin.
        accuracy: `[..., B]` float64, (weighted) share of correct samples; NaN in an empty bin.
    """

    edges: Tensor
    count: Tensor
    share: Tensor
    confidence: Tensor
    accuracy: Tensor

    @property
    def gap(self) -> Tensor:
        """Accuracy minus confidence: negative where the model is overconfident."""
        return self.accuracy - self.confidence


def bin_index(confidence: Tensor, bins: int) -> Tensor:
    """Return the index of the equal-width bin `(j/bins, (j+1)/bins]` that holds each value.

    An edge is the number nearest to `j / bins` in the dtype of `confidence`, so that 0.2 lies on
    the edge 0.2 in float32 too. 0 belongs to the first bin.

    Example:
        >>> bin_index(torch.tensor([0.0, 0.2, 0.21, 1.0]), 5)
        tensor([0, 0, 1, 4])
    """
    dtype, device = confidence.dtype, confidence.device
    if device.type != "cpu" or confidence.numel() <= _SEARCH_UP_TO or torch.compiler.is_compiling():
        return torch.bucketize(confidence.contiguous(), _inner_edges(bins, dtype, device))
    values = single_precision(confidence)
    index = (values * bins).ceil_().sub_(1)
    if not _arithmetic_is_exact(bins, dtype):
        lower = (index / bins).to(dtype).to(values.dtype)
        upper = ((index + 1) / bins).to(dtype).to(values.dtype)
        index += (values > upper).to(values.dtype) - (values <= lower).to(values.dtype)
    return index.long().clamp_(0, bins - 1)


def _inner_edges(bins: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    # Kept on the CPU only: made while a CUDA graph is captured, a tensor would belong to the graph.
    kept = device.type == "cpu" and not torch.compiler.is_compiling()
    return _edges_on_cpu(bins, dtype) if kept else _edges(bins, dtype, device)


def _all_edges(bins: int, device: torch.device) -> Tensor:
    return torch.arange(bins + 1, dtype=torch.float64, device=device) / bins


def _edges(bins: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    return _all_edges(bins, device)[1:-1].to(dtype)


@functools.lru_cache(maxsize=64)
def _edges_on_cpu(bins: int, dtype: torch.dtype) -> Tensor:
    return _edges(bins, dtype, torch.device("cpu"))


@functools.lru_cache(maxsize=64)
def _edges_as_numpy(bins: int, dtype: torch.dtype) -> np.ndarray:
    return _edges_on_cpu(bins, dtype).numpy()


@functools.lru_cache(maxsize=64)
def _arithmetic_is_exact(bins: int, dtype: torch.dtype) -> bool:
    """Whether rounding of the product never misses a bin, so that the edges need not be asked.

    The product is monotone in the value: it is right everywhere if it is right on every edge and
    on the number that follows it.
    """
    if dtype not in (torch.float32, torch.float64):
        return False
    edges = torch.arange(bins + 1, dtype=dtype) / bins
    following = torch.nextafter(edges[:-1], torch.ones(1, dtype=dtype))
    expected = torch.arange(bins, dtype=dtype)
    on_edge, above = ((part * bins).ceil_().sub_(1) for part in (edges[1:], following))
    return torch.equal(on_edge, expected) and torch.equal(above, expected)


def _binning_block_shape(rows: int, columns: int, bins: int, device: str) -> tuple[int, int, int]:
    """Return height and width of blocks, and lanes, over which neighboring samples are dealt out.

    Blocks stay in a core's cache, or on a GPU are few. Additions to one cell wait for each other,
    and most samples of a good classifier fall in the last bin: lanes give each bin several cells.
    """
    size, lanes = (1 << 15, 8) if device == "cpu" else (1 << 26, 512)
    width = min(columns, size)
    return min(rows, size // width), width, max(1, min(lanes, (1 << 16) // (rows * bins)))


def _equal_mass_edges(confidence: Tensor, weights: Tensor | None, bins: int) -> Tensor:
    """Return `[R, B+1]` edges of which the inner ones are quantiles among the values themselves."""
    ordered, order = sorting.ascending(confidence)
    rows, size = ordered.shape
    mass = None if weights is None else weights.gather(-1, order)
    place = equal_mass_places(size, bins, mass, ordered.device)
    inner = ordered.gather(-1, place.expand(rows, -1))
    zero, one = inner.new_zeros(rows, 1), inner.new_ones(rows, 1)
    return torch.cat([zero, inner, one], dim=-1)


@errors_with_usage()
def reliability(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    bins: int = 15,
    binning: str = "width",
    weights: ArrayLike | None = None,
) -> Reliability:
    """Return the numbers of a reliability diagram: count, confidence and accuracy by bin.

    Bins are `(lo, hi]`, the first closed at 0. With `binning="mass"` the inner edges are the
    values at ranks `ceil(j N / bins)`; equal confidences share a bin, so a heavily tied value
    leaves bins empty rather than being split in an arbitrary order.

    Args:
        confidence: `[..., N]` in [0, 1].
        correct: `[..., N]` boolean, or values in [0, 1].
        bins: the number of bins.
        binning: "width" (equal width) or "mass" (equal mass).
        weights: `[..., N]` sample weights >= 0.

    Returns:
        The numbers of each bin.

    Raises:
        InputError: if the arrays do not fit together, or hold values outside of [0, 1].

    See Also:
        ece: The error that the diagram shows.
        reliability_curve: The same without bins, with a band.

    References:
        Guo et al., On calibration of modern neural networks, ICML 2017.

    Example:
        >>> diagram = reliability([0.2, 0.4, 0.9, 0.9], [False, True, True, False], bins=2)
        >>> diagram.count, diagram.accuracy
        (tensor([2, 2]), tensor([0.5000, 0.5000], dtype=torch.float64))
    """
    check_name("binning", binning, ("width", "mass"))
    given = pair(confidence, correct, weights=weights)
    edges, *sums = _bin_edges_and_sums(*given, bins, binning)
    return reliability_of_bins(*sums, edges=edges)


def _bin_edges_and_sums(
    confidence: Tensor, correct: Tensor, weights: Tensor | None, bins: int, binning: str
) -> tuple[Tensor, ...]:
    """Return edges `[..., B+1]`, and `bin_sums` `[..., B]`, of a checked pair."""
    bins, shape = number_of_bins(bins), confidence.shape
    values = confidence.detach().reshape(-1, shape[-1])
    hits = correct.detach().reshape(-1, shape[-1])
    mass = None if weights is None else weights.reshape(-1, shape[-1])
    if binning == "mass":
        edges = _equal_mass_edges(values, mass, bins)
    else:
        edges = _all_edges(bins, values.device).expand(len(values), -1)
    sums = bin_sums(values, hits, mass, bins, edges if binning == "mass" else None)
    return tuple(part.reshape(*shape[:-1], -1) for part in (edges.double(), *sums))


def reliability_of_bins(
    count: Tensor,
    total: Tensor,
    sum_confidence: Tensor,
    sum_correct: Tensor,
    *,
    edges: Tensor | None = None,
) -> Reliability:
    """Return the diagram of bins with these counts, weights, and weighted sums, all `[..., B]`.

    Without edges the bins are of equal width.
    """
    edges = _all_edges(count.shape[-1], count.device) if edges is None else edges
    share = total / total.sum(-1, keepdim=True)
    return Reliability(edges, count, share, sum_confidence / total, sum_correct / total)


def bin_sums(
    confidence: Tensor, correct: Tensor, weights: Tensor | None, bins: int, edges: Tensor | None
) -> tuple[Tensor, ...]:
    """Return `[R, B]` counts (int64), weights, and sums of both arrays (float64) by bin.

    Takes `[R, N]` arrays, and the edges `[R, B+1]` of the bins unless they have equal width.
    """
    if confidence.numel() <= _SEARCH_UP_TO:
        return _few_bin_sums(confidence, correct, weights, bins, edges)
    rows, size = confidence.shape
    device = confidence.device
    height, width, lanes = _binning_block_shape(rows, size, bins, device.type)
    lane = torch.arange(width, device=device) % lanes
    cell = (torch.arange(height, device=device)[:, None] * lanes + lane) * bins
    one = torch.ones(height * width, dtype=torch.int64, device=device)
    work = torch.empty(2, height, width, dtype=torch.float64, device=device)
    count = torch.zeros(rows, lanes, bins, dtype=torch.int64, device=device)
    sums: list[Tensor] = []
    for top, left in itertools.product(range(0, rows, height), range(0, size, width)):
        high, wide = slice(top, top + height), slice(left, left + width)
        block = confidence[high, wide]
        within = slice(block.shape[0]), slice(block.shape[1])
        index = _index_of(block, bins, None if edges is None else edges[high])
        index = index.add_(cell[within]).reshape(-1)
        count[high].view(-1).scatter_add_(0, index, one[: len(index)])
        values = [work[0][within].copy_(block), work[1][within].copy_(correct[high, wide])]
        if weights is not None:
            mass = weights[high, wide]
            values = [mass, *(value.mul_(mass) for value in values)]
        sums = sums or [torch.zeros_like(count, dtype=torch.float64) for _ in values]
        for part, value in zip(sums, values, strict=True):
            part[high].view(-1).scatter_add_(0, index, value.reshape(-1))
    counted = count.sum(1)
    weighed = [part.sum(1) for part in sums]
    return counted, *([counted.double()] if weights is None else []), *weighed


def _index_of(confidence: Tensor, bins: int, edges: Tensor | None) -> Tensor:
    """Return the bins of confidences `[R, N]`, between edges `[R, B+1]` unless of equal width."""
    if edges is None:
        return bin_index(confidence, bins)
    values = single_precision(confidence).contiguous()
    return torch.searchsorted(edges[:, 1:-1].contiguous(), values)


def batch_bin_sums(
    confidence: Tensor, correct: Tensor, weights: Tensor | None, bins: int
) -> Tensor:
    """Return `bin_sums` `[4, B]` of a batch `[N]` over bins of equal width.

    Example:
        >>> batch_bin_sums(torch.tensor([0.25, 0.75]), torch.tensor([False, True]), None, 1)
        tensor([[2.],
                [2.],
                [1.],
                [1.]], dtype=torch.float64)
    """
    if (few := few_as_numpy(confidence)) is None:
        rows = None if weights is None else weights[None]
        sums = bin_sums(confidence.detach()[None], correct[None], rows, bins, None)
        return torch.cat([part.double() for part in sums])
    index = np.searchsorted(_edges_as_numpy(bins, confidence.dtype), few)
    count = np.bincount(index, minlength=bins)
    values = [few, correct.numpy()]
    if weights is not None:
        mass = weights.numpy()
        values = [mass, *(value * mass for value in values)]
    summed = [np.bincount(index, value, bins) for value in values]
    return torch.from_numpy(np.array([count, *([count] if weights is None else []), *summed]))


def _few_bin_sums(
    confidence: Tensor, correct: Tensor, weights: Tensor | None, bins: int, edges: Tensor | None
) -> tuple[Tensor, ...]:
    """Return `bin_sums` of few samples, in few operations."""
    index = _index_of(confidence, bins, edges)
    one = torch.ones_like(confidence, dtype=torch.float64)
    parts = torch.stack([one, confidence.double(), correct.double()])
    parts = parts if weights is None else torch.cat([one[None], parts * weights])
    sums = parts.new_zeros(*parts.shape[:-1], bins).scatter_add_(-1, index.expand_as(parts), parts)
    count, *weighed = sums.unbind()
    return count.long(), *([count] if weights is None else []), *weighed


@errors_with_usage()
def ece(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    bins: int = 15,
    norm: str = "l1",
    binning: str = "width",
    weights: ArrayLike | None = None,
) -> Tensor:
    """Return the expected calibration error over bins.

        l1:  sum_b share_b |accuracy_b - confidence_b|
        l2:  (sum_b share_b (accuracy_b - confidence_b)^2)^(1/2)
        max: max_b |accuracy_b - confidence_b|

    The l1 form equals `sum_b |sum_{i in b} (correct_i - confidence_i)| / N`; the equation printed
    in the ESD paper (eq. 3) takes the absolute value of each sample and is a misprint. Bins are
    `(lo, hi]`, the first closed at 0. The estimate is biased upwards: a calibrated model has a
    positive ECE. Not differentiable; see `ece_loss`.

    Args:
        confidence: `[..., N]` in [0, 1].
        correct: `[..., N]` boolean, or values in [0, 1].
        bins: the number of bins.
        norm: "l1", "l2" or "max".
        binning: "width" (equal width) or "mass" (equal mass, see `reliability`).
        weights: `[..., N]` sample weights >= 0.

    Returns:
        The error `[...]`, float64.

    Raises:
        InputError: if the arrays do not fit together, or hold values outside of [0, 1].

    See Also:
        ece_debiased: Without the bias of few samples.
        smooth_ece: Without bins.
        interval: With its uncertainty.
        orbical.losses.ece: As a loss.

    References:
        Naeini et al., Obtaining well calibrated probabilities using Bayesian binning, AAAI 2015.

    Example:
        >>> ece([0.75, 0.75, 0.75, 0.75], [True, True, True, False])
        tensor(0., dtype=torch.float64)
        >>> ece([0.9, 0.9], [True, False])
        tensor(0.4000, dtype=torch.float64)
    """
    check_name("norm", norm, _NORMS)
    diagram = reliability(confidence, correct, bins=bins, binning=binning, weights=weights)
    return error_of(diagram, norm)


def error_of(diagram: Reliability, norm: str = "l1") -> Tensor:
    """Return the calibration error that a reliability diagram shows, in one of `ece`'s norms.

    Args:
        diagram: the numbers of each bin.
        norm: "l1", "l2" or "max".

    Returns:
        The error `[...]`, float64.

    Example:
        >>> error_of(reliability([0.9, 0.9], [True, False]), "max")
        tensor(0.4000, dtype=torch.float64)
    """
    if not isinstance(diagram, Reliability):
        raise InputError("diagram", "a Reliability", type(diagram))
    check_name("norm", norm, _NORMS)
    gap = diagram.gap.abs().nan_to_num(0.0)
    if norm == "max":
        return gap.amax(-1)
    if norm == "l2":
        return (diagram.share * gap.square()).sum(-1).sqrt()
    return (diagram.share * gap).sum(-1)


def effective_bin_count(
    diagram: Reliability, confidence: Tensor, weights: Tensor | None, binning: str = "width"
) -> Tensor:
    """Return how many samples of equal weight each bin is worth, `(sum w)^2 / sum w^2` (Kish).

    Example:
        >>> diagram = reliability([0.9, 0.9], [1, 0], bins=1, weights=[1.0, 3.0])
        >>> effective_bin_count(diagram, torch.tensor([0.9, 0.9]), torch.tensor([1.0, 3.0]))
        tensor([1.6000], dtype=torch.float64)
    """
    if weights is None:
        return diagram.count.double()
    rows = confidence.detach().reshape(-1, confidence.shape[-1])
    bins = diagram.count.shape[-1]
    edges = diagram.edges.reshape(-1, bins + 1).to(rows.dtype) if binning == "mass" else None
    mass = weights.double().expand(confidence.shape).reshape(rows.shape)
    both = torch.stack([mass, mass.square()])
    index = _index_of(rows, bins, edges).expand_as(both)
    total, squares = both.new_zeros(2, len(rows), bins).scatter_add_(-1, index, both)
    worth: Tensor = total.square() / squares.clamp(min=1e-300)
    return worth.reshape(diagram.count.shape)


@errors_with_usage()
def ece_debiased(
    confidence: ArrayLike, correct: ArrayLike, *, bins: int = 15, weights: ArrayLike | None = None
) -> Tensor:
    """Return the squared l2 calibration error over bins, without the bias of few samples.

        sum_b share_b (gap_b^2 - v_b / (n_b - 1)),   gap_b = mean d,   v_b = mean d^2 - gap_b^2

    over the `d = correct - confidence` of a bin. The subtracted term is the variance of their mean,
    which noise adds to the squared gap (Kumar et al. subtract that of the accuracy alone, which is
    too much where confidences in a bin differ). Zero on average for a model that is calibrated over
    the bins, so it can be negative. Bins of equal width; those with a single sample say nothing of
    their variance and count as 0. With weights, n_b is the effective number of samples (Kish).

    Args:
        confidence: `[..., N]` in [0, 1].
        correct: `[..., N]` boolean, or values in [0, 1].
        bins: the number of bins.
        weights: `[..., N]` sample weights >= 0.

    Returns:
        The estimate `[...]`, float64.

    Raises:
        InputError: if the arrays do not fit together, or hold values outside of [0, 1].

    See Also:
        skce: Unbiased and without bins.

    References:
        Kumar et al., Verified uncertainty calibration, NeurIPS 2019.

    Example:
        >>> ece_debiased([0.75, 0.75, 0.75, 0.75], [True, True, True, False])
        tensor(-0.0625, dtype=torch.float64)
    """
    values, hits, mass = pair(confidence, correct, weights=weights)
    edges, *sums = _bin_edges_and_sums(values, hits, mass, bins, "width")
    error = (hits.double() - values).square()
    squares = _bin_edges_and_sums(values, error, mass, bins, "width")[-1]
    diagram, total = reliability_of_bins(*sums, edges=edges), sums[1]
    size = effective_bin_count(diagram, values, mass)
    gap = diagram.gap.square()
    noise = (squares / total - gap) / (size - 1)
    known = size > 1 + 1e-9  # false for the NaN of an empty bin
    return torch.where(known, diagram.share * (gap - noise), 0.0).sum(-1)


@errors_with_usage()
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
    bins = number_of_bins(bins)
    check_name("norm", norm, ("l1", "l2"))
    confidence, correct, mass = pair(confidence, correct, weights=weights)
    return differentiable(fixed_bins_with_slope, confidence, correct, mass, bins, norm)


def fixed_bins_with_slope(
    confidence: Tensor, correct: Tensor, mass: Tensor | None, bins: int, norm: str
) -> tuple[Tensor, Tensor]:
    """Return `ece_loss` of checked tensors `[..., N]`, and its gradient by confidence."""
    excess = confidence - correct.double()
    index = bin_index(confidence.detach(), bins)
    excess = excess if mass is None else excess * mass
    sums = excess.new_zeros(*excess.shape[:-1], bins).scatter_add_(-1, index, excess)
    total = excess.shape[-1] if mass is None else mass.sum(-1, keepdim=True)
    if norm == "l1":
        by_sum = sums.sign() / total
        value = torch.linalg.vecdot(sums, by_sum)
    else:
        each = torch.ones_like(excess) if mass is None else mass
        by_sum = sums / torch.zeros_like(sums).scatter_add_(-1, index, each).clamp(min=_TINY)
        by_sum = by_sum / total
        value = differentiable_root(torch.linalg.vecdot(sums, by_sum))
        by_sum = by_sum / value.clamp(min=_TINY)[..., None]
    slope = sorting.take_by_row(by_sum, index)
    return value, (slope if mass is None else slope * mass).to(confidence.dtype)
