"""How the options of measures are set, and which forms on cells and distances they then have."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor

from . import _cells, regression
from ._bound import BoundMeasure, OfCells, OfWhitened
from .binned import ece

Function = Callable[..., Tensor]
Binding = Callable[..., BoundMeasure]
"""A measure with its options set, and its forms on cells of confidence."""


def on_cells(
    value: Function,
    cell_distance: OfCells,
    cell_value: OfCells | None = None,
    distance: Function | None = None,
) -> Binding:
    """Bind a distance, or with a distance of its own the estimate of its square."""
    power = 1 if distance is None else 2

    def bind(name: str, **options: Any) -> BoundMeasure:
        of_samples, cell_root = partial(value, **options), partial(cell_distance, **options)
        of_cells = cell_root if cell_value is None else partial(cell_value, **options)
        root = of_samples if distance is None else partial(distance, **options)
        return BoundMeasure(name, of_samples, root, power, _cells.fine_index, of_cells, cell_root)

    return bind


def in_bins(name: str, bins: int = 15, norm: str = "l1", binning: str = "width") -> BoundMeasure:
    value = partial(ece, bins=bins, norm=norm, binning=binning)
    error = partial(_cells.binned_error, norm=norm)
    index = partial(_cells.bins_index, bins=bins, binning=binning)
    return BoundMeasure(name, value, value, 1, index, error, error)


def of_samples(value: Function, distance: Function | None = None, **known: Any) -> Binding:
    """Bind a mean, or with a distance the estimate of its square."""
    power = 1 if distance is None else 2

    def bind(name: str, **options: Any) -> BoundMeasure:
        root = None if distance is None else partial(distance, **options)
        return BoundMeasure(name, partial(value, **options), root, power, **known)

    return bind


def binned_square(value: Function) -> Binding:
    def distance(*given: Tensor, **options: Any) -> Tensor:
        return value(*given, **options).sqrt()

    return of_samples(value, distance, marginal=True)


def covered(function: Callable[..., regression.Coverage], known: bool = False) -> Binding:
    """Bind the error of a function that returns a `Coverage`, of Mahalanobis distances if known."""

    def bind(name: str, levels: int = 99) -> BoundMeasure:
        def error(*given: Tensor, weights: Tensor | None = None) -> Tensor:
            return function(*given, levels=levels, weights=weights).error

        def of_probabilities(probability: Tensor, _: Tensor, width: int) -> Tensor:
            return regression.coverage_of(probability, levels).error

        whitened = OfWhitened(
            regression.ellipsoid_probability,
            lambda shape, width, generator: generator.random(shape),
            of_probabilities,
            of_probabilities,
        )
        return BoundMeasure(name, error, error, whitened=whitened if known else None)

    return bind
