"""Sums over samples and moments over orbits, in one pass over the blocks of a scan.

Every mean over samples that is shown anywhere follows from these sums: the aggregate plot, its
interval, classes, checks, the tables of the view and those of a report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np

from .._lazy import xr
from ..calibration import MANY, CautionedMean, bounded_interval_of_sums, bounded_mean_interval
from ..store import AGREES, FINISHED, ScanArrays

Array = np.ndarray

POWERS = 5
"""Sums of the powers 0 to 4 are kept: number, values, squares, cubes and fourth powers."""
ROWS = 2048
"""Rows that are summed at once, in double precision: few enough for the cache of a processor."""


_Part = TypeVar("_Part")


@dataclass(frozen=True)
class Sums:
    """Sums over the samples of each set: their number, and powers of values, `[M, S, K]` each."""

    count: Array
    total: Array
    squares: Array
    cubes: Array
    fourths: Array

    def __getitem__(self, sets: slice | Sequence[int]) -> Sums:
        """Return the sums `[M, 1, K]` over the samples of several sets."""
        return Sums(
            *(getattr(self, one.name)[:, sets].sum(1, keepdims=True) for one in fields(Sums))
        )

    @property
    def mean(self) -> Array:
        """The means `[M, S, K]`, NaN where no sample has a value."""
        return self.total / np.where(self.count > 0, self.count, np.nan)

    def interval(
        self,
        bounds: tuple[float, float] | None = None,
        least: float | None = None,
        level: float = 0.95,
        values: Callable[[int, int], Array] | None = None,
    ) -> CautionedMean[Array]:
        """Return the mean and the ends of its interval, `[M, S, K]` each.

        It is that of `orbical.calibration.bounded_mean_interval` for values with bounds, otherwise
        that of `orbical.calibration.unbounded_mean_interval`.

        Args:
            bounds: What no value can be below or above, such as 0 and 1 for shares.
            least: Without bounds, what no value can be below, such as 0 for distances.
            level: Nominal coverage.
            values: Returns the values `[n, K]` of a model and a set, unless they are true or false:
                those of few samples tell more than their sums.
        """
        from ..calibration import interval_of_sums, share_interval_of_sums

        parts = self.count, self.total, self.squares
        if bounds is None:
            lowest = -np.inf if least is None else least
            return interval_of_sums(*parts, self.cubes, self.fourths, level, low=lowest)
        if values is None:
            return CautionedMean(share_interval_of_sums(*parts, level))
        within = dict(zip(("low", "high"), bounds, strict=True))
        mean, low, high = bounded_interval_of_sums(*parts, level, **within)
        few = (self.count > 0) & (self.count <= MANY)
        for model, place in np.argwhere(few.any(-1)):
            some, cell = few[model, place], (model, place)
            ends = bounded_mean_interval(values(model, place).T[some], level, **within)
            low[cell][some], high[cell][some] = ends[1:]
        return CautionedMean((mean, low, high))


@dataclass(frozen=True)
class Moments(Sums):
    """Sums over samples, and the mean and variance of each sample over its orbit.

    Attributes:
        orbit_mean: `[M, N]`, each sample's mean over its orbit, weighted by the group, over the
            elements at which it has a value (an object may leave the view); NaN if it has none.
        orbit_variance: `[M, N]`, its variance over the orbit.
        low: The smallest value.
        high: The largest value.
    """

    orbit_mean: Array
    orbit_variance: Array
    low: float
    high: float


def sums_over(arrays: ScanArrays, name: str, sets: Array | None = None, count: int = 1) -> Sums:
    """Sum responses over the samples of each of `count` sets.

    Args:
        arrays: The arrays of a scan.
        name: The array of responses.
        sets: `[N]`, the set of each sample, -1 for none; all samples are one set by default.
        count: The number of sets.
    """
    sums = _empty(arrays, count)
    for rows in arrays.blocks(name):
        places = None if sets is None else sets[rows]
        if places is None or (places >= 0).any():
            for model in range(len(sums[0])):
                add_sums(sums[:, model], arrays.responses(name, rows, model), places)
    return Sums(*sums)


def moments(arrays: ScanArrays, name: str, sets: Array | None = None, count: int = 1) -> Moments:
    """Compute sums over samples as `sums_over` does, and moments over each orbit, in one pass."""
    sums, weights = _empty(arrays, count), arrays.weights
    mean, variance = (np.full((sums.shape[1], arrays.samples), np.nan) for _ in range(2))
    low, high = np.inf, -np.inf
    for rows in arrays.blocks(name):
        places = None if sets is None else sets[rows]
        for model in range(len(mean)):
            values = arrays.responses(name, rows, model)
            add_sums(sums[:, model], values, places)
            mean[model, rows], variance[model, rows] = orbit_means_and_variances(values, weights)
            low = float(np.fmin.reduce(values, None, initial=low))
            high = float(np.fmax.reduce(values, None, initial=high))
    powers = {one.name: part for one, part in zip(fields(Sums), sums, strict=True)}
    return Moments(**powers, orbit_mean=mean, orbit_variance=variance, low=low, high=high)


def _empty(arrays: ScanArrays, sets: int) -> Array:
    return np.zeros((POWERS, len(arrays.models), sets, len(arrays.group)))


def response_bounds(arrays: ScanArrays, name: str) -> tuple[float, float] | None:
    """Return the values between which all responses lie, if there are such: those of shares."""
    return (0.0, 1.0) if arrays.attributes(name).get("units") == "share" else None


def least_response(arrays: ScanArrays, name: str) -> float | None:
    """Return what no response is below: 0 for shares, distances and counts."""
    about = arrays.attributes(name)
    distance = about.get("higher_is_better") in (0, False)
    return 0.0 if about.get("units") == "share" or distance or name == "count" else None


def known_terms(terms: Array, binary: bool = False) -> Array:
    """Return the terms that are not missing; as booleans if they are true or false.

    >>> known_terms(np.array([1.0, np.nan, 0.0]), binary=True).tolist()
    [True, False]
    """
    known = terms if terms.dtype.kind == "b" else terms[~np.isnan(terms)].astype(float)
    return known.astype(bool) if binary and np.isin(known, (0, 1)).all() else known


def element_columns(arrays: ScanArrays, name: str, model: int) -> Iterator[Array]:
    """Yield the responses `[N]` of a model at each element, NaN where there are none."""
    names = (name,) if arrays.dtype(name).kind == "f" else (name, FINISHED)
    for _, held in arrays.element_blocks(*names, model=model):
        yield from arrays.as_numbers(name, dict(zip(names, held, strict=True)).__getitem__)


def mean_at_worst(
    columns: Sequence[Array],
    interval: Callable[[Array, float], CautionedMean[Any]],
    level: float = 0.95,
    highest: bool = False,
) -> tuple[Array, list[CautionedMean[Any]]]:
    """Return the mean of the worst of K columns of terms, with an interval that holds for it.

    The worst is chosen by looking at all, so each interval is computed at a level corrected for
    their number, and the ends are the least of theirs.

    Args:
        columns: The terms of each element; a single one is not chosen, and not corrected.
        interval: Returns a mean and its ends of terms at a level.
        level: Nominal coverage.
        highest: Whether the worst mean is the highest.

    Returns:
        Mean, lower and upper end; and what `interval` returned of each column.
    """
    corrected = 1 - (1 - level) / len(columns)
    found = [interval(column, corrected) for column in columns]
    ends = np.array([tuple(one) for one in found])
    return (np.fmax if highest else np.fmin).reduce(ends), found  # of what is known


def summed_values(
    arrays: ScanArrays, name: str, sets: Array | None = None
) -> Callable[[int, int], Array] | None:
    """Return what reads the values `[n, K]` of a model and a set, for `Sums.interval`.

    None if values are true or false, whose sums tell all.
    """
    if name == AGREES or arrays.dtype(name).kind == "b":
        return None

    def values(model: int, place: int) -> Array:
        chosen = np.ones(arrays.samples, bool) if sets is None else sets == place
        blocks = [rows for rows in arrays.blocks(name) if chosen[rows].any()]
        parts = [arrays.responses(name, rows, model)[chosen[rows]] for rows in blocks]
        return np.concatenate(parts).astype(np.float64)

    return values


def add_sums(sums: Array, values: Array, sets: Array | None = None) -> None:
    """Add sums of the powers 0 to 4 of those values `[n, K]` that are numbers to `[5, S, K]`.

    >>> sums = np.zeros((POWERS, 1, 2))
    >>> add_sums(sums, np.array([[1.0, np.nan], [3.0, 4.0]]))
    >>> sums[:, 0].tolist()
    [[2.0, 1.0], [4.0, 4.0], [10.0, 16.0], [28.0, 64.0], [82.0, 256.0]]
    """
    for start in range(0, len(values), ROWS):
        some = values[start : start + ROWS].astype(np.float64)
        if sets is None:
            present, members = np.zeros(1, int), np.ones((1, len(some)))
        else:
            present, place = np.unique(sets[start : start + ROWS], return_inverse=True)
            members = (place.reshape(-1) == np.arange(len(present))[:, None]).astype(np.float64)
            members, present = members[present >= 0], present[present >= 0]
        seen = np.isfinite(some)
        if seen.all():
            sums[0, present] += members.sum(1)[:, None]
        else:
            sums[0, present] += members @ seen
            some[~seen] = 0.0
        power = some.copy()
        for exponent in range(1, POWERS):
            sums[exponent, present] += members @ power
            power *= some


def orbit_means_and_variances(values: Array, weights: Array) -> tuple[Array, Array]:
    """Return the mean and variance `[n]` of each row of `[n, K]` over the elements it is known at.

    >>> rows = np.array([[1.0, 3.0], [2.0, np.nan]])
    >>> [part.tolist() for part in orbit_means_and_variances(rows, np.ones(2))]
    [[2.0, 2.0], [1.0, 0.0]]
    """
    mean, variance = np.empty(len(values)), np.empty(len(values))
    for start in range(0, len(values), ROWS):
        rows = slice(start, start + ROWS)
        some = values[rows].astype(np.float64)
        seen = np.isfinite(some)
        mass = seen @ weights
        mass[mass == 0] = np.nan
        some[~seen] = 0.0
        mean[rows] = some @ weights / mass
        some -= mean[rows, None]
        some[~seen] = 0.0
        variance[rows] = np.square(some, out=some) @ weights / mass
    return mean, variance


def mean_of_curves(curves: Array, weights: Array) -> Array:
    """Return the mean `[...]` of curves `[..., K]` over the elements at which there is a value."""
    seen = np.isfinite(curves)
    mass = seen @ weights
    return np.asarray(np.where(seen, curves, 0.0) @ weights / np.where(mass > 0, mass, np.nan))


def known_mean(values: Array) -> float:
    """Return the mean of values that are not missing, NaN if all are.

    >>> known_mean(np.array([1.0, np.nan, 3.0])), known_mean(np.array([np.nan]))
    (2.0, nan)
    """
    known = values[~np.isnan(values)]
    return float(known.mean(dtype=np.float64)) if len(known) else np.nan


def with_ends(name: str, parts: Iterable[_Part]) -> dict[str, _Part]:
    """Return a mean and the ends of its interval by their names in a data set.

    >>> with_ends("accuracy", (0.5, 0.4, 0.6))
    {'accuracy': 0.5, 'accuracy_low': 0.4, 'accuracy_high': 0.6}
    """
    ends = ("", "_low", "_high")
    return {f"{name}{end}": part for end, part in zip(ends, parts, strict=True)}


def table_of_models(
    arrays: ScanArrays,
    found: Iterable[Mapping[str, Array]],
    coords: Mapping[str, Sequence[object] | None],
    **about: object,
) -> xr.Dataset:
    """Return what was found for each model as a data set.

    Args:
        arrays: the arrays of the scan.
        found: arrays by name, for each model.
        coords: the dimensions of these arrays in their order, and their coordinates, if any.
        about: attributes, beside the group.
    """
    tables = [*found]
    stacked = {name: np.stack([table[name] for table in tables]) for name in tables[0]}
    dims = ("model", *coords)
    known = {name: values for name, values in coords.items() if values is not None}
    return xr.Dataset(
        {name: (dims[: values.ndim], values) for name, values in stacked.items()},
        {"model": arrays.models, **known},
        {"group": arrays.group.spec, **about},
    )


def mean_over_models(values: Array) -> Array:
    """Average `[M, N]` over the models that have a value, to `[N]`; NaN if none has.

    >>> mean_over_models(np.array([[1.0, 2.0, np.nan], [3.0, np.nan, np.nan]])).tolist()
    [2.0, 2.0, nan]
    """
    seen = np.isfinite(values)
    count = np.where(seen.any(0), seen.sum(0), np.nan).astype(values.dtype)
    return np.asarray(np.where(seen, values, 0).sum(0) / count)
