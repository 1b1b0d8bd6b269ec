"""Molecules of unequal sizes as arrays: atoms one after another in files, padded in memory."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray


def padded_atoms(arrays: Mapping[str, NDArray]) -> tuple[NDArray, NDArray, NDArray]:
    """Return positions `[n, most, 3]`, atomic numbers `[n, most]` (0 for padding) and the mask.

    Args:
        arrays: `sizes [n]`, and `positions [atoms, 3]` and `numbers [atoms]` of all molecules one
            after another.

    Example:
        >>> arrays = {"sizes": np.array([1, 2]), "numbers": np.array([8, 1, 1])}
        >>> padded_atoms(arrays | {"positions": np.zeros((3, 3))})[1].tolist()
        [[8, 0], [1, 1]]
    """
    sizes = arrays["sizes"].astype(np.int64)
    mask = np.arange(sizes.max()) < sizes[:, None]
    pos, numbers = np.zeros((*mask.shape, 3), np.float32), np.zeros(mask.shape, np.int64)
    pos[mask], numbers[mask] = arrays["positions"], arrays["numbers"]
    return pos, numbers, mask
