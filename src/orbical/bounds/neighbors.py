"""Estimates where no samples coincide: nearest neighbors in the quotient by a group.

The quotient distance of two samples is the least distance of their images, `min_g ||g x - x'||`.
Neighbors in it stand in for samples of one orbit. What is computed from them is an estimate that
becomes exact as samples become dense; it is not a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from .._arrays import ArrayLike
from ..actions import ActionTree
from ..errors import InputError
from ..groups import Group
from ..scanning import scan_progress_bar
from . import table_checks as checks
from .matching import Mover
from .price_and_ceiling import least_error_of_pairs

__all__ = ["Estimate", "neighbor_ceiling", "neighbor_floor"]

Array = np.ndarray
Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Of samples, a sample nearest to each of them, and the element that brings them together."""
_Pairs = tuple[Tensor, Tensor, Tensor, Tensor]
"""Places in a block, samples nearest to them, and elements; and the least distance `[b]`."""

_BLOCK_VALUES = 1 << 24
_MOST_PRODUCTS = 6.2e12
"""Multiplications spent on a data set (on two cores, some minutes; 10,000 digits x 72 rotations);
beyond them only some of the samples look for neighbors."""
_PRODUCTS_PER_PAIR = 64
"""What reading and comparing a distance costs, in multiplications."""
_LONG = 2e10
"""Multiplications, about a second's, from which a progress bar is worth showing."""
_SHARED = 2
"""Mutual neighbors err together, so the errors are worth only one in so many independent ones."""
_NEAR = 0.1
"""The spacing up to which samples count as dense: errors of neighbors are about .05 too large."""


@dataclass(frozen=True)
class Estimate:
    """An estimate from neighbors across orbits; never a bound.

    Attributes:
        value: of values, the estimated floor of the squared error; of labels, the error of the
            nearest-neighbor classifier, from which the ceiling follows.
        low: the lower end of the interval: of the floor, or of the ceiling of the accuracy.
        high: the upper end.
        samples: how many samples looked for their neighbors.
        spacing: the distance of neighbors over that of other samples, in root mean square.
        influence: `[2, N]`, what each sample adds to the value by its own term, and by all terms
            that it is part of.
    """

    value: float
    low: float
    high: float
    samples: int
    spacing: float
    influence: Array = field(repr=False, compare=False)

    @property
    def dense(self) -> bool:
        """Whether neighbors are near: if not, in high dimension, only a difference says much."""
        return self.spacing <= _NEAR

    def difference(self, other: Estimate, level: float = 0.95) -> tuple[float, float, float]:
        """Return this value less another's on the same samples, with the ends of its interval.

        What both share cancels in each sample. A sample has an influence on its own term and on
        those of all samples that it is the neighbor of; the variance is that of a jackknife that
        leaves out a sample with all its pairs.
        """
        apart = self.value - other.value
        reach = _quantile(level, self.samples - 1) * _deviation(self.influence - other.influence)
        return apart, apart - reach, apart + reach


