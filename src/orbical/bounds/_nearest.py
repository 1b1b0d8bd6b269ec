"""Nearest samples and all their ties, by a tree in few dimensions and without one in many."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from ._linking import projected

Array = np.ndarray
_TREE_DIMENSIONS = 8
_PAIRS_PER_QUERY = 32
_BLOCK_VALUES = 1 << 24


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
        self._direct = points.shape[1] <= _TREE_DIMENSIONS
        self._tree = cKDTree(points if self._direct else projected(points))

    def __call__(self, queries: Array) -> tuple[Array, Array, Array]:
        """Return the distance `[M]` (infinite if there is none), and all pairs (query, sample)."""
        query, point = self._candidates(queries)
        gap = np.empty(len(query))
        step = max(1, _BLOCK_VALUES // queries.shape[1])
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
            flat = projected(queries)
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
        step = max(1, _BLOCK_VALUES // len(self.points))
        for start in range(0, len(queries), step):
            squared = length - 2 * queries[start : start + step] @ self.points.T
            near = squared <= squared.min(1, keepdims=True) + allowance
            pairs.append(np.argwhere(near) + np.array([start, 0]))
        query, point = np.concatenate(pairs).T
        return query, point


def _joined(lists: Array) -> Array:
    parts = [np.asarray(some, dtype=np.int64) for some in lists]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)
