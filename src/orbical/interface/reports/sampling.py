"""Select the most informative samples for a report that cannot hold all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import InputError

Array = np.ndarray

FEWEST = 3
"""The least number of samples to select: one of each kind."""


@dataclass(frozen=True)
class ChosenSamples:
    """A selection of samples.

    Attributes:
        samples: Their indices in the scan, ascending.
        of: The number of samples in the scan.
        how: A description of how they were selected; empty if all are included.
    """

    samples: Array
    of: int
    how: str

    @property
    def complete(self) -> bool:
        """Whether all samples are included."""
        return len(self.samples) == self.of


def informative_samples(
    mean: Array, variance: Array, xy: Array, label: Array | None, count: int, upward: bool
) -> ChosenSamples:
    """Select samples: a third most variable, a third worst, the rest spread over the map.

    The first two thirds are taken class by class in turn, so that they do not all come from one
    difficult class.

    Args:
        mean: `[M, N]`, each sample's mean response over its orbit.
        variance: `[M, N]`, its variance over the orbit.
        xy: `[N, 2]`, its position on the map of responses; NaN for unfinished samples.
        label: `[N]`, its class, or None.
        count: How many to select.
        upward: Whether a higher response is better.

    >>> spread = np.array([[0.0, 0.3, 0.0, 0.1, 0.0, 0.0]])
    >>> score = np.array([[0.9, 0.9, 0.2, 0.9, 0.8, 0.9]])
    >>> xy = np.array([[-3, -3], [1, 0], [0, 1], [9, 0], [0, 9], [4.0, 4.0]])
    >>> informative_samples(score, spread, xy, None, 3, True).samples.tolist()
    [1, 2, 5]
    """
    if count < FEWEST:
        raise InputError("samples", f"{FEWEST} or more", count)
    total = mean.shape[1]
    if total <= count:
        return ChosenSamples(np.arange(total), total, "")
    finished = np.isfinite(xy).all(1)
    known = np.flatnonzero(finished)
    if len(known) <= count:
        return ChosenSamples(known, total, f"the {len(known):,} finished samples of {total:,}")
    third = count // 3
    worst = np.where(upward, mean, -mean).min(0)
    taken = np.zeros(total, bool)
    for priority in (variance.max(0), -worst):
        taken[_in_turn(priority, label, finished & ~taken)[:third]] = True
    taken[_spread(np.where((finished & ~taken)[:, None], xy, np.nan), count - 2 * third)] = True
    how = (
        f"{count:,} of {total:,} samples: {third:,} that vary most along the orbit, {third:,} with "
        f"the worst scores, {count - 2 * third:,} spread over the map"
    )
    return ChosenSamples(np.flatnonzero(taken), total, how)


def _in_turn(priority: Array, label: Array | None, among: Array) -> Array:
    """Sort samples by priority, the first of each class before the second of any."""
    order = np.flatnonzero(among)
    order = order[np.argsort(-priority[order], kind="stable")]
    if label is None:
        return order
    rank = np.empty(len(order), int)
    for one in np.unique(label[order]):
        members = label[order] == one
        rank[members] = np.arange(members.sum())
    return order[np.argsort(rank, kind="stable")]


def _spread(xy: Array, count: int) -> Array:
    import xarray as xr

    from ...embedding import representatives

    return representatives(xr.DataArray(xy, dims=("sample", "component")), count)
