"""Samples of different sizes as one batch: padded at the end, with a mask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from .._ragged import mask_of
from ..errors import InputError


def padded(clouds: Sequence[Any], argument: str = "clouds") -> dict[str, Tensor]:
    """Pad clouds of unequal sizes to one batch.

    Args:
        clouds: Arrays `[points, 3]` (or `[points, 2]`), each with at least one point.
        argument: The name of the argument in error messages.

    Returns:
        `pos`, `[n, most, 3]`, padded with zeros at the end, and `mask`, `[n, most]`, true for
        points and false for padding.

    Raises:
        InputError: If there is no cloud, or one is empty, of another shape or not finite.

    Example:
        >>> import numpy as np
        >>> batch = padded([np.zeros((2, 3)), np.ones((5, 3))])
        >>> batch["pos"].shape, batch["mask"].sum(1).tolist()
        (torch.Size([2, 5, 3]), [2, 5])
    """
    if not len(clouds):
        raise InputError(argument, "at least one cloud", "none")
    each = [torch.as_tensor(cloud, dtype=torch.float32) for cloud in clouds]
    for place, cloud in enumerate(each):
        if cloud.ndim != 2 or len(cloud) == 0 or cloud.shape[1] != each[0].shape[-1]:
            raise InputError(
                argument,
                f"shape (points, {each[0].shape[-1]}), at least one point",
                f"{tuple(cloud.shape)} for cloud {place}",
            )
        if not bool(torch.isfinite(cloud).all()):
            raise InputError(argument, "finite numbers", f"NaN or infinity in cloud {place}")
    pos = pad_sequence(each, batch_first=True)
    return {"pos": pos, "mask": mask_of(torch.tensor([len(cloud) for cloud in each]))}


def differ_in_length(samples: Sequence[Any]) -> bool:
    """Check for arrays `[points, features]` that differ in the number of points only."""
    shapes = {tuple(getattr(one, "shape", ())) for one in samples}
    alike = {(len(shape), shape[1:]) for shape in shapes}
    return len(shapes) > 1 and len(alike) == 1 and len(next(iter(shapes))) == 2
