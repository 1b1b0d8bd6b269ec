"""Two spirals at two heights, between which the swap of heights is right, wrong or neither.

The separated Swiss rolls of Wang et al. (2024), as a finite world: every orbit is known, so the
accuracy ceiling is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from orbical.errors import InputError
from orbical.groups import Group, from_matrices

Array = np.ndarray
CHUNKS = 16
TURN_RAD = 3.0  # of the second spiral against the first


@dataclass(frozen=True, eq=False)
class SwissRoll:
    """Points of the two spirals, the first half at height 0, the second half at height 1.

    Attributes:
        x: Points `[2n, 3]`.
        label: 0 or 1, `[2n]`.
        orbit: Orbit ids under the swap of heights `[2n]`.
    """

    x: Array
    label: Array
    orbit: Array

    def __len__(self) -> int:
        return len(self.x)

    def take(self, rows: Array) -> SwissRoll:
        """Return some of the points."""
        return SwissRoll(self.x[rows], self.label[rows], self.orbit[rows])


def swiss_roll(correct: float, incorrect: float, points: int = 100_000) -> SwissRoll:
    """Make the two spirals with given shares of correct and incorrect invariance.

    With `r = 0.05 i / n`, i = 1 .. n, the first spiral is `10 r (cos 90 pi r, sin 90 pi r)`, 2.25
    turns, and the second is the first rotated by 3 rad. The indices fall into 16 chunks.

    * correct: in the first `16 correct` chunks both heights hold the same spiral with the same
      label, in turn the second with label 1 and the first with label 0;
    * incorrect: on the next indices both heights hold the first spiral, with label 0 at height 0
      and label 1 at height 1;
    * extrinsic: on the rest height 0 holds the first spiral with label 0 and height 1 the second
      with label 1, so that no point lies above another.

    Args:
        correct: Share of indices, a multiple of 1/8.
        incorrect: Share of indices.
        points: n, the indices of each spiral, a multiple of 16.

    Returns:
        2n points.

    Example:
        >>> roll = swiss_roll(correct=0.5, incorrect=0.25, points=64)
        >>> roll.x.shape, len(np.unique(roll.orbit))
        ((128, 3), 80)
    """
    if points < CHUNKS or points % CHUNKS:
        raise InputError("points", f"a multiple of {CHUNKS}", points)
    if not 0 <= correct <= 1 or correct * CHUNKS % 2:
        raise InputError("correct", "a multiple of 1/8 in [0, 1]", correct)
    wrong = round(incorrect * points)
    if not 0 <= incorrect <= 1 - correct + 1e-12 or abs(wrong - incorrect * points) > 1e-6:
        raise InputError(
            "incorrect",
            f"a share of {points} points in [0, 1 - correct] = [0, {1 - correct:g}]",
            incorrect,
        )
    index = np.arange(points)
    right = index < round(correct * points)
    extrinsic = index >= round(correct * points) + wrong
    even = index * CHUNKS // points % 2 == 0
    second_below = right & even
    first, second = _spiral(points, 0.0), _spiral(points, TURN_RAD)
    heights = [
        np.column_stack([np.where(on_second[:, None], second, first), np.full(points, height)])
        for height, on_second in ((0.0, second_below), (1.0, second_below | extrinsic))
    ]
    return SwissRoll(
        x=np.concatenate(heights),
        label=np.concatenate([second_below, np.where(right, even, True)]).astype(np.int64),
        orbit=np.concatenate([index, np.where(extrinsic, index + points, index)]),
    )


def _spiral(points: int, turn_rad: float) -> Array:
    radius = 0.05 * np.arange(1, points + 1) / points
    angle = 90 * np.pi * radius + turn_rad
    return 10 * radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)


def swap_of_heights() -> Group:
    """Return the symmetry in question: z = 0 and z = 1 change places.

    Example:
        >>> from orbical.bounds import match_orbits
        >>> match_orbits(swiss_roll(0.5, 0.5, points=32).x, swap_of_heights()).count
        32
    """
    swap = np.eye(4)
    swap[2, 2:] = -1, 1
    return from_matrices(space=[np.eye(4), swap])
