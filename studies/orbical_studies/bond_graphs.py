"""Classes of molecules that a network on bonds cannot tell apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from .networks.molecules import bond_graph

ROUNDS = 4
"""Rounds of coloring that tell bond graphs apart: as many as GIN has layers."""


def bond_hashes(inputs: dict[str, Tensor], chunk: int = 4096) -> NDArray[np.int64]:
    """Color bond graphs as GIN sees them: equal numbers for graphs that no GIN tells apart.

    Color refinement (Weisfeiler and Lehman) with sums, modulo 2^64, of scrambled colors of
    neighbors: what the network's own sums can know at most, after as many rounds.

    >>> import torch
    >>> water = {"pos": torch.tensor([[[0.0, 0, 0], [0, 0.76, 0.59], [0, -0.76, 0.59]]]),
    ...          "numbers": torch.tensor([[8, 1, 1]])}
    >>> bent = water | {"pos": water["pos"].roll(1, -1) * 1.02}
    >>> bool(bond_hashes(water) == bond_hashes(bent))
    True
    """
    pieces = zip(inputs["pos"].split(chunk), inputs["numbers"].split(chunk), strict=True)
    return np.concatenate([_colors(bond_graph(pos, n).numpy(), n.numpy()) for pos, n in pieces])


def _colors(bonds: NDArray[np.bool_], numbers: NDArray) -> NDArray[np.int64]:
    sample, atom, other = bonds.nonzero()
    color = _scrambled(numbers.astype(np.uint64))
    for _ in range(ROUNDS):
        around = np.zeros_like(color)
        np.add.at(around, (sample, atom), _scrambled(color[sample, other]))
        color = _scrambled(color * np.uint64(3) + around)
    return np.where(numbers > 0, color, np.uint64(0)).sum(1, dtype=np.uint64).view(np.int64)


def _scrambled(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread numbers over 64 bits: the finalizer of splitmix64, which maps one to one."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
