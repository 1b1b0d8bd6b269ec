"""Nearest samples, by a tree in few dimensions and without one in many."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from ._linking import projected

Array = np.ndarray
_TREE_DIMENSIONS = 8
_PAIRS_PER_QUERY = 32
_BLOCK_VALUES = 1 << 24


class Nearest:
    """The sample nearest to each query, among those within a radius.

    A tree is fast up to some eight dimensions. Beyond, a projection onto three directions prunes
    (distances can only shrink, so no neighbor is lost); if the radius is too wide for that, all
    distances are computed.

    Example:
        >>> search = Nearest(np.array([[0.0, 0.0], [3.0, 4.0]]), radius=2.0)
        >>> search(np.array([[1.0, 0.0], [9.0, 9.0]]))
        (array([ 1., inf]), array([0, 0]))
    """

    def __init__(self, points: Array, radius: float = np.inf) -> None:
        self.points = points
        self.radius = radius * (1 + 1e-12)
        self._direct = points.shape[1] <= _TREE_DIMENSIONS
        self._tree = cKDTree(points if self._direct else projected(points))

    def __call__(self, queries: Array) -> tuple[Array, Array]:
        """Return the distance `[M]` (infinite if there is none) and the index `[M]`."""
        if self._direct:
            distance, index = self._tree.query(queries, distance_upper_bound=self.radius)
            return distance, np.where(np.isfinite(distance), index, 0)
        if np.isfinite(self.radius):
            flat = projected(queries)
            count = self._tree.query_ball_point(flat, self.radius, return_length=True)
            if count.sum() <= _PAIRS_PER_QUERY * len(queries):
                return self._pruned(queries, flat)
        return self._all(queries)

    def _pruned(self, queries: Array, flat: Array) -> tuple[Array, Array]:
        pairs = cKDTree(flat).sparse_distance_matrix(self._tree, self.radius, output_type="ndarray")
        query, point = pairs["i"], pairs["j"]
        gap = np.empty(len(query))
        step = max(1, _BLOCK_VALUES // queries.shape[1])
        for start in range(0, len(query), step):
            some = slice(start, start + step)
            off = queries[query[some]] - self.points[point[some]]
            gap[some] = np.sqrt(np.einsum("md,md->m", off, off))
        near = gap <= self.radius
        order = np.lexsort((gap[near], query[near]))
        found, first = np.unique(query[near][order], return_index=True)
        distance, index = np.full(len(queries), np.inf), np.zeros(len(queries), dtype=np.int64)
        distance[found] = gap[near][order][first]
        index[found] = point[near][order][first]
        return distance, index

    def _all(self, queries: Array) -> tuple[Array, Array]:
        index = np.empty(len(queries), dtype=np.int64)
        length = np.square(self.points).sum(1)
        step = max(1, _BLOCK_VALUES // len(self.points))
        for start in range(0, len(queries), step):
            some = slice(start, start + step)
            index[some] = (length - 2 * queries[some] @ self.points.T).argmin(1)
        # The expanded square loses digits where points nearly meet; the difference does not.
        distance = np.linalg.norm(queries - self.points[index], axis=1)
        return np.where(distance <= self.radius, distance, np.inf), index
