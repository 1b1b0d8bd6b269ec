"""Groups from arrays: matrices of plane or space, or parts of your own."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._numpy import as_numpy
from .._warnings import warn
from ..errors import InputError
from .group import Elements, Group, Layout
from .group_parts import DIMENSIONS, Array, clean_group_matrices, group_part, homogeneous
from .making import distinct_elements, is_closed, make_group


def from_parts(
    name: str,
    parts: Mapping[str, object],
    *,
    weights: Any = None,
    coords: Mapping[str, object] | None = None,
    layout: Layout | None = None,
    measure: str = "",
) -> Group:
    """Make a group from an array for each part that its elements move.

    An element that is given several times is listed once, with the sum of its weights, as in a
    product of groups.

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
        raise InputError("name", "text", repr(name))
    if not parts:
        raise InputError("parts", "an array for at least one part", "none")
    arrays = {part: _own_elements(part, values) for part, values in parts.items()}
    sizes = {part: len(values) for part, values in arrays.items()}
    if len({*sizes.values()}) > 1:
        raise InputError("parts", "as many elements in each part", sizes)
    count = next(iter(sizes.values()))
    quadrature = None if weights is None else as_numpy("weights", weights, float)
    if quadrature is not None and (
        quadrature.shape != (count,) or not (quadrature >= 0).all() or not quadrature.any()
    ):
        raise InputError(
            "weights", f"{count} numbers >= 0, not all 0", np.array2string(quadrature, threshold=8)
        )
    given_names = coords or {"element": np.arange(count)}
    names = {key: _own_coordinate(key, entry, count) for key, entry in given_names.items()}
    usual = "uniform on the given elements" if weights is None else "given weights"
    kept, place = distinct_elements(Elements(arrays, count))
    facts: dict[str, Any] = {
        "coords": {key: entry[kept] for key, entry in names.items()},
        "measure": measure or usual,
        "weights": np.bincount(place, quadrature),
    }
    if layout is not None:
        if {*layout.index.ravel().tolist()} != {*range(count)}:
            raise InputError("layout", f"every element 0 .. {count - 1} in its index")
        facts["layout"] = dataclasses.replace(layout, index=place[layout.index])
    distinct = {part: values[kept] for part, values in arrays.items()}
    group = make_group(name, distinct, closed=False, **facts)
    return dataclasses.replace(group, closed=is_closed(group))


def _own_elements(part: str, given: Any) -> Array:
    """Return the array of a part, all of whose elements have an inverse by its rule."""
    rule, values = group_part(part), as_numpy(part, given)
    if values.dtype.kind not in "fiu" or values.ndim == 0 or not len(values):
        raise InputError(
            part, "an array of numbers [K, ...]", f"{values.dtype} of shape {values.shape}"
        )
    if not np.isfinite(values).all():
        raise InputError(part, "finite numbers", "NaN or infinity")
    try:
        back = rule.inverse(values)
        found, still = rule.compose(values, back), rule.neutral(values)
    except (ArithmeticError, ValueError, IndexError, np.linalg.LinAlgError) as error:
        raise InputError(
            part, "elements that can be inverted", f"{error} for an array of shape {values.shape}"
        ) from None
    if np.shape(found) != values.shape or not np.allclose(found, np.repeat(still, len(values), 0)):
        raise InputError(
            part,
            "elements whose product with their inverse is the identity",
            remedy="see how the part composes and inverts",
        )
    return values


def from_matrices(
    *,
    plane: object = None,
    space: object = None,
    weights: Any = None,
    coords: Mapping[str, object] | None = None,
) -> Group:
    """Make a group from matrices: linear `[K, d, d]` or homogeneous `[K, d+1, d+1]`.

    Say whether they move the `plane` (d = 2) or `space` (d = 3). The identity must be among them.
    Homogeneous matrices of the plane may be homographies. `weights [K]` are equal unless given;
    `coords` name the elements, an array `[K]` for each coordinate, and are their indices unless
    given. An element that is given several times is listed once, with the sum of its weights.

    >>> len(from_matrices(plane=[[[1, 0], [0, 1]], [[-1, 0], [0, -1]]]))
    2
    """
    if (plane is None) == (space is None):
        raise InputError("from_matrices", "exactly one of plane= and space=")
    part = "plane" if space is None else "space"
    dimension = DIMENSIONS[part]
    linear, whole = [f"[K, {side}, {side}]" for side in (dimension, dimension + 1)]
    matrices = as_numpy(part, plane if space is None else space, float)
    if matrices.ndim != 3 or matrices.shape[1:] not in {(dimension,) * 2, (dimension + 1,) * 2}:
        raise InputError(part, f"an array of shape {linear} or {whole}", matrices)
    if matrices.shape[1] > dimension:
        matrices = _checked_scale_of_own_group(part, matrices)
    if not np.isfinite(matrices).all() or (np.abs(np.linalg.det(matrices)) < 1e-12).any():
        raise InputError(part, "finite, invertible matrices")
    if matrices.shape[1] == dimension:
        matrices = homogeneous(matrices)
    digest = hashlib.sha256(matrices.tobytes()).hexdigest()[:8]
    return from_parts(
        f"from_matrices:{part}:{digest}",
        {part: clean_group_matrices(matrices)},
        weights=weights,
        coords=coords,
    )


