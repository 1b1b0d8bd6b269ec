"""Point clouds with labels, and padding of clouds of unequal sizes.

Clouds of one size are a tensor `[n, points, 3]`. Clouds of unequal sizes are padded,
`{"pos": [n, most, 3], "mask": [n, most]}`, and transformed by
`{"pos": Points(), "mask": Trivial()}`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from orbical.data.padding import padded

__all__ = ["PointClouds", "in_unit_ball", "padded"]


class PointClouds(NamedTuple):
    """Point clouds with their labels and the names of the classes.

    Attributes:
        points: Tensor `[n, points, 3]`, float32, or the fields `pos` and `mask` of padded clouds.
        labels: Tensor `[n]`, int64.
        classes: Names of the classes, by label.
    """

    points: Any
    labels: Tensor
    classes: tuple[str, ...]


def in_unit_ball(points: NDArray[Any]) -> NDArray[Any]:
    """Center a cloud `[points, 3]` on its bounding box and scale it to the unit ball.

    >>> in_unit_ball(np.array([[0.0, 0, 0], [4, 0, 0]])).tolist()
    [[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    """
    centered = points - (points.min(0) + points.max(0)) / 2
    return np.asarray(centered / max(float(np.linalg.norm(centered, axis=1).max()), 1e-6))
