"""Near points: connected parts of a point cloud in near-linear time, and nearest samples."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

Array = np.ndarray
_BLOCK_VALUES = 1 << 19
_TREE_DIMENSIONS = 3
_RAGGED_LIMIT = 16
_PAIRS_PER_POINT = 64


def link_within(points: Array, tolerance: float) -> Array:
    """Return the connected part `[M]` of each point, linking those at most `tolerance` apart.

    Near-linear: points are gathered in cells whose diameter is the tolerance, so that a crowd in
    one place costs no pairs; only neighboring cells are compared, by a tree in (at most) three
    dimensions, onto which more dimensions are projected. Where a projection separates too little,
    as for images within a wide tolerance, all distances are computed.

    Example:
        >>> link_within(np.array([[0.0], [1.0], [1.9], [5.0]]), 1.0)
        array([0, 0, 0, 1])
    """
    dimensions = points.shape[1]
    # A cell's diagonal is just below the tolerance, whatever the rounding.
    order, start = _equal_points(np.floor(points * (np.sqrt(dimensions) * (1 + 1e-9) / tolerance)))
    size = np.diff(np.append(start, len(points)))
    first = order[start]
    tree = cKDTree(_projected_to_link(points[first]))
    # Any two points of linked cells are within t, and each within t of its cell's first.
    reach = 3 * tolerance * (1 + 1e-9)
    if dimensions > _TREE_DIMENSIONS and (
        tree.count_neighbors(tree, reach) > _PAIRS_PER_POINT * len(first)
    ):
        return _link_all_near(points, tolerance)
    pairs = tree.query_pairs(reach, output_type="ndarray")
    gap = np.linalg.norm(points[first[pairs[:, 0]]] - points[first[pairs[:, 1]]], axis=1)
    near = gap <= tolerance
    few = ~near & (size[pairs].prod(1) <= _RAGGED_LIMIT)
    near[few] = _any_near_within(points, order, start, size, pairs[few], tolerance)
    part = linked_parts(pairs[near, 0], pairs[near, 1], len(size))
    rest = np.flatnonzero(~near & ~few)
    # Crowded cells, nearest first: most are joined by then, and need no search.
    for a, b in pairs[rest[np.argsort(gap[rest])]]:
        if part[a] == part[b]:
            continue
        small, large = (order[start[c] : start[c] + size[c]] for c in sorted((a, b), key=size.item))
        distance, _ = cKDTree(points[large]).query(points[small])
        if distance.min() <= tolerance:
            part[part == part[b]] = part[a]
    found = np.empty(len(points), dtype=np.int64)
    found[order] = np.repeat(part, size)
    return link_ids_in_order(found)


def _link_all_near(points: Array, tolerance: float) -> Array:
    """Link by all distances, a block of rows at a time."""
    centered = points - points.mean(0)
    length = np.square(centered).sum(1)
    part = np.arange(len(points))
    step = max(1, 8 * _BLOCK_VALUES // len(points))
    for start in range(0, len(points), step):
        rows = slice(start, start + step)
        squared = length[rows, None] + length - 2 * centered[rows] @ centered.T
        # The expanded square is exact only to rounding: leave a matching allowance.
        row, column = np.nonzero(squared <= tolerance**2 + 1e-12 * length.max())
        part = linked_parts(part[start + row], part[column], int(part.max()) + 1)[part]
    return link_ids_in_order(part)


def _any_near_within(
    points: Array, order: Array, start: Array, size: Array, pairs: Array, tolerance: float
) -> Array:
    """Return for each pair of cells whether any two of their points are near."""
    near = np.zeros(len(pairs), dtype=bool)
    step = max(1, _BLOCK_VALUES // (_RAGGED_LIMIT * points.shape[1]))
    for block in range(0, len(pairs), step):
        left, right = pairs[block : block + step].T
        products = size[left] * size[right]
        pair = np.repeat(np.arange(len(left)), products)
        within = np.arange(len(pair)) - np.repeat(np.cumsum(products) - products, products)
        i, j = np.divmod(within, size[right][pair])
        gap = points[order[start[left][pair] + i]] - points[order[start[right][pair] + j]]
        close = np.einsum("md,md->m", gap, gap) <= tolerance**2
        near[block + pair[close]] = True
    return near


def _equal_points(rows: Array) -> tuple[Array, Array]:
    """Sort equal rows together: an order `[M]` of all rows, and where each kind starts.

    One sort of 64-bit keys; a collision of keys is found and undone.
    """
    multipliers = np.random.default_rng(1).integers(1, 2**62, size=rows.shape[1], dtype=np.int64)
    key = (rows.astype(np.int64) * (2 * multipliers + 1)).sum(1)
    order = np.argsort(key)
    ordered, key = rows[order], key[order]
    differs = (ordered[1:] != ordered[:-1]).any(1)
    if (differs & (key[1:] == key[:-1])).any():
        order = np.lexsort(rows.T)
        ordered = rows[order]
        differs = (ordered[1:] != ordered[:-1]).any(1)
    return order, np.flatnonzero(np.concatenate([[True], differs]))


def _projected_to_link(points: Array) -> Array:
    """Project onto three orthonormal directions: distances can only shrink, so no pair is lost."""
    if points.shape[1] <= _TREE_DIMENSIONS:
        return points
    random = np.random.default_rng(2).normal(size=(points.shape[1], _TREE_DIMENSIONS))
    return np.asarray(points @ np.linalg.qr(random)[0])


def linked_parts(left: Array, right: Array, size: int) -> Array:
    """Return the connected part `[size]` of each node of a graph."""
    links = coo_array((np.ones(len(left), dtype=np.int8), (left, right)), shape=(size, size))
    return link_ids_in_order(connected_components(links, directed=False)[1])


def link_ids_in_order(ids: Array) -> Array:
    """Renumber ids from 0, in the order in which they first appear."""
    first, index = np.unique(ids, return_index=True, return_inverse=True)[1:]
    return np.asarray(first.argsort().argsort()[index])


_DIRECT_DIMENSIONS = 8
_PAIRS_PER_QUERY = 32
_GAP_VALUES = 1 << 24


class Nearest:
    """The samples nearest to each query, among those within a radius; all that are equally near.

    A tree is fast up to some eight dimensions. Beyond, a projection onto three directions prunes
    (distances can only shrink, so no neighbor is lost); if the radius is too wide for that, all
    distances are computed.

    Example:
        >>> search = Nearest(np.array([[0.0, 0.0], [0.0, 0.0], [3.0, 4.0]]), radius=2.0)
        >>> search(np.array([[1.0, 0.0], [9.0, 9.0]]))
        (array([ 1., inf]), array([0, 0]), array([0, 1]))
    """

    def __init__(self, points: Array, radius: float = np.inf) -> None:
        self.points = points
        self.radius = radius * (1 + 1e-12)
        self._slack = 1e-9 * float(np.abs(points).max())
        self._direct = points.shape[1] <= _DIRECT_DIMENSIONS
        self._tree = cKDTree(points if self._direct else _projected_to_link(points))

    def __call__(self, queries: Array) -> tuple[Array, Array, Array]:
        """Return the distance `[M]` (infinite if there is none), and all pairs (query, sample)."""
        query, point = self._candidates(queries)
        gap = np.empty(len(query))
        step = max(1, _GAP_VALUES // queries.shape[1])
        for start in range(0, len(query), step):
            some = slice(start, start + step)
            off = queries[query[some]] - self.points[point[some]]
            gap[some] = np.sqrt(np.einsum("md,md->m", off, off))
        distance = np.full(len(queries), np.inf)
        np.minimum.at(distance, query, gap)
        distance[distance > self.radius] = np.inf
        near = (gap <= distance[query] + self._slack) & np.isfinite(distance[query])
        return distance, query[near], point[near]

    def _candidates(self, queries: Array) -> tuple[Array, Array]:
        """Return pairs (query, sample), the nearest and all their ties among them."""
        if self._direct:
            distance, _ = self._tree.query(queries, distance_upper_bound=self.radius)
            # Only where there is a neighbor: the tree would square a negative reach.
            inside = np.flatnonzero(np.isfinite(distance))
            found = self._tree.query_ball_point(queries[inside], distance[inside] + 2 * self._slack)
            return np.repeat(inside, list(map(len, found))), _joined(found)
        if np.isfinite(self.radius):
            flat = _projected_to_link(queries)
            count = self._tree.query_ball_point(flat, self.radius, return_length=True)
            if count.sum() <= _PAIRS_PER_QUERY * len(queries):
                found = self._tree.query_ball_point(flat, self.radius)
                return np.repeat(np.arange(len(queries)), count), _joined(found)
        return self._all(queries)

    def _all(self, queries: Array) -> tuple[Array, Array]:
        pairs = []
        length = np.square(self.points).sum(1)
        farthest = np.sqrt(length.max()) + np.linalg.norm(queries, axis=1).max(initial=0)
        # The expanded square is exact only to rounding: leave a matching allowance.
        allowance = 1e-12 * length.max() + 2 * self._slack * farthest
        step = max(1, _GAP_VALUES // len(self.points))
        for start in range(0, len(queries), step):
            squared = length - 2 * queries[start : start + step] @ self.points.T
            near = squared <= squared.min(1, keepdims=True) + allowance
            pairs.append(np.argwhere(near) + np.array([start, 0]))
        query, point = np.concatenate(pairs).T
        return query, point


def _joined(lists: Array) -> Array:
    parts = [np.asarray(some, dtype=np.int64) for some in lists]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)
