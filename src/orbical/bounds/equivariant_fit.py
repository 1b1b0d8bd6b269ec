"""The best equivariant fit to a table of values: weighted least squares on each orbit.

An equivariant h is free at the representative of each orbit, h(g x) = rho(g) h(x). With masses m,

    Q = sum_g m(gx) rho(g)^T rho(g),      v = Q^-1 sum_g m(gx) rho(g)^T f(gx)

minimizes the error over h; P1 calls v "E_G[f, x]" (Theorem 3). It is the plain mean of
rho(g)^-1 f(gx) only for uniform masses and orthogonal representations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from . import table_checks as checks
from .value_table import ValueTable

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Frames:
    """How the points of a table are reached from the representatives of their orbits.

    Attributes:
        point: `[R]`, the point of each pair.
        matrix: `[R, D, D]`, rho(g) of each pair.
        share: `[R]`, one over the number of ways to reach the point.
        trivial: whether every matrix of the representation is the identity.
        orthogonal: whether every one keeps lengths.
        monomial: whether every one only permutes, flips and scales coordinates.
    """

    point: Array
    matrix: Array
    share: Array
    trivial: bool
    orthogonal: bool
    monomial: bool

    def pulled_back(self, vectors: Array) -> Array:
        """Move vectors `[N, D]` at the points back to the representatives: rho^-1 v, `[R, D]`."""
        return np.asarray(np.linalg.solve(self.matrix, vectors[self.point][..., None])[..., 0])

    def covariances_pulled_back(self, covariances: Array) -> Array:
        """Move covariances `[N, D, D]` back too: rho^-1 S rho^-T, `[R, D, D]`."""
        inverse = np.linalg.inv(self.matrix)
        return np.asarray(inverse @ covariances[self.point] @ inverse.transpose(0, 2, 1))


def equivariant_frames(table: ValueTable, representation: object) -> Frames:
    """Bind a representation to a table: one matrix for each pair of point and element.

    Args:
        table: the values.
        representation: `"invariant"`, or matrices `[K, D, D]`, one for each group element.
    """
    checks.of_kind(table, ValueTable)
    size, dimension = table.value.shape
    if isinstance(representation, str):
        if representation != "invariant":
            raise InputError(
                "representation",
                f"'invariant' or matrices [K, {dimension}, {dimension}]",
                repr(representation),
            )
        matrix = np.broadcast_to(np.eye(dimension), (size, dimension, dimension))
        return Frames(np.arange(size), matrix, np.ones(size), True, True, True)
    matrices = checks.checked_table_representation(representation, dimension)
    if table.point is None or table.element is None:
        raise InputError(
            "table",
            "group elements",
            "none",
            remedy="pass point= and element=, or make the table with from_permutations, or "
            "with from_data and elements that reach each point from the first of its "
            "orbit",
        )
    used = table.element if table.undone is None else np.append(table.element, table.undone)
    if used.max() >= len(matrices):
        raise InputError(
            "representation",
            f"a matrix for every element of the table, up to {int(used.max())}",
            len(matrices),
        )
    matrix = matrices[table.element]
    if table.undone is not None:
        matrix = np.linalg.solve(matrices[table.undone], matrix)
    ways = np.bincount(table.point, minlength=size)
    identity, entries = np.eye(dimension), np.abs(matrices) > 1e-9
    return Frames(
        point=table.point,
        matrix=matrix,
        share=1 / ways[table.point],
        trivial=bool(np.allclose(matrices, identity)),
        orthogonal=checks.orthogonal(matrices),
        monomial=bool((entries.sum(1) == 1).all() and (entries.sum(2) == 1).all()),
    )


@dataclass(frozen=True, eq=False)
class Fit:
    """The best equivariant fit, and its error.

    Attributes:
        at_representative: `[O, D]`, the minimizer v of each.
        fitted: `[N, D]`, the minimizer at each point.
        residual: `[N]`, the squared error left at each point.
    """

    at_representative: Array
    fitted: Array
    residual: Array


def best_fit(value: Array, weight: Array, key: Array, frame: Frames) -> Fit:
    """Minimize `sum_i weight_i ||value_i - h_i||^2` over functions equivariant on each key.

    Args:
        value: `[N, D]`.
        weight: `[N]`, at least 0; a key whose weights are all 0 is fitted with equal ones.
        key: `[N]` whole numbers, orbits or parts of orbits.
        frame: how points are reached.

    Returns:
        The fit.
    """
    size = len(value)
    count = int(key.max()) + 1
    empty = np.bincount(key, weights=weight, minlength=count) <= 0
    weight = np.where(empty[key], 1.0, weight)
    row_key, row_weight = key[frame.point], weight[frame.point] * frame.share
    gram = np.einsum("r,rji,rjk->rik", row_weight, frame.matrix, frame.matrix)
    moment = np.einsum("r,rji,rj->ri", row_weight, frame.matrix, value[frame.point])
    start = np.linalg.solve(
        sum_by_orbit(row_key, gram, count), sum_by_orbit(row_key, moment, count)[..., None]
    )[..., 0]
    reached = np.einsum("rij,rj->ri", frame.matrix, start[row_key])
    error = np.square(value[frame.point] - reached).sum(1)
    return Fit(
        at_representative=start,
        fitted=sum_by_orbit(frame.point, frame.share[:, None] * reached, size),
        residual=sum_by_orbit(frame.point, frame.share * error, size),
    )


def sum_by_orbit(key: Array, values: Array, count: int) -> Array:
    """Sum rows `[R, ...]` that share a key: `[count, ...]`.

    Example:
        >>> sum_by_orbit(np.array([0, 1, 0]), np.array([1.0, 2.0, 3.0]), 2)
        array([4., 2.])
    """
    flat = values.reshape(len(values), -1)
    columns = [np.bincount(key, weights=column, minlength=count) for column in flat.T]
    return np.stack(columns, axis=1).reshape(count, *values.shape[1:])
