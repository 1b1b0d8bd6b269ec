"""The accuracy ceiling of the population, certified from independent samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import xlogy

from .._arrays import ArrayLike, as_numpy
from ..calibration import bounded_mean_interval
from ..errors import InputError
from . import table_checks as checks
from .orbit_table import OrbitTable

__all__ = ["Price", "certified_ceiling", "price_from_pairs"]

Array = np.ndarray
_SPLITS = 32


@dataclass(frozen=True)
class Price:
    """What a symmetry costs, from two samples of each of some orbits; see `price_from_pairs`.

    Attributes:
        differs: the share of pairs whose labels differ.
        low: the lower limit of that share in the population.
        high: the upper limit.
        ceiling_low: an accuracy that the best invariant model has at least.
        ceiling_high: an accuracy that no invariant model exceeds.
        pairs: the number of pairs.
    """

    differs: float
    low: float
    high: float
    ceiling_low: float
    ceiling_high: float
    pairs: int


def price_from_pairs(
    first: ArrayLike, second: ArrayLike, *, labels: int | None = None, level: float = 0.95
) -> Price:
    """Certify what a symmetry costs, from the labels of two fresh samples of each orbit.

    An invariant model gives both samples one label, so where their labels differ it errs at least
    once. With D the probability that they differ and C labels, the accuracy ceiling lies between

        1 - D  <=  ceiling  <=  1 - (C - 1) / C (1 - sqrt(1 - C D / (C - 1)))  <=  1 - D / 2

    and the number of different pairs is binomial: the exact limits (Clopper and Pearson) of D hold
    at any number of pairs, and with them both ends, with probability `level`. Nothing is assumed of
    the orbits, which need not recur, as those of continuous data. A model of accuracy a must break
    the symmetry on at least `a - ceiling_high` of the samples.

    Args:
        first: `[n]` whole numbers, the labels of a sample of each of n orbits, drawn independently.
        second: `[n]`, the labels of another sample of the same orbits, drawn after the first: a
            second annotator of the transformed image, or a second measurement.
        labels: the number of labels C; one more than the largest by default.
        level: the probability with which the limits hold.

    Returns:
        The price.

    Raises:
        InputError: if the labels are not pairs of whole numbers.

    See Also:
        certified_ceiling: From orbits that recur among the samples.

    Example:
        >>> found = price_from_pairs([0, 1] * 50, [0, 1] * 40 + [1, 1] * 10)
        >>> found.differs, round(found.ceiling_low, 3), round(found.ceiling_high, 3)
        (0.1, 0.824, 0.975)
    """
    size = len(as_numpy("first", first))
    if size == 0:
        raise InputError("first", "at least one pair", "none")
    one, other = (
        checks.checked_table_integers(name, values, size, below=labels)
        for name, values in (("first", first), ("second", second))
    )
    count = max(2, int(max(one.max(), other.max())) + 1) if labels is None else labels
    differs, low, high = map(float, bounded_mean_interval(one != other, checks.level(level)))
    return Price(
        differs, low, high, max(1 / count, 1 - high), 1 - least_error_of_pairs(low, count), size
    )


def least_error_of_pairs(differs: float, labels: int) -> float:
    """Return the least error floor at which two samples of an orbit differ so often."""
    share = (labels - 1) / labels
    return float(share * (1 - np.sqrt(max(0.0, 1 - differs / share))))


def certified_ceiling(table: OrbitTable, *, level: float = 0.95) -> tuple[float, float]:
    """Return an interval that holds the accuracy ceiling of the population.

    The ceiling of a table counted from n samples is that of the sample. It is biased upwards: an
    orbit that occurs once has no dissent. The interval holds for any number of orbits, if the
    samples are independent and the orbits do not depend on them, with probability `level`.

    *From above*: let f be the best invariant classifier of the population. The sample's ceiling c^
    is at least the accuracy of f on the sample, which is binomial, so the exact (Clopper-Pearson)
    upper limit of c^ holds for the ceiling c. *From below*: take the majority labels of one half of
    the samples and their accuracy on the other. That mean of n/2 independent outcomes has an
    expectation of at most c whatever the first half, so Chernoff's bound holds; it holds for the
    average over several splits as well, because the exponential is convex. Where orbits never
    recur the upper end is 1 and says nothing; see `neighbor_ceiling`.

    The orbits of an open group, such as a sample of rotations, are finer than those of its
    symmetry: then the lower end is 0, since no invariant model need attain more.

    Args:
        table: counted from samples of equal mass, on orbits that are exact.
        level: the probability with which both ends hold.

    Returns:
        The lower and the upper end.

    Raises:
        InputError: if the table was not counted from samples, or its samples were joined within a
            tolerance.

    See Also:
        neighbor_ceiling: An estimate where no orbit recurs.

    References:
        Clopper and Pearson, The use of confidence or fiducial limits, Biometrika 1934.

    Example:
        >>> orbit, label = np.arange(400) % 4, np.arange(400) % 4 // 3
        >>> label[::8] = 1
        >>> low, high = certified_ceiling(OrbitTable.from_labels(orbit, label))
        >>> bool(low < 0.875 < high)
        True
    """
    from scipy.stats import beta  # takes half a second

    checks.of_kind(table, OrbitTable)
    if table.samples is None or table.samples < 2 or table.tolerance is not None:
        raise InputError(
            "table",
            "a table counted from two or more samples of equal mass, on exact orbits",
            "another",
        )
    count, risk = table.samples, (1 - checks.level(level)) / 2
    right = round(table.accuracy_ceiling * count)
    high = 1.0 if right == count else float(beta.ppf(1 - risk, right + 1, count - right))
    accuracy = _ceiling_of_split(np.rint(table.mass * count).astype(np.int64))
    # What the orbits of a sampled group allow, no invariant model need attain.
    return _chernoff_ceiling(accuracy, count // 2, risk) if table.closed else 0.0, high


def _ceiling_of_split(counts: Array) -> float:
    """Return the mean accuracy of majority labels on the half of the samples they are not from.

    Orbits without a sample in the first half take its most frequent label. Rows are sorted, so that
    the splits do not depend on the order of samples.
    """
    counts = counts[np.lexsort(counts.T[::-1])]
    orbit, label = (np.repeat(index.ravel(), counts.ravel()) for index in np.indices(counts.shape))
    rng, half = np.random.default_rng(0), len(orbit) // 2
    found = np.empty(_SPLITS)
    for split in range(_SPLITS):
        order = rng.permutation(len(orbit))
        judged, seen = order[:half], order[half:]
        votes = np.zeros(counts.shape)
        np.add.at(votes, (orbit[seen], label[seen]), 1)
        votes += votes.sum(0) / (votes.sum() + 1)  # less than one vote: for ties and the unseen
        found[split] = (votes.argmax(1)[orbit[judged]] == label[judged]).mean()
    return float(found.mean())


def _chernoff_ceiling(accuracy: float, count: int, risk: float) -> float:
    """Return the least c with `count * kl(accuracy, c) <= log(1 / risk)`."""
    limit = np.log(1 / risk) / count

    def excess(c: float) -> float:
        kl = xlogy(accuracy, accuracy / c) + xlogy(1 - accuracy, (1 - accuracy) / (1 - c))
        return float(kl - limit)

    least = 1e-12
    if accuracy <= least or excess(least) <= 0:
        return 0.0
    return float(brentq(excess, least, min(accuracy, 1 - 1e-12)))
