"""Search for a minimum near elements of a sample, for many samples at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.spatial.distance import cdist

from ..groups import Chart
from ..groups.group_parts import Array

Values = Callable[[Array, Array, Array], Array]
Gradients = Callable[[Array, Array, Array], tuple[Array, Array]]
GOLDEN = (5**0.5 - 1) / 2
_NEIGHBORS = 1.5  # elements within so many steps lie in the same valley


def valleys(values: Array, chart: Chart, count: int) -> Array:
    """Return for each row of `values[B, K]` the lowest elements `[B, count]`, apart from another.

    Once an element is taken, its neighbors are left out; where none is left, the lowest is
    repeated.
    """
    left = values.copy()
    lowest = left.argmin(1)
    found = []
    for _ in range(count):
        best = left.argmin(1)
        rest = np.isfinite(left[np.arange(len(left)), best])
        best = np.where(rest, best, lowest)
        found.append(best)
        left[_near(chart, best)] = np.inf
    return np.stack(found, 1)


def _near(chart: Chart, chosen: Array) -> Array:
    """Return which elements `[B, K]` are neighbors of the chosen ones `[B]`, or these themselves.

    Coordinates are compared by the elements they stand for, so that a circle closes.
    """
    every = np.arange(len(chart.start))
    maps = _flat(chart, chart.start, every)
    reach = np.zeros(len(chosen))
    for axis in range(len(chart.step)):
        aside = chart.add(
            chart.start[chosen], np.eye(len(chart.step))[[axis]] * chart.step * _NEIGHBORS
        )
        apart = _flat(chart, aside, chosen) - maps[chosen]
        reach = np.maximum(reach, np.linalg.norm(apart, axis=-1))
    return np.asarray(cdist(maps[chosen], maps) <= reach[:, None])


def nearest_elements(chart: Chart, coords: Array, base: Array) -> Array:
    """Return the sampled elements `[N]` nearest to those at coordinates `[N, d]`."""
    every = np.arange(len(chart.start))
    apart = cdist(_flat(chart, coords, base), _flat(chart, chart.start, every))
    return np.asarray(apart.argmin(1))


def _flat(chart: Chart, coords: Array, base: Array) -> Array:
    parts = chart.parts(coords, base)
    return np.concatenate(
        [np.asarray(parts[name], float).reshape(len(coords), -1) for name in sorted(parts)], 1
    )


def descend(
    gradients: Gradients, chart: Chart, sample: Array, base: Array, rounds: int
) -> tuple[Array, Array]:
    """Follow the gradient from sampled elements `[N]`; return coordinates `[N, d]` and values.

    Each step has a length of its own, at first half a step of the sample: longer after a success
    and shorter after a failure, which is undone. So no value ever rises.
    """
    coords = chart.start[base]
    value, slope = gradients(sample, coords, base)
    length = np.full(len(sample), 0.5)
    for _ in range(rounds):
        downhill = _inward(chart, coords, -slope)
        norm = np.linalg.norm(downhill, axis=1, keepdims=True)
        direction = downhill / np.where(norm > 0, norm, 1.0)
        tried = chart.moved(coords, length[:, None] * direction)
        reached, steepness = gradients(sample, tried, base)
        better = reached < value
        coords = np.where(better[:, None], tried, coords)
        slope = np.where(better[:, None], steepness, slope)
        value = np.where(better, reached, value)
        length = np.where(better, np.minimum(1.5 * length, 1.0), 0.4 * length)
    return coords, value


def _inward(chart: Chart, coords: Array, direction: Array) -> Array:
    """Remove what would leave the window."""
    blocked = ((coords <= chart.low) & (direction < 0)) | ((coords >= chart.high) & (direction > 0))
    return np.where(blocked, 0.0, direction)


def golden_section(
    values: Values, chart: Chart, sample: Array, base: Array, rounds: int
) -> tuple[Array, Array]:
    """Search along each coordinate within a step of sampled elements `[N]`, in turn.

    Return coordinates `[N, d]` and values `[N]`, the best seen. With several coordinates there are
    two turns, the second within half a step.
    """
    coords = chart.start[base]
    best = values(sample, coords, base)
    dimension = len(chart.step)
    for reach in (1.0,) if dimension == 1 else (1.0, 0.5):
        for axis in range(dimension):
            unit, home = np.eye(dimension)[axis], coords

            def seen(places: Array, unit: Array = unit, home: Array = home) -> tuple[Array, Array]:
                tried = chart.moved(home, places[:, None] * unit)
                return tried, values(sample, tried, base)

            low, high = np.full(len(sample), -reach), np.full(len(sample), reach)
            left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
            (at_left, of_left), (at_right, of_right) = seen(left), seen(right)
            for _ in range(rounds):
                for tried, reached in ((at_left, of_left), (at_right, of_right)):
                    coords = np.where((reached < best)[:, None], tried, coords)
                    best = np.minimum(best, reached)
                lower = of_left < of_right
                low, high = np.where(lower, low, left), np.where(lower, right, high)
                fresh = np.where(lower, high - GOLDEN * (high - low), low + GOLDEN * (high - low))
                tried, reached = seen(fresh)
                # The inner place that is kept becomes the other one.
                left, right = np.where(lower, fresh, right), np.where(lower, left, fresh)
                at_left, at_right = (
                    np.where(lower[:, None], tried, at_right),
                    np.where(lower[:, None], at_left, tried),
                )
                of_left, of_right = (
                    np.where(lower, reached, of_right),
                    np.where(lower, of_left, reached),
                )
            for tried, reached in ((at_left, of_left), (at_right, of_right)):
                coords = np.where((reached < best)[:, None], tried, coords)
                best = np.minimum(best, reached)
    return coords, best
