"""Products of groups."""

from __future__ import annotations

import dataclasses

import numpy as np

from ..errors import InputError
from .group import Group, Layout, distinct, few_enough, is_closed, make_group, tiles
from .parts import Array


def product(a: Group, b: Group) -> Group:
    """Combine two groups: every element of `b` followed by every element of `a`.

    Where both move the same thing their matrices are multiplied, and an element that is a product
    in several ways is listed once; otherwise they stand side by side.

    >>> from orbical.groups import dihedral, time_reversal
    >>> group = product(dihedral(4), time_reversal())
    >>> len(group), sorted(group.parts)
    (16, ['plane', 'time'])
    """
    twice = sorted({*a.coords} & {*b.coords})
    if twice:
        raise InputError(
            "product",
            "groups with different coordinates",
            f"{twice[0]!r} in both {a.spec} and {b.spec}",
        )
    few_enough(f"{a.spec}*{b.spec}", len(a) * len(b))
    first, second = np.divmod(np.arange(len(a) * len(b)), len(b))
    combined = a[first].compose(b[second])
    overlap = {*a.parts} & {*b.parts}
    # An element that is a product in several ways is listed once, with all its weight.
    kept, place = distinct(combined) if overlap else (np.arange(len(first)),) * 2
    weights = np.bincount(place, (a.weights[:, None] * b.weights[None]).ravel())
    combined, first, second = combined[kept], first[kept], second[kept]
    coords = {name: values[first] for name, values in a.coords.items()}
    coords |= {name: values[second] for name, values in b.coords.items()}
    cells_a, cells_b = (_as_tiles(group.layout) for group in (a, b))
    # Each cell of b holds a small drawing of a.
    cells = cells_a[None, :, None, :] * len(b) + cells_b[:, None, :, None]
    shape = (cells_a.shape[0] * cells_b.shape[0], cells_a.shape[1] * cells_b.shape[1])
    group = make_group(
        f"{a.spec}*{b.spec}",
        dict(combined.parts),
        coords=coords,
        layout=tiles(place[cells.reshape(shape)]),
        measure=a.measure if a.measure == b.measure else f"{a.measure}; {b.measure}",
        closed=False,
        weights=weights,
    )
    closed = a.closed and b.closed and (not overlap or is_closed(group))
    return dataclasses.replace(group, closed=closed)


def _as_tiles(layout: Layout) -> Array:
    return layout.index if layout.index.ndim == 2 else layout.index.reshape(1, -1)
