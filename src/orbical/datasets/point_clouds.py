"""Point clouds with labels, and padding of clouds of unequal sizes.

Clouds of one size are a tensor `[n, points, 3]`. Clouds of unequal sizes are padded,
`{"pos": [n, most, 3], "mask": [n, most]}`, and transformed by
`{"pos": Points(), "mask": Trivial()}`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from orbical.errors import InputError


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


def padded(clouds: Sequence[Any]) -> dict[str, Tensor]:
    """Pad clouds of unequal sizes to one batch.

    Args:
        clouds: Arrays `[points, 3]` (or `[points, 2]`), each with at least one point.

    Returns:
        `pos`, `[n, most, 3]`, padded with zeros at the end, and `mask`, `[n, most]`, true for
        points and false for padding.

    Raises:
        InputError: If there is no cloud, or one is empty, of another shape or not finite.

    Example:
        >>> batch = padded([np.zeros((2, 3)), np.ones((5, 3))])
        >>> batch["pos"].shape, batch["mask"].sum(1).tolist()
        (torch.Size([2, 5, 3]), [2, 5])
    """
    if not len(clouds):
        raise InputError("clouds: expected at least one cloud, got none")
    each = [torch.as_tensor(cloud, dtype=torch.float32) for cloud in clouds]
    for place, cloud in enumerate(each):
        if cloud.ndim != 2 or len(cloud) == 0 or cloud.shape[1] != each[0].shape[-1]:
            raise InputError(
                f"clouds: expected shape (points, {each[0].shape[-1]}), at least one point, got "
                f"{tuple(cloud.shape)} for cloud {place}"
            )
        if not bool(torch.isfinite(cloud).all()):
            raise InputError(
                f"clouds: expected finite numbers, got NaN or infinity in cloud {place}"
            )
    pos = pad_sequence(each, batch_first=True)
    sizes = torch.tensor([len(cloud) for cloud in each])
    return {"pos": pos, "mask": torch.arange(pos.shape[1]) < sizes[:, None]}


def in_unit_ball(points: NDArray[Any]) -> NDArray[Any]:
    """Center a cloud `[points, 3]` on its bounding box and scale it to the unit ball.

    >>> in_unit_ball(np.array([[0.0, 0, 0], [4, 0, 0]])).tolist()
    [[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    """
    centered = points - (points.min(0) + points.max(0)) / 2
    return np.asarray(centered / max(float(np.linalg.norm(centered, axis=1).max()), 1e-6))
