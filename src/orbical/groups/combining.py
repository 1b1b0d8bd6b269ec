"""Products of groups, and groups from matrices."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from .._arrays import as_numpy
from ..errors import InputError
from .group import (
    MATRIX_PARTS,
    Array,
    Group,
    Layout,
    clean,
    distinct,
    few_enough,
    homogeneous,
    is_closed,
    make_group,
    tiles,
)


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
            f"product: expected groups with different coordinates, got {twice[0]!r} in both "
            f"{a.spec} and {b.spec}"
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


def from_matrices(
    *,
    plane: Any = None,
    space: Any = None,
    weights: Any = None,
    coords: Mapping[str, Any] | None = None,
) -> Group:
    """Make a group from matrices: linear `[K, d, d]` or homogeneous `[K, d+1, d+1]`.

    Say whether they move the `plane` (d = 2) or `space` (d = 3). The identity must be among them.

    >>> len(from_matrices(plane=[[[1, 0], [0, 1]], [[-1, 0], [0, -1]]]))
    2
    """
    if (plane is None) == (space is None):
        raise InputError("from_matrices: expected exactly one of plane= and space=")
    part = "plane" if space is None else "space"
    dimension = MATRIX_PARTS[part]
    matrices = as_numpy(part, plane if space is None else space, float)
    if matrices.ndim != 3 or matrices.shape[1:] not in {(dimension,) * 2, (dimension + 1,) * 2}:
        raise InputError(
            f"{part}: expected an array of shape [K, {dimension}, {dimension}] or "
            f"[K, {dimension + 1}, {dimension + 1}], got {matrices.shape}"
        )
    if matrices.shape[1] > dimension and (matrices[:, -1] != np.eye(dimension + 1)[-1]).any():
        raise InputError(
            f"{part}: expected affine maps, with 0 ... 0 1 in the last row, got a homography, by "
            "which no action moves data"
        )
    if not np.isfinite(matrices).all() or (np.abs(np.linalg.det(matrices)) < 1e-12).any():
        raise InputError(f"{part}: expected finite, invertible matrices")
    if matrices.shape[1] == dimension:
        matrices = homogeneous(matrices)
    count = len(matrices)
    quadrature = None if weights is None else as_numpy("weights", weights, float)
    if quadrature is not None and (
        quadrature.shape != (count,) or not (quadrature >= 0).all() or not quadrature.any()
    ):
        raise InputError(
            f"weights: expected {count} numbers >= 0, not all 0, got "
            f"{np.array2string(quadrature, threshold=8)}"
        )
    given_names = coords or {"element": np.arange(count)}
    names = {key: _words("coords", key, entry) for key, entry in given_names.items()}
    for key, entry in names.items():
        if entry.shape != (count,):
            raise InputError(f"coords: expected {key!r} of shape ({count},), got {entry.shape}")
    digest = hashlib.sha256(matrices.tobytes()).hexdigest()[:8]
    group = make_group(
        f"from_matrices:{part}:{digest}",
        {part: clean(matrices)},
        coords=names,
        layout=tiles(np.arange(count)[None]),
        measure="given weights" if weights is not None else "uniform on the given elements",
        closed=False,
        weights=quadrature,
    )
    return dataclasses.replace(group, closed=is_closed(group))


def _words(argument: str, key: str, given: Any) -> Array:
    try:
        entry = np.asarray(given)
    except ValueError:
        entry = np.array(None)
    if entry.dtype.kind not in "fiubU":
        raise InputError(f"{argument}: expected numbers or strings for {key!r}, got {given!r}")
    return entry
