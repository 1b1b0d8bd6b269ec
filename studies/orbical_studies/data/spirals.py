"""Two spirals at two heights, between which the swap of heights is right, wrong or neither.

The separated Swiss rolls of Wang et al. (2024), used in section 4.7.1 of the paper on calibration
of equivariant functions, as a finite world: every orbit is known, so the accuracy ceiling is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from orbical.errors import InputError
from orbical.groups import Group, from_matrices

Array = np.ndarray
CHUNKS = 16
TURN_RAD = 3.0  # of the second spiral against the first
KINDS = ("correct", "incorrect", "extrinsic")


@dataclass(frozen=True, eq=False)
class SwissRoll:
    """Points of the two spirals, the first half at height 0, the second at height 1.

    Attributes:
        x: `[2n, 3]`, float64.
        label: `[2n]`, 0 or 1.
        orbit: `[2n]`, ids under the swap of heights: equal where two points lie one above the
            other.
        kind: `[2n]`, 0, 1 or 2: whether the swap keeps the label, changes it, or leaves the data
            (the places of `KINDS`).
    """

    x: Array
    label: Array
    orbit: Array
    kind: Array

    def __len__(self) -> int:
        return len(self.x)

    def take(self, rows: Array) -> SwissRoll:
        """Some of the points."""
        return SwissRoll(self.x[rows], self.label[rows], self.orbit[rows], self.kind[rows])


def swiss_roll(correct: float, incorrect: float, points: int = 100_000) -> SwissRoll:
    """Make the two spirals with given shares of correct and incorrect invariance.

    With `r = 0.05 i / n`, i = 1 .. n, the first spiral is `10 r (cos 90 pi r, sin 90 pi r)`, 2.25
    turns, and the second the same turned by 3 rad. The indices fall into 16 chunks.

    * correct: in the first `16 correct` chunks (an even number) both heights hold the same spiral
      with the same label: by turns the second with label 1 and the first with label 0;
    * incorrect: on the following indices both heights hold the first spiral, with label 0 at height
      0 and label 1 at height 1;
    * extrinsic: on the rest height 0 holds the first spiral with label 0, height 1 the second with
      label 1, and nothing lies above anything.

    No model that ignores the height is more accurate than `1 - incorrect / 2`.

    Args:
        correct: share of indices, a multiple of 1/8.
        incorrect: share of indices.
        points: n, the indices of each spiral, a multiple of 16. The paper's source counts from 0,
            where the spirals touch; from 1 they never do.

    Returns:
        2n points.

    >>> roll = swiss_roll(correct=0.5, incorrect=0.25, points=64)
    >>> roll.x.shape, len(np.unique(roll.orbit))
    ((128, 3), 80)
    >>> np.bincount(roll.kind).tolist()
    [64, 32, 32]

    Paper: Berman et al., section 4.7.1 and appendix C; Wang et al. 2024.
    """
    if points < CHUNKS or points % CHUNKS:
        raise InputError(f"points: got {points}, expected a multiple of {CHUNKS}")
    chunks = correct * CHUNKS
    if not 0 <= correct <= 1 or chunks % 2:
        raise InputError(f"correct: got {correct}, expected a multiple of 1/8 in [0, 1]")
    wrong = round(incorrect * points)
    if not 0 <= incorrect <= 1 - correct + 1e-12 or abs(wrong - incorrect * points) > 1e-6:
        raise InputError(
            f"incorrect: got {incorrect}, expected a share of {points} points in "
            f"[0, 1 - correct] = [0, {1 - correct:g}]"
        )
    place = np.arange(points)
    right = round(correct * points)
    kind = np.select([place < right, place < right + wrong], [0, 1], default=2)
    even = place * CHUNKS // points % 2 == 0
    second_below = (kind == 0) & even
    second_above = second_below | (kind == 2)
    label_above = np.where(kind == 0, even, True)
    spirals = _spiral(points, 0.0), _spiral(points, TURN_RAD)
    heights = []
    for height, second in enumerate((second_below, second_above)):
        plane = np.where(second[:, None], spirals[1], spirals[0])
        heights.append(np.column_stack([plane, np.full(points, float(height))]))
    above = np.where(kind == 2, place + points, place)
    return SwissRoll(
        x=np.concatenate(heights),
        label=np.concatenate([second_below, label_above]).astype(np.int64),
        orbit=np.concatenate([place, above]),
        kind=np.tile(kind, 2),
    )


def _spiral(points: int, turn_rad: float) -> Array:
    radius = 0.05 * np.arange(1, points + 1) / points
    angle = 90 * np.pi * radius + turn_rad
    return 10 * radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)


def swap_of_heights() -> Group:
    """The symmetry in question: z = 0 and z = 1 change places.

    >>> from orbical.bounds import match_orbits
    >>> roll = swiss_roll(0.5, 0.5, points=32)
    >>> match_orbits(roll.x, swap_of_heights()).count
    32
    """
    swap = np.eye(4)
    swap[2, 2:] = -1, 1
    return from_matrices(space=[np.eye(4), swap])
