"""Which samples share an orbit: matching points across a data set, in near-linear time.

Two samples share an orbit when an image of one lies within a tolerance of the other, directly or
through other samples. For a closed group of isometries one canonical image of each point is enough,
so the number of elements adds only the cost of computing the images.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._arrays import ArrayLike, as_numpy
from .._trees import leaves, tree_map
from ..actions import ActionTree, Classes, Points, as_action, check_group
from ..errors import InputError
from ..groups import Group, as_group, with_classes
from ._near_points import link_ids_in_order, link_within, linked_parts

__all__ = ["Orbits", "match_elements", "match_invariants", "match_orbits", "orbits_of_permutations"]

Array = np.ndarray
_BLOCK_VALUES = 1 << 19
_ROUNDING = 1.001e-6  # of the largest point: a few steps in single precision

_COPIES_OF_IMAGES = 5
"""The memory of linking images, in copies of all of them in double precision."""


@dataclass(frozen=True, eq=False)
class Orbits:
    """The orbit of each point.

    Attributes:
        orbit: `[N]` ids from 0, in the order in which orbits first appear.
        stabilizer: `[N]`, how many group elements leave the point where it is; None if unknown.
        tolerance: the distance within which points counted as equal.
        exact: whether that distance is no more than rounding. Otherwise points are joined through
            others (single linkage), and what is computed from them is an estimate, not a bound.
        closed: whether the elements form a group. The orbits of a sample of a larger group, such as
            `rotations3d(32)`, may be only parts of its orbits: what no invariant model exceeds
            still holds, but no invariant model need attain it.
        weight: `[D]`, by which coordinates are multiplied before distances are taken.
    """

    orbit: Array
    stabilizer: Array | None
    tolerance: float
    exact: bool = True
    closed: bool = True
    weight: Array | None = None

    @property
    def count(self) -> int:
        """The number of orbits."""
        return int(self.orbit.max()) + 1

    @property
    def representative(self) -> Array:
        """`[O]`, the index of the first point of each orbit."""
        return np.unique(self.orbit, return_index=True)[1]


def ids_and_facts(orbit: Any) -> tuple[Any, dict[str, Any]]:
    """Return ids, and what a table must know of them: a tolerance above rounding, an open group."""
    if not isinstance(orbit, Orbits):
        return orbit, {}
    facts = {"tolerance": None if orbit.exact else orbit.tolerance, "closed": orbit.closed}
    return orbit.orbit, facts


def match_orbits(
    x: Any, group: Group | str, *, tolerance: float | None = None, action: ActionTree | None = None
) -> Orbits:
    """Find which points lie on one orbit of a group.

    Points i and j are linked when `||g x_i - h x_j|| <= tolerance` for some elements g, h; orbits
    are what the links connect. This is the coarsest partition that an invariant model can resolve,
    for a sampled window of translations too. It is so for equal points only: a tolerance above
    rounding also joins points that a model can tell apart, and the orbits are marked as not exact.

    Args:
        x: `[N, d]` points of the plane or of space, `[N, n, d]` sets of points, or whatever
            `action` moves.
        group: the symmetry, or its text such as `"cyclic:4"`.
        tolerance: a distance; None means equal up to rounding: 1e-9 of the largest coordinate, and
            of the largest in its own column for one that is everywhere a thousand times smaller.
        action: how the group moves `x`; `orbical.actions.Points()` by default.

    Returns:
        The orbit and the stabilizer of each point.

    See Also:
        match_invariants: For continuous groups with known invariants.
        OrbitTable.from_data: The table of the orbits.

    Example:
        >>> match_orbits([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [0.0, 0.0]], "cyclic:4").orbit
        array([0, 0, 1, 2])
    """
    mover = Mover(x, group, action)
    scale = float(np.abs(mover.points).max())
    if tolerance is None:
        mover.weigh_columns(scale)
        tolerance = 1e-9 * scale or 1e-300
    flat = mover.points
    tolerance = _checked_matching_tolerance(tolerance, flat)
    small = mover.closed_isometry and len(mover.group) > 1
    if not small:
        _check_memory_of_matching(mover)
    nodes, owners, fixed = [], [], []
    direction = _noise(flat.shape[1])
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
    exact = tolerance <= _is_rounding(flat)
    stabilizer = np.concatenate(fixed)
    return Orbits(orbit, stabilizer, tolerance, exact, mover.group.closed, mover.weight)


def _is_rounding(values: Array) -> float:
    """Return the largest distance that counts as rounding."""
    return _ROUNDING * float(np.linalg.norm(values, axis=1).max()) or 1e-300


def _check_memory_of_matching(mover: Mover) -> None:
    """Refuse points whose images, all of which must meet, do not fit into memory."""
    needed = _COPIES_OF_IMAGES * 8 * len(mover.group) * mover.flat.numel()
    free = _free_memory()
    if needed > free:
        (size, width), count = mover.flat.shape, len(mover.group)
        raise InputError(
            "x",
            f"samples whose images fit into memory, of which {free / 1000000000.0:.3g} GB are free",
            f"{size:,} samples x {count:,} elements x {width:,} numbers, which need "
            f"about {needed / 1000000000.0:.3g} GB",
            remedy="match fewer samples or a coarser group, or use match_invariants or "
            "neighbor_ceiling",
        )


def _free_memory() -> float:
    """Return the bytes that are free, as far as the system says so."""
    try:
        with Path("/proc/meminfo").open() as file:
            line = next(row for row in file if row.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return float("inf")
    return 1024.0 * int(line.split()[1])


def match_invariants(invariants: ArrayLike, *, tolerance: float) -> Orbits:
    """Find the orbits of a continuous group from its invariants, instead of its elements.

    Points share an orbit if a complete set of invariants agrees: the distance from the axis for all
    rotations about it, the sorted distances between points for motions and mirror images of generic
    shapes. Distances cannot tell a shape from its mirror image: for motions alone, without mirror
    images, add a signed volume of four points that are chosen alike in all shapes. Invariants
    within the tolerance are linked, directly or through others.

    Args:
        invariants: `[N]`, or `[N, D]`.
        tolerance: a distance between invariants. Above rounding the orbits are marked as not exact.

    Returns:
        The orbit of each point.

    Example:
        >>> x = np.array([[3.0, 4.0], [5.0, 0.0], [1.0, 0.0]])
        >>> match_invariants(np.linalg.norm(x, axis=1), tolerance=1e-9).orbit
        array([0, 0, 1])
    """
    values = as_numpy("invariants", invariants, np.float64)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or values.size == 0 or not np.isfinite(values).all():
        raise InputError("invariants", "finite values of shape [sample] or [sample, D]", values)
    tolerance = _checked_matching_tolerance(tolerance, values)
    return Orbits(
        link_within(values, tolerance), None, tolerance, tolerance <= _is_rounding(values)
    )


def _checked_matching_tolerance(tolerance: float, values: Array) -> float:
    largest = float(np.abs(values).max())
    if not (np.isfinite(tolerance) and tolerance > 1e-13 * largest):
        raise InputError(
            "tolerance",
            f"a distance above the rounding of coordinates of size {largest:g}",
            repr(tolerance),
        )
    return float(tolerance)


def orbits_of_permutations(permutations: ArrayLike) -> Array:
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
            "permutations",
            "whole numbers of shape [element, point]",
            f"shape {list(moves.shape)} and dtype {moves.dtype}",
        )
    size = moves.shape[1]
    if not (np.sort(moves, axis=1) == np.arange(size)).all():
        raise InputError("permutations", "every point exactly once in each row", "others")
    return linked_parts(np.tile(np.arange(size), len(moves)), moves.ravel(), size)


def match_elements(
    x: Any, group: Group | str, orbits: Orbits, *, action: ActionTree | None = None
) -> tuple[Array, Array, Array]:
    """List the elements that lead from the representative of each orbit to its points.

    All (point, element, undone) with `point = undone^-1 * element * representative`. Points with a
    stabilizer appear once for each way to reach them. In a closed group every product is an
    element, and `undone` is the identity; in others, ways with the same product are listed once. A
    point that is linked to its representative only through others is missing. Within a tolerance
    above rounding it is paired with the element that comes nearest.

    Args:
        x: as in `match_orbits`.
        group: as in `match_orbits`.
        orbits: from `match_orbits`.
        action: as in `match_orbits`.

    Returns:
        Point, element and undone element, `[R]` each.

    Example:
        >>> from orbical.groups import cyclic
        >>> x = [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
        >>> match_elements(x, cyclic(4), match_orbits(x, cyclic(4)))
        (array([0, 1, 2, 2, 2, 2]), array([0, 1, 0, 1, 2, 3]), array([0, 0, 0, 0, 0, 0]))
    """
    mover = Mover(x, group, action)
    mover.weight = orbits.weight
    if orbits.exact and not mover.group.closed:
        return _products_of_matched(mover, orbits)
    starts, allowed = orbits.representative[orbits.orbit], orbits.tolerance**2
    found_points, found_elements = [], []
    for rows, _ in mover.blocks():
        images = mover.moved(starts[rows])
        distance = np.square(images - mover.points[rows]).sum(-1)
        hit = distance <= (allowed if orbits.exact else np.maximum(allowed, distance.min(0)))
        where, element = np.nonzero(hit.T)
        found_points.append(where + rows.start)
        found_elements.append(element)
    element = np.concatenate(found_elements)
    return np.concatenate(found_points), element, np.full_like(element, mover.group.identity)


def _products_of_matched(mover: Mover, orbits: Orbits) -> tuple[Array, Array, Array]:
    """List the products undone^-1 * element of two elements that reach each point."""
    group, count, size = mover.group, len(mover.group), len(mover)
    images = np.concatenate([images for _, images in mover.blocks()], axis=1)
    moved_by, owner = np.indices((count, size)).reshape(2, -1)
    place = link_within(images.reshape(count * size, -1), orbits.tolerance)
    # Each image of a point meets every image of the representative in the same place.
    starts = np.flatnonzero(owner == orbits.representative[orbits.orbit[owner]])
    starts = starts[np.argsort(place[starts])]
    low, high = (np.searchsorted(place[starts], place, side) for side in ("left", "right"))
    met = np.repeat(np.arange(len(place)), high - low)
    start = starts[np.arange(len(met)) - np.repeat(np.cumsum(high - low) - high, high - low)]
    point, undone, element = owner[met], moved_by[met], moved_by[start]
    product = group[undone].inverse().compose(group[element])
    parts = [np.reshape(part, (len(point), -1)) for part in product.parts.values()]
    key = np.concatenate([point[:, None], *parts], axis=1).round(6)
    kept = np.unique(key, axis=0, return_index=True)[1]
    return point[kept], element[kept], undone[kept]


def in_frame_of_orbits(
    x: object,
    classes: Mapping[str, ArrayLike],
    group: Group | str,
    orbits: Orbits,
    representation: str | Mapping[str, Mapping[str | int, str | int]],
    names: Sequence[str] | None,
    action: ActionTree | None,
) -> tuple[Orbits, dict[str, Array], Array, Array]:
    """Return classes as those of the first point of each orbit, one row for each way to a point.

    Where `x = g r`, class c of x is class `pi_g^-1(c)` of the representative r. An equivariant
    classifier predicts probabilities that no stabilizer of r changes, so its accuracy on an orbit
    is at most the largest mass of a class, averaged over all ways to reach each point.

    Args:
        x, group, action: as in `match_orbits`.
        classes: labels or predictions `[N]`, by name.
        orbits: from `match_orbits`.
        representation: `"options"`, or the classes that elements exchange.
        names: the names of the classes.

    Returns:
        The orbits, classes and masses `[R]` of the rows, and the point of each.
    """
    moving = as_group(group)
    if not isinstance(representation, str):
        moving = with_classes(moving, representation, names)
    part = Classes("rows" if isinstance(representation, str) else "classes")
    point, element, undone = match_elements(x, group, orbits, action=action)
    back = moving[element].inverse().compose(moving[undone])
    pulled = {
        name: part.move(back, torch.as_tensor(as_numpy(name, each))[point][:, None])[:, 0].numpy()
        for name, each in classes.items()
    }
    ways = np.bincount(point, minlength=len(orbits.orbit))[point]
    rows = replace(orbits, orbit=orbits.orbit[point], stabilizer=None)
    return rows, pulled, 1 / ways / len(orbits.orbit), point


class Mover:
    """A data set under a group: its images, flattened to `[K, n, D]`.

    Coordinates become float64; with `exact=False` floating-point tensors stay as they are.
    """

    def __init__(
        self, x: Any, group: Group | str, action: ActionTree | None, *, exact: bool = True
    ) -> None:
        tree: Any = (
            {key: _leaf_to_match(x[key], exact) for key in x}
            if isinstance(x, dict)
            else _leaf_to_match(x, exact)
        )
        if action is None and (isinstance(tree, dict) or tree.ndim > 3):
            shapes = "fields" if isinstance(tree, dict) else f"shape {list(tree.shape)}"
            raise InputError(
                "x",
                "points [sample, coordinate] or [sample, point, coordinate]",
                shapes,
                remedy="pass action= for other data, such as actions.Images()",
            )
        self.shape = () if isinstance(tree, dict) else tuple(tree.shape[1:])
        # Points act on sets of points; a plain point is a set of one.
        self._x = tree[:, None] if action is None and tree.ndim == 2 else tree
        self.action = Points() if action is None else as_action(action)
        self.group = as_group(group)
        check_group(self.action, self.group, self._x)
        self.flat = self._flattened(self._x, 1)
        self.device = self.flat.device
        self.weight: Array | None = None

    def __len__(self) -> int:
        return len(self.flat)

    @staticmethod
    def _flattened(tree: object, dims: int) -> Tensor:
        return torch.cat([leaf.flatten(dims) for leaf in leaves(tree)], dims)

    @property
    def points(self) -> Array:
        """The samples `[N, D]`, weighed, on the CPU."""
        return self._weighed(self.flat)

    def weigh_columns(self, scale: float) -> None:
        """Scale up coordinates that are everywhere far smaller than the scale, to its size."""

        def small(largest: Array) -> Array:
            return (largest > 0) & (largest < 1e-3 * scale)

        if small(np.abs(self.points).max(0)).any():
            largest = np.max([np.abs(images).max((0, 1)) for _, images in self.blocks()], axis=0)
            self.weight = np.where(small(largest), scale / np.where(largest > 0, largest, 1), 1.0)

    def _weighed(self, values: Tensor) -> Array:
        array = values.cpu().numpy()
        return array if self.weight is None else array * self.weight

    def images(self, rows: slice | Array) -> Tensor:
        """Return `[K, n, D]`, the images of some rows under every element."""
        where = torch.as_tensor(rows, device=self.device) if isinstance(rows, np.ndarray) else rows
        chosen = tree_map(lambda leaf: leaf[where], self._x)
        return self._flattened(self.action.apply(self.group, chosen), 2)

    def moved(self, rows: slice | Array) -> Array:
        """Return the images of some rows, weighed, on the CPU."""
        return self._weighed(self.images(rows))

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Iterate over all rows in blocks that fit in the cache, on the CPU."""
        count, size = self.flat.shape
        step = max(1, _BLOCK_VALUES // (len(self.group) * size))
        for start in range(0, count, step):
            rows = slice(start, min(start + step, count))
            yield rows, self.moved(rows)

    def tensor(self, values: Array) -> Tensor:
        """Return float64 values on the device of the data."""
        return torch.tensor(values, dtype=torch.float64, device=self.device)

    @property
    def closed_isometry(self) -> bool:
        """Whether the elements form a group that keeps distances, tested on random points."""
        if not self.group.closed or self.weight is not None:
            return False
        noise = tree_map(lambda leaf: self.tensor(_noise(16, *leaf.shape[1:])), self._x)
        here = self._flattened(noise, 1).diff(dim=0).norm(dim=-1)
        moved = self._flattened(self.action.apply(self.group, noise), 2)
        there = moved.diff(dim=1).norm(dim=-1)
        return bool(torch.allclose(there, here.expand_as(there), rtol=1e-9))


def _leaf_to_match(x: object, exact: bool) -> Tensor:
    """Read an array of samples as a tensor of finite numbers."""
    if isinstance(x, list | tuple) and hasattr(next(iter(x), None), "get_positions"):
        raise InputError(
            "x",
            "arrays",
            "a list of molecules",
            remedy='pass their fields, such as {"pos": [sample, atom, 3], "numbers": [sample, '
            'atom]}, and an action for each: action={"pos": actions.Points(), '
            '"numbers": actions.Rows()}',
        )
    tensor = x if isinstance(x, Tensor) else torch.as_tensor(np.ascontiguousarray(as_numpy("x", x)))
    if tensor.ndim < 2 or tensor.numel() == 0:
        raise InputError("x", "points of shape [sample, ...]", tensor)
    if not torch.isfinite(tensor).all():
        raise InputError("x", "finite numbers", "NaN or infinite values")
    return tensor.double() if exact else tensor if tensor.is_floating_point() else tensor.float()


def _noise(*shape: int) -> Array:
    return np.random.default_rng(0).normal(size=shape)


def _joined(part: Array, owner: Array, size: int) -> Array:
    """Return the orbits of `size` points whose images lie in the given parts."""
    ids = np.empty(size, dtype=np.int64)
    ids[owner] = part
    several = ids[owner] != part
    if several.any():  # a point with images in several parts joins them
        join = linked_parts(ids[owner[several]], part[several], int(part.max()) + 1)
        ids = join[ids]
    return link_ids_in_order(ids)