def neighbor_ceiling(
    x: object,
    label: ArrayLike,
    group: Group | str,
    *,
    action: ActionTree | None = None,
    labels: int | None = None,
    mass: ArrayLike | None = None,
    level: float = 0.95,
    progress: bool = False,
) -> Estimate:
    """Estimate the accuracy ceiling of a symmetry from neighbors across orbits.

    The leave-one-out error e of the nearest-neighbor classifier in the quotient distance brackets
    the error floor: with C labels, Cover and Hart's `(C-1)/C (1 - sqrt(1 - C e / (C-1)))` <= floor
    <= e, as the samples become dense. The interval also covers the sampling error of e, and what e
    is too large by because neighbors are not near: its upper end takes the error that samples of
    spacing 0 would have, by a line through the errors of all samples and of halves of them. In
    high dimension (`dense` is false) it reaches to 1 or nearly so and says little; what the
    symmetry changes is then `difference` from the estimate of the trivial group.

    Samples that are equally near count alike. Tensors are compared on their device, in blocks.
    Points and atoms are compared in the order given: the first of one with the first of the other.
    Where the order means nothing, sort them alike in all samples, or the estimate is too low.

    Args:
        x: as in `match_orbits`, or a tree of arrays with an `action` for each, such as molecules
            `{"pos": ..., "numbers": ...}`.
        label: `[N]` whole numbers from 0.
        group: as in `match_orbits`.
        action: as in `match_orbits`.
        labels: the number of labels; one more than the largest by default.
        mass: `[N]`, each sample's probability; equal by default.
        level: the probability that the interval covers.
        progress: whether to show a progress bar, if it takes more than about a second.

    Returns:
        The error e as `value`, and the interval of the ceiling.

    Raises:
        InputError: if there are fewer than two samples, or an argument does not fit.

    See Also:
        certified_ceiling: A bound, where orbits recur.

    References:
        Cover and Hart, Nearest neighbor pattern classification, IEEE Trans. Inf. Theory 1967.

    Example:
        >>> x = np.random.default_rng(0).normal(size=(500, 2))
        >>> found = neighbor_ceiling(x, (x[:, 0] > 0).astype(int), "cyclic:2")
        >>> found.low < 0.5 < found.high  # a half turn carries every label to the other one
        True
    """
    from scipy.stats import beta  # takes half a second

    mover = Mover(x, group, action, exact=False)
    size = len(mover)
    classes = checks.checked_table_integers("label", label, size, below=labels)
    count = max(2, int(classes.max()) + 1) if labels is None else labels
    weight = checks.sample_mass(mass, size)
    truth, chosen = torch.as_tensor(classes, device=mover.device), _neighbor_queries(mover)

    def wrong(query: Tensor, near: Tensor, _: Tensor) -> Tensor:
        return (truth[near] != truth[query]).double()

    means = _means_over_neighbors(mover, chosen, weight, wrong, progress)
    error, mass = float(means.values[0]), weight[chosen]
    worth = float(mass.sum() ** 2 / np.square(mass).sum() / _SHARED)  # in independent samples
    risk = (1 - checks.level(level)) / 2
    least = float(beta.ppf(risk, error * worth, worth - error * worth + 1)) if error > 0 else 0.0
    most = float(beta.ppf(1 - risk, error * worth + 1, worth - error * worth)) if error < 1 else 1.0
    least = max(0.0, min(least, means.least_if_dense(level)))
    ends = 1 - most, 1 - least_error_of_pairs(least, count)
    return Estimate(error, *ends, len(chosen), means.spacing, means.influences[0])


def neighbor_floor(
    x: object,
    value: ArrayLike,
    group: Group | str,
    *,
    representation: object = "invariant",
    action: ActionTree | None = None,
    mass: ArrayLike | None = None,
    level: float = 0.95,
    progress: bool = False,
) -> Estimate:
    """Estimate the floor of the squared error of equivariant regressors from neighbors.

    If g x is near x', half of `||rho(g) f(x) - f(x')||^2` is, on average, the variance that no
    equivariant model explains (Theorem 3's floor), as the samples become dense. With few samples
    the estimate is too large, and the lower end of the interval is that of `neighbor_ceiling`, on
    the way to a spacing of 0; compare it with that of the trivial group.

    Args:
        x: as in `neighbor_ceiling`.
        value: `[N, D]` (or `[N]`).
        group: as in `match_orbits`.
        representation: `"invariant"`, or orthogonal matrices `[K, D, D]`.
        action: as in `match_orbits`.
        mass: `[N]`, each sample's probability; equal by default.
        level: the probability that the interval covers.
        progress: whether to show a progress bar, if it takes more than about a second.

    Returns:
        The floor, and its interval.

    Raises:
        InputError: if there are fewer than two samples, or an argument does not fit.

    Example:
        >>> x = np.random.default_rng(0).normal(size=(500, 2))
        >>> found = neighbor_floor(x, x[:, 0], "cyclic:2")  # invariant models can only answer 0
        >>> found.low < 1 < found.high
        True
    """
    mover = Mover(x, group, action, exact=False)
    values, weight = (checks.columns("value", value), checks.sample_mass(mass, len(mover)))
    if len(values) != len(mover):
        raise InputError("value", f"one for each of {len(mover)} samples", len(values))
    truth, chosen = mover.tensor(values), _neighbor_queries(mover)
    turns = None
    if not isinstance(representation, str):
        matrices = checks.checked_table_representation(representation, values.shape[1])
        if not checks.orthogonal(matrices):
            raise InputError(
                "representation",
                "orthogonal matrices: others change the lengths that are compared",
                "others",
                remedy="scale the values so that the group preserves their lengths",
            )
        turns = mover.tensor(matrices)

    def half_difference(query: Tensor, near: Tensor, element: Tensor) -> Tensor:
        here = truth[query]
        if turns is not None:
            here = (turns[element] @ here[..., None])[..., 0]
        return (here - truth[near]).square().sum(1) / 2

    means = _means_over_neighbors(mover, chosen, weight, half_difference, progress)
    floor, influence = float(means.values[0]), means.influences[0]
    reach = _quantile(level) * _deviation(influence)
    least = max(0.0, min(floor - reach, means.least_if_dense(level)))
    return Estimate(floor, least, floor + reach, len(chosen), means.spacing, influence)


