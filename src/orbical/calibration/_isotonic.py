"""What isotonic regressions of 0 and 1 leave of the squared error, for many rows at once."""

from __future__ import annotations

import numpy as np


def isotonic_remainder(
    place: np.ndarray, weight: np.ndarray | None, before: np.ndarray, width: int
) -> float:
    """Return `sum w (fit - hit)^2`, with one isotonic fit for each row of `width` ordered cells.

    A cell without hits joins the pool of the last cell before it that has some, since a fit never
    falls; so the work is that of the cells with hits, and a sum of counts for the rest.

    Args:
        place: The cells of the hits `[H]`, numbered through all rows.
        weight: The weights `[H]` of the hits; 1 by default.
        before: The weight of all samples in the cells before each cell, `[rows * width + 1]`.
        width: The number of cells of a row.

    Example:
        >>> isotonic_remainder(np.array([0, 2]), None, np.arange(4.0), 3)
        0.5
    """
    hits = np.bincount(place, weight, minlength=len(before) - 1)
    filled = np.flatnonzero(hits > 0)  # several times faster than that of numbers
    row, right = filled // width, hits[filled].astype(np.float64)
    stop = np.minimum(np.append(filled[1:], len(before) - 1), (row + 1) * width)
    right, number = _pooled(right, before[stop] - before[filled], row)
    return float((right * (1 - right / number)).sum())


def _pooled(
    right: np.ndarray, number: np.ndarray, row: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Pool neighbors of a row, all that violate the order at once, until their shares rise."""
    while True:
        share = right / number
        opens = np.concatenate([[True], (share[1:] > share[:-1]) | (row[1:] != row[:-1])])
        if opens.all():
            return right, number
        starts = np.flatnonzero(opens)
        right, number = (np.add.reduceat(part, starts) for part in (right, number))
        row = row[starts]
