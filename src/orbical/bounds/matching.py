"""Which samples share an orbit: matching points across a data set, in near-linear time.

Two samples share an orbit when an image of one lies within a tolerance of the other, directly or
through other samples. For a closed group of isometries one canonical image of each point is enough,
so the number of elements adds only the cost of computing the images.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ._linking import connected, in_order, link_within

if TYPE_CHECKING:
    from ..groups import Group

__all__ = [
    "Orbits",
    "elements_between",
    "match_invariants",
    "match_orbits",
    "orbits_of_permutations",
]

Array = np.ndarray
_BLOCK_VALUES = 1 << 19


@dataclass(frozen=True, eq=False)
class Orbits:
    """The orbit of each point.

    Attributes:
        orbit: `[N]` ids from 0, in the order in which orbits first appear.
        stabilizer: `[N]`, how many group elements leave the point where it is.
        tolerance: the distance within which points counted as equal.
    """

    orbit: Array
    stabilizer: Array
    tolerance: float

    @property
    def count(self) -> int:
        """The number of orbits."""
        return int(self.orbit.max()) + 1

    @property
    def representative(self) -> Array:
        """`[O]`, the index of the first point of each orbit."""
        return np.unique(self.orbit, return_index=True)[1]


def match_orbits(
    x: Any, group: Group | str, *, tolerance: float | None = None, action: Any | None = None
) -> Orbits:
    """Find which points lie on one orbit of a group.

    Points i and j are linked when `||g x_i - h x_j|| <= tolerance` for some elements g, h; orbits
    are what the links connect. This is the coarsest partition that an invariant model can resolve,
    for a sampled window of translations too.

    Args:
        x: `[N, d]` points of the plane or of space, `[N, n, d]` sets of points, or whatever
            `action` moves.
        group: the symmetry, or its text such as `"cyclic:4"`.
        tolerance: a distance; None means equal up to rounding, 1e-9 of the largest coordinate.
        action: how the group moves `x`; `orbical.actions.Points()` by default.

    Returns:
        The orbit and the stabilizer of each point.

    Example:
        >>> match_orbits([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [0.0, 0.0]], "cyclic:4").orbit
        array([0, 0, 1, 2])
    """
    mover = Mover(x, group, action)
    flat = mover.flat
    if tolerance is None:
        tolerance = 1e-9 * max(1.0, float(np.abs(flat).max()))
    tolerance = _checked_tolerance(tolerance, flat)
    small = mover.closed_isometry and len(mover.group) > 1
    nodes, owners, fixed = [], [], []
    direction = np.random.default_rng(0).normal(size=flat.shape[1])
    direction /= np.linalg.norm(direction)
    for rows, images in mover.blocks():
        fixed.append((np.square(images - flat[rows]).sum(-1) <= tolerance**2).sum(0))
        if small:
            # If ||x_j - g x_i|| <= t, some image of x_j is within t of the highest image of x_i,
            # and within 2 t of the height of x_j's own highest: only these few need to meet.
            height = images @ direction
            keep = height >= height.max(0) - 2 * tolerance
        else:
            keep = np.ones(images.shape[:2], dtype=bool)
        nodes.append(images[keep])
        owners.append(np.broadcast_to(np.arange(len(flat))[rows], keep.shape)[keep])
    point = np.concatenate(owners)
    part = link_within(np.concatenate(nodes), tolerance)
    orbit = _joined(part, point, len(flat))
    return Orbits(orbit, np.concatenate(fixed), tolerance)


def match_invariants(invariants: Any, *, tolerance: float) -> Array:
    """Find the orbits of a continuous group from its invariants, instead of its elements.

    Points share an orbit if a complete set of invariants agrees: the distance from the axis for all
    rotations about it, the sorted distances between points for generic rigid motions. Invariants
    within the tolerance are linked, directly or through others.

    Args:
        invariants: `[N]`, or `[N, D]`.
        tolerance: a distance between invariants.

    Returns:
        The orbit `[N]` of each point.

    Example:
        >>> x = np.array([[3.0, 4.0], [5.0, 0.0], [1.0, 0.0]])
        >>> match_invariants(np.linalg.norm(x, axis=1), tolerance=1e-9)
        array([0, 0, 1])
    """
    values = np.asarray(invariants, dtype=np.float64)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or values.size == 0 or not np.isfinite(values).all():
        raise InputError(
            f"invariants: expected finite values of shape [sample] or [sample, D], got shape "
            f"{list(np.asarray(invariants).shape)}"
        )
    return link_within(values, _checked_tolerance(tolerance, values))


def _checked_tolerance(tolerance: float, values: Array) -> float:
    largest = float(np.abs(values).max())
    if not (np.isfinite(tolerance) and tolerance > 1e-13 * largest):
        raise InputError(
            f"tolerance: expected a distance above the rounding of coordinates of size "
            f"{largest:g}, got {tolerance!r}"
        )
    return float(tolerance)


def orbits_of_permutations(permutations: Any) -> Array:
    """Find the orbits of a finite group acting on a finite set.

    Args:
        permutations: `[K, N]`, the index of g x_i for each element g and point i.

    Returns:
        The orbit `[N]` of each point.

    Example:
        >>> orbits_of_permutations([[0, 1, 2, 3], [2, 1, 0, 3]])
        array([0, 1, 0, 2])
    """
    moves = np.asarray(permutations)
    if moves.ndim != 2 or moves.size == 0 or moves.dtype.kind not in "iu":
        raise InputError(
            "permutations: expected whole numbers of shape [element, point], got shape "
            f"{list(moves.shape)} and dtype {moves.dtype}"
        )
    size = moves.shape[1]
    if not (np.sort(moves, axis=1) == np.arange(size)).all():
        raise InputError("permutations: expected every point exactly once in each row, got others")
    return connected(np.tile(np.arange(size), len(moves)), moves.ravel(), size)


def elements_between(
    x: Any, group: Group | str, orbits: Orbits, *, action: Any | None = None
) -> tuple[Array, Array]:
    """List all pairs (point, element) with point = element * representative of its orbit.

    Points with a stabilizer appear once for each element that reaches them. A point that is linked
    to its representative only through others is paired with the element that comes nearest.

    Args:
        x: as in `match_orbits`.
        group: as in `match_orbits`.
        orbits: from `match_orbits`.
        action: as in `match_orbits`.

    Returns:
        Point `[R]` and element `[R]`.

    Example:
        >>> from orbical.groups import cyclic
        >>> x = [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
        >>> elements_between(x, cyclic(4), match_orbits(x, cyclic(4)))
        (array([0, 1, 2, 2, 2, 2]), array([0, 1, 0, 1, 2, 3]))
    """
    points = Mover(x, group, action)
    starts = Mover(np.asarray(x)[orbits.representative[orbits.orbit]], group, action)
    found_points, found_elements = [], []
    for rows, images in starts.blocks():
        distance = np.square(images - points.flat[rows]).sum(-1)
        hit = distance <= np.maximum(orbits.tolerance**2, distance.min(0))
        where, element = np.nonzero(hit.T)
        found_points.append(where + rows.start)
        found_elements.append(element)
    return np.concatenate(found_points), np.concatenate(found_elements)


class Mover:
    """A data set under a group: its images in blocks, each flattened to `[K, n, D]`."""

    def __init__(self, x: Any, group: Group | str, action: Any | None) -> None:
        import torch

        from ..actions import Points
        from ..groups import as_group

        array = np.ascontiguousarray(np.asarray(x, dtype=np.float64))
        if array.ndim < 2 or array.size == 0:
            raise InputError(
                f"x: expected points of shape [sample, ...], got shape {list(array.shape)}"
            )
        if not np.isfinite(array).all():
            raise InputError("x: expected finite numbers, got NaN or infinite values")
        if action is None and array.ndim > 3:
            raise InputError(
                "x: expected points [sample, coordinate] or [sample, point, coordinate], got shape "
                f"{list(array.shape)}; pass action= for other data, such as actions.Images()"
            )
        self.action = Points() if action is None else action
        # Points act on sets of points; a plain point is a set of one.
        shaped = array[:, None] if action is None and array.ndim == 2 else array
        self._x = torch.from_numpy(shaped)
        self.group = as_group(group)
        self.action.check(self.group, self._x)
        self.flat = array.reshape(len(array), -1)
        self.shape = array.shape[1:]

    def images(self, rows: slice) -> Array:
        """Return `[K, n, D]`, the images of some rows under every element."""
        moved = self.action.apply(self.group, self._x[rows]).numpy()
        return np.asarray(moved.reshape(len(self.group), -1, self.flat.shape[1]))

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Iterate over all rows in blocks that fit in the cache."""
        count, size = self.flat.shape
        step = max(1, _BLOCK_VALUES // (len(self.group) * size))
        for start in range(0, count, step):
            rows = slice(start, min(start + step, count))
            yield rows, self.images(rows)

    @property
    def closed_isometry(self) -> bool:
        """Whether the elements form a group that keeps distances, tested on random points."""
        if not self.group.closed:
            return False
        import torch

        noise = np.random.default_rng(0).normal(size=(16, *self._x.shape[1:]))
        moved = self.action.apply(self.group, torch.from_numpy(noise)).numpy()
        here = np.linalg.norm(np.diff(noise, axis=0).reshape(15, -1), axis=-1)
        there = np.diff(moved, axis=1).reshape(len(self.group), 15, -1)
        return bool(np.allclose(np.linalg.norm(there, axis=-1), here, rtol=1e-9))


def _joined(part: Array, owner: Array, size: int) -> Array:
    """Return the orbits of `size` points whose images lie in the given parts."""
    ids = np.empty(size, dtype=np.int64)
    ids[owner] = part
    several = ids[owner] != part
    if several.any():  # a point with images in several parts joins them
        join = connected(ids[owner[several]], part[several], int(part.max()) + 1)
        ids = join[ids]
    return in_order(ids)