def _checked_scale_of_own_group(part: str, matrices: Array) -> Array:
    """Make the last entry of homogeneous matrices 1, and refuse homographies of space."""
    last = matrices[:, -1:, -1:]
    if (last <= 0).any():
        raise InputError(
            part,
            "maps that keep the origin in front of the horizon, with a last entry > 0",
            f"{float(last.min()):g}",
        )
    if part == "space" and matrices[:, -1, :-1].any():
        raise InputError(
            "space",
            "affine maps, with 0 ... 0 1 in the last row",
            "a homography, by which no action moves data",
        )
    return np.asarray(matrices / last)


def _own_coordinate(key: str, given: Any, count: int) -> Array:
    try:
        entry = np.asarray(given)
    except ValueError:
        entry = np.array(None)
    if entry.dtype.kind not in "fiubU":
        raise InputError("coords", f"numbers or strings for {key!r}", repr(given))
    if entry.shape != (count,):
        raise InputError("coords", f"{key!r} of shape ({count},)", entry)
    return entry


def with_classes(
    group: Group, moves: Mapping[str, Mapping[Any, Any]], classes: Sequence[str] | None = None
) -> Group:
    """Add to a group which classes its elements exchange, as the part `classes`.

    Args:
        group: the group.
        moves: for elements by their names the classes that they exchange: `{"flip": {"left":
            "right"}}` takes left to right and, since nothing else becomes left, right to left.
            Elements without an entry leave classes as they are. One with several entries, such as
            `angle 180, flip mirrored`, makes all of these exchanges.
        classes: the names of the classes; without them `moves` holds their indices.

    Returns:
        The group. It is closed only if the permutation of every product is the product of the
        permutations, so that classes have a representation; a warning names two elements for
        which it is not.

    Raises:
        InputError: if an element or a class has no such name, two classes become one, or the
            order of two exchanges matters.

    Example:
        >>> from orbical.groups import cyclic
        >>> with_classes(cyclic(2), {"angle 180": {6: 9}}).parts["classes"][1].tolist()
        [0, 1, 2, 3, 4, 5, 9, 7, 8, 6]
    """
    pairs = {
        element: {
            _class_of_own_group(old, classes): _class_of_own_group(new, classes)
            for old, new in exchanged.items()
        }
        for element, exchanged in moves.items()
    }
    ends = [end for exchanged in pairs.values() for pair in exchanged.items() for end in pair]
    count = max(ends, default=-1) + 1 if classes is None else len(classes)
    orders = np.tile(np.arange(count), (len(group), 1))
    for element, exchanged in pairs.items():
        marked = group.named(element)
        if not marked.any():
            raise InputError(
                "representation",
                f"elements of {group.spec}, such as {group.name(len(group) - 1)!r}",
                repr(element),
            )
        order = _own_order(exchanged, count)
        if not np.array_equal(orders[marked][:, order], order[orders[marked]]):
            raise InputError(
                "representation",
                problem=f"the exchanges of {element!r} and of others depend on their order",
                remedy="name each element by all its coordinates, such as "
                f"{group.name(len(group) - 1)!r}",
            )
        orders[marked] = orders[marked][:, order]
    moving = dataclasses.replace(group, parts={**group.parts, "classes": orders})
    closed = group.closed and is_closed(moving)
    if group.closed and not closed:
        warn(_contradiction_of_own_group(group, orders))
    return dataclasses.replace(moving, closed=closed)


def _contradiction_of_own_group(group: Group, orders: Array) -> str:
    """Name two elements whose product exchanges other classes than they do one after another."""
    compose = group_part("classes").compose
    for first in range(len(group)):
        products = group.index_of(group.compose(group[np.full(len(group), first)]))
        expected = compose(orders, np.tile(orders[first], (len(group), 1)))
        wrong = np.flatnonzero((orders[products] != expected).any(1))
        if len(wrong):
            then, both = group.name(int(wrong[0])), group.name(int(products[wrong[0]]))
            return (
                f"representation: {group.name(first)!r} and then {then!r} is {both!r}, but not in "
                "what they do to the classes; elements without an entry leave these as they are: "
                f"name all that exchange some, such as {both!r}"
            )
    return "representation: exchanges of classes do not multiply as the elements do"


def _class_of_own_group(given: Any, classes: Sequence[str] | None) -> int:
    if classes is not None and str(given) in classes:
        return classes.index(str(given))
    if str(given).isdigit() and (classes is None or int(given) < len(classes)):
        return int(given)
    known = "a class index" if classes is None else f"one of {', '.join(classes)}"
    raise InputError(
        "representation", known, repr(given), remedy="pass classes= for names" * (classes is None)
    )


def _own_order(exchanged: Mapping[int, int], count: int) -> Array:
    """Return the index array of an exchange; chains of classes are closed to cycles."""
    if len({*exchanged.values()}) < len(exchanged):
        raise InputError("representation", "every class once as a result", dict(exchanged))
    sources = {new: old for old, new in exchanged.items()}
    for first in [old for old in exchanged if old not in sources]:
        last = first
        while last in exchanged:
            last = exchanged[last]
        sources[first] = last
    return np.array([sources.get(place, place) for place in range(count)], int)