def _quantile(level: float, freedom: float = np.inf) -> float:
    """Return the quantile of Student's t, by default that of a normal distribution."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + checks.level(level)) / 2))


def _neighbor_queries(mover: Mover) -> Array:
    """Return the samples that look for neighbors: all, or as many as there is time for."""
    size = len(mover)
    if size < 2:
        raise InputError("x", "two or more samples", size)
    affordable = _MOST_PRODUCTS * (1 if mover.device.type == "cpu" else 100)
    most = int(affordable / _products(mover))
    if size <= most:
        return np.arange(size)
    return np.sort(np.random.default_rng(0).permutation(size)[: max(most, 100)])


def _products(mover: Mover) -> float:
    """Return the multiplications that the neighbors of one sample cost."""
    return len(mover) * len(mover.group) * float(mover.flat.shape[1] + _PRODUCTS_PER_PAIR)


def _deviation(influence: Array) -> float:
    """Return the standard deviation of a mean over pairs: those that share a sample co-vary."""
    own, total = np.square(influence).sum(1)
    return float(np.sqrt(max(total - own, own)))  # each pair counts for both of its samples


@dataclass(frozen=True, eq=False)
class _NeighborMeans:
    """Means over neighbors among all samples, and among each half of them.

    Attributes:
        values: `[3]`.
        influences: `[3, 2, N]`, as in `Estimate`.
        distances: `[3]`, the root mean square distance of neighbors.
        spacing: the first of them over the distance of other samples.
    """

    values: Array
    influences: Array
    distances: Array
    spacing: float

    def least_if_dense(self, level: float) -> float:
        """Return the lower limit of the mean at distance 0, by a line through all and halves."""
        here, there = self.distances[0], self.distances[1:].mean()
        if not np.isfinite(there):  # a half without samples
            return -np.inf
        if not there > here > 0:  # samples coincide
            return np.inf
        factor = here / (there - here)
        line = np.array([1 + factor, -factor / 2, -factor / 2])
        reach = _quantile(level) * _deviation(np.tensordot(line, self.influences, 1))
        return float(line @ self.values - reach)


def _means_over_neighbors(
    mover: Mover, chosen: Array, weight: Array, loss: Loss, progress: bool
) -> _NeighborMeans:
    """Return the mean over chosen samples of a loss with their nearest samples, by weight."""
    masses = mover.tensor(weight)
    shares = masses / masses[torch.as_tensor(chosen, device=mover.device)].sum()
    # Of all samples and of halves: shares and losses of each sample as the first and the second.
    sums = torch.zeros(3, 2, 2, len(mover), dtype=masses.dtype, device=mover.device)
    squares, typical = np.zeros(3), 0.0
    shown = progress and _products(mover) * len(chosen) > _LONG
    with scan_progress_bar(len(chosen), 0, 1, shown, "neighbors", "searches") as advance:
        for rows, apart, nearest in _quotient_neighbors(mover, chosen):
            typical += float(shares[rows] @ apart)
            for number, (query, near, element, least) in enumerate(nearest):
                first = rows[query]
                mass = torch.zeros_like(masses).index_add_(0, first, masses[near])
                share = shares[first] * masses[near] / mass[first]
                for place, terms in enumerate((share, share * loss(first, near, element))):
                    sums[number, place, 0].index_add_(0, first, terms)
                    sums[number, place, 1].index_add_(0, near, terms)
                squares[number] += float(shares[rows] @ least.square())
            advance(len(rows))
    share, losses = sums.cpu().numpy().swapaxes(0, 1)
    values = losses[:, 0].sum(-1)
    centered = losses - values[:, None, None] * share
    influences = np.stack([centered[:, 0], centered.sum(1)], 1)
    spacing = np.sqrt(squares[0] / typical) if typical > 0 else 0.0
    return _NeighborMeans(values, influences, np.sqrt(squares), float(spacing))


def _quotient_neighbors(
    mover: Mover, chosen: Array
) -> Iterator[tuple[Tensor, Tensor, list[_Pairs]]]:
    """Iterate over blocks of samples `[b]`, their mean squared distance from others, and pairs.

    Pairs of one of them and a sample nearest to it, among all samples and among each half. The
    sample itself is left out; its images come near it whatever the labels are.
    """
    flat = mover.flat
    center = flat.mean(0)
    half = mover.tensor(_half(flat.double().cpu().numpy())).bool()
    left_out = [None, half, ~half]
    flat = flat - center
    length = flat.square().sum(1)
    rounding = 64 * torch.finfo(flat.dtype).eps
    samples = torch.cat([flat, torch.ones_like(flat[:, :1])], 1).T
    step = max(1, _BLOCK_VALUES // max(len(flat), len(mover.group) * flat.shape[1]))
    for start in range(0, len(chosen), step):
        rows = torch.as_tensor(chosen[start : start + step], device=mover.device)
        images = mover.images(chosen[start : start + step]) - center
        best = torch.full((len(rows), len(flat)), torch.inf, dtype=flat.dtype, device=mover.device)
        product = torch.empty_like(best)
        for image in images:
            # One product of matrices is |gx|^2 - 2 <gx, y>; |y|^2 is the same for all elements.
            factors = torch.cat([-2 * image, image.square().sum(1, keepdim=True)], 1)
            torch.minimum(best, torch.mm(factors, samples, out=product), out=best)
        best += length
        best[torch.arange(len(rows)), rows] = 0.0
        typical = best.double().clamp_min(0.0).sum(1) / (len(flat) - 1)
        best[torch.arange(len(rows)), rows] = torch.inf
        nearest = []
        for some in left_out:
            among = best if some is None else best.masked_fill(some, torch.inf)
            near = among <= among.amin(1, keepdim=True) + rounding * length.max()
            near &= among.isfinite()
            query, sample = near.nonzero(as_tuple=True)
            gap, element = _exact_gaps_to_neighbors(images, flat, query, sample)
            least = torch.full((len(rows),), torch.inf, dtype=gap.dtype, device=mover.device)
            least.scatter_reduce_(0, query, gap, "amin")
            kept = gap <= least[query] + rounding * length.max().sqrt()
            nearest.append((query[kept], sample[kept], element[kept], least))
        yield rows, typical, nearest


def _half(flat: Array) -> Array:
    """Draw half of samples `[N, D]` by their ranks, which depend on no order and no unit."""
    rng = np.random.default_rng(0)
    rank = np.unique(
        np.einsum("nd,d->n", flat, rng.normal(size=flat.shape[1])), return_inverse=True
    )[1]
    return np.asarray(rng.random(len(flat)) < 0.5)[rank]


def _exact_gaps_to_neighbors(
    images: Tensor, flat: Tensor, query: Tensor, sample: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the distance of each pair under the element that brings it nearest, and the element.

    Expanded squares lose the digits of small distances: these come from differences, in float64.
    """
    least = torch.full((len(query),), torch.inf, dtype=torch.float64, device=flat.device)
    element = torch.zeros_like(query)
    step = max(1, _BLOCK_VALUES // flat.shape[1])
    for start in range(0, len(query), step):
        some = slice(start, start + step)
        there = flat[sample[some]].double()
        for number, image in enumerate(images):
            gap = (image[query[some]] - there).norm(dim=1)
            element[some][gap < least[some]] = number
            torch.minimum(least[some], gap, out=least[some])
    return least, element
