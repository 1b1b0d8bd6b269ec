"""Which samples a report shows where it cannot show all: those that say most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import InputError

Array = np.ndarray

FEWEST = 3
"""The least number of samples to choose: one of each kind."""


@dataclass(frozen=True)
class ChosenSamples:
    """Samples chosen from many.

    Attributes:
        samples: their numbers in the scan, ascending.
        of: how many there are in all.
        how: in words, how they were chosen; empty where all are there.
    """

    samples: Array
    of: int
    how: str

    @property
    def complete(self) -> bool:
        """Whether no sample was left out."""
        return len(self.samples) == self.of


def informative_samples(
    mean: Array, variance: Array, xy: Array, label: Array | None, count: int, upward: bool
) -> ChosenSamples:
    """Choose samples: a third most variable, a third worst, and others spread over the map.

    The first two thirds are taken class by class in turn, so that a class that is hard everywhere
    does not take all places.

    Arguments:
        mean: `[M, N]`, each sample's mean response over its orbit.
        variance: `[M, N]`, its variance there.
        xy: `[N, 2]`, its place on the map of responses; NaN for unfinished samples.
        label: `[N]`, its class, or None.
        count: how many to choose.
        upward: whether a high response is a good one.

    >>> spread = np.array([[0.0, 0.3, 0.0, 0.1, 0.0, 0.0]])
    >>> score = np.array([[0.9, 0.9, 0.2, 0.9, 0.8, 0.9]])
    >>> xy = np.array([[-3, -3], [1, 0], [0, 1], [9, 0], [0, 9], [4.0, 4.0]])
    >>> informative_samples(score, spread, xy, None, 3, True).samples.tolist()
    [1, 2, 5]
    """
    if count < FEWEST:
        raise InputError(f"samples: {count} given, {FEWEST} or more expected")
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
    for unease in (variance.max(0), -worst):
        taken[_in_turn(unease, label, finished & ~taken)[:third]] = True
    taken[_spread(np.where((finished & ~taken)[:, None], xy, np.nan), count - 2 * third)] = True
    how = (
        f"{count:,} of {total:,} samples: {third:,} whose answers vary most along the orbit, "
        f"{third:,} with the worst answers, {count - 2 * third:,} spread over the map"
    )
    return ChosenSamples(np.flatnonzero(taken), total, how)


def _in_turn(unease: Array, label: Array | None, among: Array) -> Array:
    """Order samples by unease, the first of each class before the second of any."""
    order = np.flatnonzero(among)
    order = order[np.argsort(-unease[order], kind="stable")]
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
