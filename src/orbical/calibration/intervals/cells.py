"""Samples gathered into cells of confidence, and drawn again from there.

Resampling never changes the order of confidences, only how often each sample occurs. So samples
are sorted and gathered once, and a resample is a few random counts for each cell: its cost does
not grow with the number of samples. A cell keeps the correct and the wrong samples apart, because
these are what is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from ..._arrays import single_precision
from ..measures.binned import bin_index, reliability
from ..measures.smooth import smooth_ece_from_masses, smooth_ece_masses_on_grid
from ..measures.soft import soft_ece_from_sums, soft_membership
from ..numerics import sorting
from ..numerics.decay_sums import decay_form

FINE = 512
"""Number of cells from which samples are gathered; up to it each distinct confidence is a cell."""

_PART = 1 << 16
"""Values of a part of the draws that measures are computed from at once."""

_FEW = 10
"""Labels of a cell, unlike the others, from which their number is nearly normal."""

_SMOOTHING_GRID = 256
_KERNEL_WIDTH = 0.4


@dataclass(frozen=True)
class Cells:
    """Sums over the samples of each cell, all `[..., G]` float64, cells in order of confidence.

    Attributes:
        place: the cell's mean confidence z.
        count: number of samples.
        residual: sum of `d = correct - confidence`.
        square: sum of `d^2`.
    """

    place: Tensor
    count: Tensor
    residual: Tensor
    square: Tensor

    @cached_property
    def total(self) -> Tensor:
        """Number of samples, `[..., 1]`; 1 where none was drawn, so that ratios are 0 there."""
        return self.count.sum(-1, keepdim=True).clamp(min=1)

    @cached_property
    def cumulative(self) -> Tensor:
        """Sum of the residuals up to each cell."""
        return self.residual.cumsum(-1)

    @cached_property
    def kernel_forms(self) -> dict[float, Tensor]:
        """The forms of Laplacian kernels that were computed so far, by width."""
        return {}


class CellRowGenerators:
    """Draws for the rows of `[R, L, G]` counts, each of the L rows as if it were alone.

    >>> rows = CellRowGenerators([0, 0]).poisson(np.full((2, 3), 5.0), (4, 2, 3))
    >>> bool((rows[:, 0] == rows[:, 1]).all())
    True
    """

    def __init__(self, seeds: Iterable[int]) -> None:
        self._each = [np.random.default_rng(seed) for seed in seeds]

    def poisson(self, mean: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Draw Poisson counts of means `[L, G]`."""
        rows = zip(self._each, mean, strict=True)
        return np.stack([one.poisson(own, (shape[0], *shape[2:])) for one, own in rows], 1)

    def binomial(self, count: np.ndarray, share: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Draw binomial counts of `[L, G]` trials."""
        rows = zip(self._each, count, share, strict=True)
        return np.stack([one.binomial(n, p, (shape[0], *shape[2:])) for one, n, p in rows], 1)


@dataclass(frozen=True)
class Tally:
    """The correct and the wrong samples of each cell, all `[L, G]` float64.

    Attributes:
        right: number of correct samples.
        wrong: number of wrong samples.
        right_sum: sum of the correct samples' confidences.
        wrong_sum: sum of the wrong samples' confidences.
        square_sum: sum of all squared confidences.
    """

    right: Tensor
    wrong: Tensor
    right_sum: Tensor
    wrong_sum: Tensor
    square_sum: Tensor

    def rows(self, chosen: slice) -> Tally:
        """Keep some of the leading rows."""
        return Tally(**{name: part[chosen] for name, part in vars(self).items()})

    @property
    def place(self) -> Tensor:
        """The mean confidence of each cell, 0 where it is empty."""
        return (self.right_sum + self.wrong_sum) / (self.right + self.wrong).clamp(min=1)

    def cells(self, right: Tensor, wrong: Tensor) -> Cells:
        """Return the cells that hold `right` and `wrong` samples `[..., L, G]` like those here."""
        right_place = self.right_sum / self.right.clamp(min=1)
        wrong_place = self.wrong_sum / self.wrong.clamp(min=1)
        gain = 1 - right_place
        residual = right * gain - wrong * wrong_place
        square = right * gain.square() + wrong * wrong_place.square()
        return Cells(self.place, right + wrong, residual, square)

    def observed(self) -> Cells:
        """Return the observed cells."""
        return self.cells(self.right, self.wrong)

    def resampled(
        self, resamples: int, generator: np.random.Generator | CellRowGenerators
    ) -> Iterator[Cells]:
        """Draw samples again, with replacement: cells `[resamples, L, G]`, in parts.

        Counts are Poisson, which is drawing N samples apart from N itself varying; measures divide
        by the number drawn.
        """
        shape = (resamples, *self.right.shape)
        right = generator.poisson(self.right.numpy(), shape)
        wrong = generator.poisson(self.wrong.numpy(), shape)
        for part in self._parts(resamples):
            yield self.cells(_float(right[part]), _float(wrong[part]))

    def calibrated(
        self, resamples: int, generator: np.random.Generator | CellRowGenerators
    ) -> Iterator[Cells]:
        """Draw labels anew, as if confidences were right: cells `[resamples, L, G]`, in parts.

        A cell of several confidences is drawn with their mean, and its deviation scaled to the
        variance `sum_i z_i (1 - z_i)` that it has. Where few labels differ from the others, their
        number is all that varies: scaled, no draw would reach what is observed with that number.
        """
        count, place = self.right + self.wrong, self.place.clamp(0, 1)
        shape = (resamples, *count.shape)
        drawn = generator.binomial(count.long().numpy(), place.numpy(), shape)
        binomial = count * place * (1 - place)
        exact = (count * place - self.square_sum).clamp(min=0)
        share = torch.where(binomial > 0, exact / binomial.clamp(min=1e-300), 0.0)
        scale = share.clamp(max=1).sqrt()
        for part in self._parts(resamples):
            right = _float(drawn[part])
            square = right * (1 - place).square() + (count - right) * place.square()
            few = torch.minimum(right, count - right) < _FEW
            residual = (right - count * place) * torch.where(few, 1.0, scale)
            yield Cells(self.place, count.expand_as(right), residual, square)

    def _parts(self, resamples: int) -> Iterator[slice]:
        """Split draws so that the arrays of a part stay in a processor's cache."""
        height = max(1, _PART // max(1, self.right.numel()))
        return (slice(top, top + height) for top in range(0, resamples, height))


def _float(counts: np.ndarray) -> Tensor:
    return torch.from_numpy(counts).double()


def fine_cell_index(confidence: Tensor) -> tuple[Tensor, int]:
    """Return the cell of each confidence `[L, N]` and how many there are; ties share a cell.

    Example:
        >>> fine_cell_index(torch.tensor([[0.9, 0.2, 0.9]]))
        (tensor([[1, 0, 1]]), 3)
    """
    ordered, order = sorting.ascending(confidence)
    size = ordered.shape[-1]
    cells = min(size, FINE)
    places = torch.arange(size, device=order.device).repeat(len(ordered), 1)
    first = sorting.sorted_ties(ordered).at_first(places)
    return sorting.undo_sort(first * cells // size, order), cells


def bin_cell_index(confidence: Tensor, bins: int, binning: str) -> tuple[Tensor, int]:
    """Return the bin of each confidence `[L, N]`, as `reliability` has it, and their number.

    Example:
        >>> bin_cell_index(torch.tensor([[0.9, 0.2]]), 2, "width")
        (tensor([[1, 0]]), 2)
    """
    if binning == "width":
        return bin_index(confidence, bins), bins
    edges = reliability(confidence, confidence > 2, bins=bins, binning=binning).edges
    inner = edges[:, 1:-1].contiguous()
    values = single_precision(confidence).double().contiguous()
    return torch.searchsorted(inner, values), bins


def tally(confidence: Tensor, correct: Tensor, index: Tensor, cells: int) -> Tally:
    """Gather samples `[L, N]` into the cells that `index` names.

    Example:
        >>> gathered = tally(torch.tensor([[0.9, 0.8]]), torch.tensor([[True, False]]),
        ...                  torch.tensor([[0, 0]]), 1)
        >>> gathered.right, gathered.wrong
        (tensor([[1.]], dtype=torch.float64), tensor([[1.]], dtype=torch.float64))
    """
    rows = len(confidence)
    start = cells * torch.arange(rows, device=index.device)[:, None]
    hit = correct.bool()
    # Correct and wrong samples of a cell lie side by side, so that one pass counts both.
    place = (2 * (index + start) + hit.long()).reshape(-1)
    z = confidence.double().reshape(-1)

    def summed(values: Tensor | None) -> Tensor:
        found = torch.bincount(place, values, minlength=2 * rows * cells)
        return found.double().cpu().view(rows, cells, 2)

    (wrong, right), (wrong_sum, right_sum) = (summed(part).unbind(-1) for part in (None, z))
    return Tally(right, wrong, right_sum, wrong_sum, summed(z.square()).sum(-1))


def binned_error(cells: Cells, norm: str) -> Tensor:
    """Return the binned calibration error of cells that are bins, in one of `ece`'s norms."""
    filled = cells.count.clamp(min=1)
    if norm == "max":
        return (cells.residual.abs() / filled).amax(-1)
    if norm == "l2":
        return ((cells.residual.square() / filled).sum(-1) / cells.total[..., 0]).sqrt()
    return cells.residual.abs().sum(-1) / cells.total[..., 0]


def debiased_error(cells: Cells) -> Tensor:
    """Return `ece_debiased` of cells that are bins, whose confidences are taken to be equal."""
    filled = cells.count.clamp(min=1)
    gap = (cells.residual / filled).square()
    noise = (cells.square / filled - gap) / (cells.count - 1).clamp(min=1e-300)
    terms = torch.where(cells.count > 1, cells.count * (gap - noise), 0.0)
    return terms.sum(-1) / cells.total[..., 0]


def largest_deviation(cells: Cells) -> Tensor:
    """Return KS: the largest cumulative residual, over N."""
    return cells.cumulative.abs().amax(-1) / cells.total[..., 0]


def cumulative_norm(cells: Cells) -> Tensor:
    """Return the root of the biased ESD: root mean square of the cumulative residual, over N."""
    squares: Tensor = torch.linalg.vecdot(cells.count, cells.cumulative.square())
    return (squares / cells.total[..., 0].pow(3)).sqrt()


def unbiased_cumulative(cells: Cells) -> Tensor:
    """Return ESD, `sum_i (S_i^2 - Q_i) / (N (N-1) (N-2))`, samples of a cell being ties."""
    total, below = cells.total[..., 0], cells.cumulative
    terms = (
        cells.count * below.square()
        - 2 * below * cells.residual
        + 2 * cells.square
        - cells.count * cells.square.cumsum(-1)
    )
    return terms.sum(-1) / (total * (total - 1) * (total - 2)).clamp(min=1)


def _kernel_form(cells: Cells, phi: float) -> Tensor:
    """Return `sum_ij d_i d_j exp(-|z_i - z_j| / phi)`."""
    if phi not in cells.kernel_forms:
        place = cells.place.cummax(-1).values  # an empty cell takes the place of the one before it
        cells.kernel_forms[phi] = decay_form(cells.residual, place, phi)
    return cells.kernel_forms[phi]


def kernel_norm(cells: Cells, phi: float = _KERNEL_WIDTH) -> Tensor:
    """Return MMCE."""
    return _kernel_form(cells, phi).clamp(min=0).sqrt() / cells.total[..., 0]


def kernel_norm_squared(cells: Cells, phi: float = _KERNEL_WIDTH) -> Tensor:
    """Return the square of MMCE."""
    return kernel_norm(cells, phi).square()


def unbiased_kernel(cells: Cells, phi: float = _KERNEL_WIDTH) -> Tensor:
    """Return SKCE: the kernel form without the pairs of a sample with itself."""
    total = cells.total[..., 0]
    form = _kernel_form(cells, phi) - cells.square.sum(-1)
    return form / (total * (total - 1)).clamp(min=1)


def smoothed_error(cells: Cells, bandwidth: float | None = None) -> Tensor:
    """Return smooth ECE, the residual of a cell lying at its mean confidence."""
    masses = smooth_ece_masses_on_grid(cells.place, cells.residual, _SMOOTHING_GRID)
    return smooth_ece_from_masses(masses, cells.total[..., 0], bandwidth)


def soft_binned_error(cells: Cells, bins: int = 15, temperature: float = 0.01) -> Tensor:
    """Return SB-ECE, the samples of a cell lying at its mean confidence."""
    shares = soft_membership(cells.place, bins, temperature)
    sums = (cells.count, cells.residual)
    size, gap = (torch.einsum("...g,...gb->...b", part, shares) for part in sums)
    return soft_ece_from_sums(size, gap).nan_to_num(0.0)  # where no sample was drawn
