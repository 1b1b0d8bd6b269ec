"""Groups from arrays: matrices of plane or space, or parts of your own."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from .._arrays import as_numpy
from ..errors import InputError, check_name
from .group import LAYOUTS, Group, Layout, homogeneous, is_closed, make_group, tiles
from .parts import DIMENSIONS, Array, clean, part_of


def from_parts(
    name: str,
    parts: Mapping[str, Any],
    *,
    weights: Any = None,
    coords: Mapping[str, Any] | None = None,
    layout: Layout | None = None,
    measure: str = "",
) -> Group:
    """Make a group from an array for each part that its elements move.

    Args:
        name: the text of the group, such as `boosts:0.9:17`.
        parts: an array `[K, ...]` for each part, built in or added by `register_part`; the identity
            must be among the elements.
        weights: how much each element counts, `[K]`; by default all the same.
        coords: names or numbers `[K]` for the elements; by default their index.
        layout: how an orbit is drawn; by default as a row of tiles.
        measure: what the weights are a quadrature of.

    Returns:
        The group. Whether it is closed is computed.

    Raises:
        InputError: if an array cannot be used.

    Example:
        >>> signs = {"time": [1.0, -1.0]}
        >>> from_parts("reversal", signs, coords=signs).closed
        True
    """
    if not (isinstance(name, str) and name.strip()):
        raise InputError(f"name: expected text, got {name!r}")
    if not parts:
        raise InputError("parts: expected an array for at least one part, got none")
    arrays = {part: _elements(part, values) for part, values in parts.items()}
    sizes = {part: len(values) for part, values in arrays.items()}
    if len({*sizes.values()}) > 1:
        raise InputError(f"parts: expected as many elements in each part, got {sizes}")
    count = next(iter(sizes.values()))
    for part, values in arrays.items():
        _check_rule(part, values)
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
    group = make_group(
        name,
        arrays,
        coords=names,
        layout=tiles(np.arange(count)[None]) if layout is None else _checked(layout, count),
        measure=measure
        or ("uniform on the given elements" if weights is None else "given weights"),
        closed=False,
        weights=quadrature,
    )
    return dataclasses.replace(group, closed=is_closed(group))


def _elements(part: str, given: Any) -> Array:
    part_of(part)
    values = as_numpy(part, given)
    if values.dtype.kind not in "fiu" or values.ndim == 0 or not len(values):
        raise InputError(
            f"{part}: expected an array of numbers [K, ...], got {values.dtype} of shape "
            f"{values.shape}"
        )
    if not np.isfinite(values).all():
        raise InputError(f"{part}: expected finite numbers, got NaN or infinity")
    return values


def _check_rule(part: str, values: Array) -> None:
    """Refuse elements that have no inverse by the rule of their part."""
    rule, count = part_of(part), len(values)
    try:
        back = rule.inverse(values)
        found, still = rule.compose(values, back), rule.neutral(values)
    except (ArithmeticError, ValueError, IndexError, np.linalg.LinAlgError) as error:
        raise InputError(
            f"{part}: expected elements that can be inverted, got {error} for an array of shape "
            f"{values.shape}"
        ) from None
    if np.shape(found) != values.shape or not np.allclose(found, np.repeat(still, count, 0)):
        raise InputError(
            f"{part}: expected elements whose product with their inverse is the identity; see how "
            "the part composes and inverts"
        )


def _checked(layout: Layout, count: int) -> Layout:
    check_name("layout", layout.kind, LAYOUTS)
    index = np.asarray(layout.index)
    if index.dtype.kind not in "iu" or {*index.ravel().tolist()} != {*range(count)}:
        raise InputError(f"layout: expected every element 0 .. {count - 1} in its index")
    axes = {name: np.asarray(values) for name, values in layout.axes.items()}
    for size, (name, values) in zip(index.shape, axes.items(), strict=False):
        if values.shape != (size,):
            raise InputError(f"layout: expected {size} values along {name!r}, got {values.shape}")
    return Layout(layout.kind, index, axes)


def from_matrices(
    *,
    plane: Any = None,
    space: Any = None,
    weights: Any = None,
    coords: Mapping[str, Any] | None = None,
) -> Group:
    """Make a group from matrices: linear `[K, d, d]` or homogeneous `[K, d+1, d+1]`.

    Say whether they move the `plane` (d = 2) or `space` (d = 3). The identity must be among them.
    Homogeneous matrices of the plane may be homographies. `weights [K]` are equal unless given;
    `coords` name the elements, an array `[K]` for each coordinate, and are their indices unless
    given.

    >>> len(from_matrices(plane=[[[1, 0], [0, 1]], [[-1, 0], [0, -1]]]))
    2
    """
    if (plane is None) == (space is None):
        raise InputError("from_matrices: expected exactly one of plane= and space=")
    part = "plane" if space is None else "space"
    dimension = DIMENSIONS[part]
    matrices = as_numpy(part, plane if space is None else space, float)
    if matrices.ndim != 3 or matrices.shape[1:] not in {(dimension,) * 2, (dimension + 1,) * 2}:
        raise InputError(
            f"{part}: expected an array of shape [K, {dimension}, {dimension}] or "
            f"[K, {dimension + 1}, {dimension + 1}], got {matrices.shape}"
        )
    if matrices.shape[1] > dimension:
        matrices = _checked_scale(part, matrices)
    if not np.isfinite(matrices).all() or (np.abs(np.linalg.det(matrices)) < 1e-12).any():
        raise InputError(f"{part}: expected finite, invertible matrices")
    if matrices.shape[1] == dimension:
        matrices = homogeneous(matrices)
    digest = hashlib.sha256(matrices.tobytes()).hexdigest()[:8]
    return from_parts(
        f"from_matrices:{part}:{digest}", {part: clean(matrices)}, weights=weights, coords=coords
    )


def _checked_scale(part: str, matrices: Array) -> Array:
    """Make the last entry of homogeneous matrices 1, and refuse homographies of space."""
    last = matrices[:, -1:, -1:]
    if (last <= 0).any():
        raise InputError(
            f"{part}: expected maps that keep the origin in front of the horizon, with a last "
            f"entry > 0, got {float(last.min()):g}"
        )
    if part == "space" and matrices[:, -1, :-1].any():
        raise InputError(
            "space: expected affine maps, with 0 ... 0 1 in the last row, got a homography, by "
            "which no action moves data"
        )
    return np.asarray(matrices / last)


def _words(argument: str, key: str, given: Any) -> Array:
    try:
        entry = np.asarray(given)
    except ValueError:
        entry = np.array(None)
    if entry.dtype.kind not in "fiubU":
        raise InputError(f"{argument}: expected numbers or strings for {key!r}, got {given!r}")
    return entry
