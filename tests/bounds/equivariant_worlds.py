"""Worlds whose values a group turns."""

from __future__ import annotations

import numpy as np

from orbical import groups
from orbical.actions import Rows
from orbical.bounds import (
    ValueTable,
)


def permutation_matrices(rows: np.ndarray) -> np.ndarray:
    """The matrices of x -> x[rows]."""
    return np.eye(rows.shape[1])[rows]


def world(name: str, seed: int) -> tuple[ValueTable, np.ndarray]:
    """A random world: points (some with stabilizers), values, density, representation."""
    rng = np.random.default_rng(seed)
    if name == "S3":
        group, action = groups.permutations(3), Rows()
        matrices = permutation_matrices(group.parts["rows"])
        starts = rng.integers(0, 3, (rng.integers(1, 4), 3)).astype(float)
    else:
        group = {"C2": groups.cyclic(2), "C4": groups.cyclic(4), "SO(2)": groups.rotations(12)}[
            name
        ]
        action, matrices = None, group.linear("plane")
        starts = rng.normal(size=(rng.integers(1, 4), 2)) * rng.integers(0, 2, (1, 1))
        starts = np.concatenate([starts, rng.normal(size=(1, 2))])
    images = np.einsum("kij,nj->nki", matrices, starts).reshape(-1, starts.shape[1])
    x = np.unique(images.round(9), axis=0)
    x = x[rng.random(len(x)) < 0.8] if rng.random() < 0.5 else x
    x = x if len(x) else images[:1]
    mass = rng.dirichlet(np.full(len(x), 0.7))
    value = rng.normal(size=x.shape) * 3
    table = ValueTable.from_data(x, value, group, tolerance=1e-6, action=action, mass=mass)
    return table, matrices
